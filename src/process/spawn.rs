//! One process, forked and executed by the kernel's own calls.
//!
//! The standard library cannot fork a child straight into a cgroup, and moving it there afterwards costs milliseconds:
//! the kernel waits until no other process of the machine forks or exits. So this is done here, for every child alike.
//! The child runs in gymrun's own memory, on a stack of its own, until it is executed, and the caller waits for that (as
//! with vfork): a copy of the memory, or of what describes it, would cost more the larger gymrun is. All that the child
//! needs is made before, since another thread may hold any lock when it happens; what it could not do it writes into that
//! memory. Signals are blocked meanwhile, so that none of gymrun's handlers runs in the child.

use std::ffi::{CStr, CString, OsStr, OsString};
use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsRawFd as _, BorrowedFd, OwnedFd, RawFd};
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;
use std::ptr;
use std::sync::atomic::{AtomicI32, AtomicU8, Ordering};

use super::environment::Environment;
use super::wait::wait;
use super::{descriptors, dispositions};
use crate::diag::exit;

/// What is executed, and in which surroundings.
pub(super) struct Image<'a> {
    /// The file.
    pub(super) path: &'a Path,
    pub(super) argv: &'a [OsString],
    /// The whole environment.
    pub(super) environment: &'a Environment,
    pub(super) cwd: &'a Path,
    /// Standard input, output and error; `None` leaves gymrun's own.
    pub(super) streams: [Option<BorrowedFd<'a>>; 3],
    /// It has gymrun's terminal.
    pub(super) has_terminal: bool,
}

/// The parts of an image as the kernel wants them.
struct Prepared<'a> {
    path: CString,
    argv: Vec<*const libc::c_char>,
    environment: Vec<*const libc::c_char>,
    /// What those point to.
    _strings: (Vec<CString>, &'a Environment),
    cwd: CString,
    /// Each above the first three, so that none is overwritten before it is used.
    streams: [Option<RawFd>; 3],
    /// Those of them that had to be copied for that.
    _copies: Vec<OwnedFd>,
    has_terminal: bool,
    parent: i32,
    /// The limit of open files, if it is another than gymrun's own.
    descriptors: Option<libc::rlimit>,
    /// Written by the child if it cannot be executed: the number of the step, 0 before, and that of the error.
    failed: (AtomicU8, AtomicI32),
}

/// Pointers to strings, with null at the end.
fn pointers<'a>(strings: impl Iterator<Item = &'a CStr>) -> Vec<*const libc::c_char> {
    strings.map(CStr::as_ptr).chain([ptr::null()]).collect()
}

/// What could not be done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Step {
    /// To get everything ready before.
    Prepare = 1,
    /// To fork, or to get into the cgroup.
    Fork,
    /// To give the child its group, its streams and its limits.
    Order,
    /// To enter the working directory.
    Directory,
    /// To execute the file.
    Execute,
}

/// Why a child could not be started: what failed, and the kernel's word for it.
#[derive(Debug)]
pub(super) struct Refused {
    pub(super) step: Step,
    pub(super) error: io::Error,
}

impl Step {
    fn refused(self) -> impl Fn(io::Error) -> Refused {
        move |error| Refused { step: self, error }
    }

    /// As the child tells it.
    fn told(number: u8) -> Self {
        let steps = [Self::Prepare, Self::Fork, Self::Order, Self::Directory, Self::Execute];
        steps.into_iter().find(|step| *step as u8 == number).unwrap_or(Self::Order)
    }
}

/// Forks, into that cgroup if one is given, and executes. The child is the leader of a process group of its own, dies with
/// the thread that called this, and has no descriptors but its streams. Its pid once it is executed; an error if it cannot
/// be, and then nothing of it is left.
pub(super) fn spawn(image: &Image<'_>, cgroup: Option<BorrowedFd<'_>>) -> Result<i32, Refused> {
    let prepared = Prepared::new(image).map_err(Step::Prepare.refused())?;
    let pid = dispositions::while_blocked(|| fork(cgroup, &prepared)).map_err(Step::Fork.refused())?;
    let (step, number) = &prepared.failed;
    match step.load(Ordering::Acquire) {
        0 => Ok(pid),
        step => {
            let _ = wait(Some(pid), libc::WEXITED);
            let error = io::Error::from_raw_os_error(number.load(Ordering::Relaxed));
            Err(Refused { step: Step::told(step), error })
        }
    }
}

impl<'a> Prepared<'a> {
    fn new(image: &Image<'a>) -> io::Result<Self> {
        let mut streams = image.streams.map(|stream| stream.map(|stream| stream.as_raw_fd()));
        let mut copies = Vec::new();
        for (number, given) in streams.iter_mut().zip(image.streams) {
            if let Some(low) = given.filter(|stream| stream.as_raw_fd() <= libc::STDERR_FILENO) {
                // A copy is above the first three.
                let copy = low.try_clone_to_owned()?;
                *number = Some(copy.as_raw_fd());
                copies.push(copy);
            }
        }
        let words = image.argv.iter().map(|word| text(word)).collect::<io::Result<Vec<_>>>()?;
        Ok(Self {
            path: text(image.path.as_os_str())?,
            argv: pointers(words.iter().map(CString::as_c_str)),
            environment: pointers(image.environment.entries().map(|(_, entry)| entry)),
            _strings: (words, image.environment),
            cwd: text(image.cwd.as_os_str())?,
            streams,
            _copies: copies,
            has_terminal: image.has_terminal,
            parent: nix::unistd::getpid().as_raw(),
            descriptors: descriptors::given(),
            failed: (AtomicU8::new(0), AtomicI32::new(0)),
        })
    }
}

fn text(text: &OsStr) -> io::Result<CString> {
    CString::new(text.as_bytes()).map_err(io::Error::from)
}

/// The least stack of a child until it is executed, in bytes.
const STACK: usize = 64 << 10;
/// The child shares the memory, and the caller goes on when it does not need it any more.
const BORROWS: libc::c_int = libc::CLONE_VM | libc::CLONE_VFORK;
/// The library's constants have a type that they do not fit.
const INTO_CGROUP: u64 = 1 << 33;
/// No handler is left: none can run in the child once it gets signals.
const CLEAR_HANDLERS: u64 = 1 << 32;

/// What a child begins with: the function,
type Entry = extern "C" fn(*mut libc::c_void) -> libc::c_int;

/// and what it is told.
struct Begin<'a> {
    prepared: &'a Prepared<'a>,
    /// It has to put itself there.
    moves: Option<BorrowedFd<'a>>,
    /// What it has to have back as the kernel has it by default.
    resets: &'a [libc::c_int],
}

#[expect(unsafe_code, reason = "no library forks into a cgroup")]
fn fork(cgroup: Option<BorrowedFd<'_>>, prepared: &Prepared<'_>) -> io::Result<i32> {
    // Room for the list of words, should the file be a script without a first line that says for what.
    let words = STACK.div_ceil(16) + prepared.argv.len();
    // Not cleared: nobody reads what he has not written there.
    let mut stack: Vec<u128> = Vec::with_capacity(words);
    let stack = &mut stack.spare_capacity_mut()[..words];
    let begins = Begin { prepared, moves: None, resets: dispositions::ignored() };
    // SAFETY: the stack is aligned, grows down from its end, and lives until the child does not need it any more, as does all
    // that it reads. The child calls nothing but `become_child`, and handles no signal. What it does to its signals,
    // descriptors and folder is not gymrun's, since only the memory is shared: of that it writes its stack, the caller's
    // `errno`, and atomically what it could not do.
    unsafe {
        match clone(cgroup, stack, &begins) {
            // A kernel before 5.5, or a container that forbids the call because it cannot look into its arguments.
            Err(error) if matches!(error.raw_os_error(), Some(libc::ENOSYS | libc::EPERM | libc::EINVAL)) => {
                let begins = Begin { prepared, moves: cgroup, resets: dispositions::all() };
                let top = stack.as_mut_ptr().add(words).cast();
                let told = ptr::from_ref(&begins).cast_mut().cast();
                match libc::clone(begin, top, BORROWS | libc::SIGCHLD, told) {
                    -1 => Err(io::Error::last_os_error()),
                    pid => Ok(pid),
                }
            }
            cloned => cloned,
        }
    }
}

#[expect(unsafe_code, reason = "the memory is shared until the child is executed")]
extern "C" fn begin(begin: *mut libc::c_void) -> libc::c_int {
    // SAFETY: it is a `Begin`, of one who waits for this.
    unsafe { become_child(&*begin.cast::<Begin<'_>>()) }
}

/// `clone3`, which is the call that can begin in a cgroup. Nothing but the machine's own language can make it where the
/// child has another stack.
#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
#[expect(unsafe_code, reason = "no library forks into a cgroup")]
unsafe fn clone(
    cgroup: Option<BorrowedFd<'_>>,
    stack: &mut [MaybeUninit<u128>],
    begins: &Begin<'_>,
) -> io::Result<i32> {
    let size = size_of::<libc::clone_args>();
    let mut result = libc::SYS_clone3;
    // SAFETY: zeroed is a valid argument. The child has all registers of the caller but the stack's and the result, calls
    // `begin` and does not come back from there; the caller goes on behind that, as from any call of the system.
    unsafe {
        let mut arguments = std::mem::zeroed::<libc::clone_args>();
        arguments.flags = u64::from(BORROWS.cast_unsigned()) | CLEAR_HANDLERS;
        arguments.exit_signal = u64::from(libc::SIGCHLD.cast_unsigned());
        arguments.stack = stack.as_mut_ptr() as u64;
        arguments.stack_size = size_of_val(stack) as u64;
        if let Some(cgroup) = cgroup {
            arguments.flags |= INTO_CGROUP;
            arguments.cgroup = u64::from(cgroup.as_raw_fd().cast_unsigned());
        }
        let begins = ptr::from_ref(begins);
        #[cfg(target_arch = "x86_64")]
        std::arch::asm!(
            "syscall",
            "test rax, rax",
            "jnz 2f",
            "xor ebp, ebp",
            "mov rdi, r12",
            "call r13",
            "ud2",
            "2:",
            inlateout("rax") result,
            in("rdi") &raw mut arguments,
            in("rsi") size,
            in("r12") begins,
            in("r13") begin as Entry,
            lateout("rcx") _,
            lateout("r11") _,
        );
        #[cfg(target_arch = "aarch64")]
        std::arch::asm!(
            "svc 0",
            "cbnz x0, 2f",
            "mov x29, xzr",
            "mov x0, x20",
            "blr x21",
            "brk 1",
            "2:",
            inlateout("x0") &raw mut arguments => result,
            in("x1") size,
            in("x8") libc::SYS_clone3,
            in("x20") begins,
            in("x21") begin as Entry,
        );
    }
    let number = i32::try_from(result).unwrap_or_default();
    if number < 0 { Err(io::Error::from_raw_os_error(-number)) } else { Ok(number) }
}

#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
unsafe fn clone(_: Option<BorrowedFd<'_>>, _: &mut [MaybeUninit<u128>], _: &Begin<'_>) -> io::Result<i32> {
    Err(io::Error::from_raw_os_error(libc::ENOSYS))
}

/// What happens in the child between fork and exec: only async-signal-safe calls on plain values; nothing allocates,
/// locks or touches memory of others.
#[expect(unsafe_code, reason = "the child must be put in order between fork and exec")]
unsafe fn become_child(begin: &Begin<'_>) -> ! {
    let prepared = begin.prepared;
    // SAFETY: all pointers are to whole strings and lists of the parent's.
    unsafe {
        let step = put_in_order(begin).err().unwrap_or(Step::Execute);
        if step == Step::Execute {
            libc::execvpe(prepared.path.as_ptr(), prepared.argv.as_ptr(), prepared.environment.as_ptr());
        }
        prepared.failed.1.store(*libc::__errno_location(), Ordering::Relaxed);
        prepared.failed.0.store(step as u8, Ordering::Release);
        libc::_exit(exit::FAILED)
    }
}

#[expect(unsafe_code, reason = "the child must be put in order between fork and exec")]
unsafe fn put_in_order(begin: &Begin<'_>) -> Result<(), Step> {
    let prepared = begin.prepared;
    // SAFETY: as above.
    unsafe {
        if let Some(cgroup) = begin.moves {
            let list = libc::openat(cgroup.as_raw_fd(), c"cgroup.procs".as_ptr(), libc::O_WRONLY | libc::O_CLOEXEC);
            if list < 0 || libc::write(list, c"0".as_ptr().cast(), 1) != 1 {
                return Err(Step::Fork);
            }
        }
        if libc::setpgid(0, 0) != 0 || libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL) != 0 {
            return Err(Step::Order);
        }
        // If gymrun died before the call above, nobody will send that signal any more.
        if libc::getppid() != prepared.parent {
            libc::_exit(exit::FAILED);
        }
        for (stream, number) in prepared.streams.iter().zip(0..) {
            if let Some(stream) = stream
                && libc::dup2(*stream, number) < 0
            {
                return Err(Step::Order);
            }
        }
        if libc::chdir(prepared.cwd.as_ptr()) != 0 {
            return Err(Step::Directory);
        }
        if let Some(limit) = &prepared.descriptors
            && libc::setrlimit(libc::RLIMIT_NOFILE, limit) != 0
        {
            return Err(Step::Order);
        }
        for signal in begin.resets {
            // Fails for those that cannot be changed, which is what is wanted.
            libc::signal(*signal, libc::SIG_DFL);
        }
        if prepared.has_terminal {
            libc::signal(libc::SIGTSTP, libc::SIG_IGN);
        }
        let mut none = std::mem::zeroed::<libc::sigset_t>();
        libc::sigemptyset(&raw mut none);
        libc::sigprocmask(libc::SIG_SETMASK, &raw const none, ptr::null_mut());
        // Whatever gymrun itself inherited goes no further; a kernel before 5.11 refuses, and our own are marked.
        libc::syscall(libc::SYS_close_range, 3_u32, u32::MAX, libc::CLOSE_RANGE_CLOEXEC);
        Ok(())
    }
}
