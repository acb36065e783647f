//! One process, forked and executed by the kernel's own calls.
//!
//! The standard library cannot fork a child straight into a cgroup, and moving it there afterwards costs milliseconds:
//! the kernel waits until no other process of the machine forks or exits. So this is done here, for every child alike.
//! All that the child needs is made before the fork, since another thread may hold any lock when it happens. Signals are
//! blocked meanwhile, so that none of gymrun's handlers runs in the child.

use std::collections::BTreeMap;
use std::ffi::{CString, OsStr, OsString};
use std::io::{self, Read as _};
use std::os::fd::{AsRawFd as _, BorrowedFd, OwnedFd, RawFd};
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;
use std::ptr;

use super::wait::wait;
use crate::diag::exit;

/// What is executed, and in which surroundings.
pub(super) struct Image<'a> {
    /// The file.
    pub(super) path: &'a Path,
    pub(super) argv: &'a [OsString],
    /// The whole environment.
    pub(super) environment: &'a BTreeMap<OsString, OsString>,
    pub(super) cwd: &'a Path,
    /// Standard input, output and error; `None` leaves gymrun's own.
    pub(super) streams: [Option<BorrowedFd<'a>>; 3],
    /// It has gymrun's terminal.
    pub(super) has_terminal: bool,
}

/// The parts of an image as the kernel wants them.
struct Prepared {
    path: CString,
    argv: Strings,
    environment: Strings,
    cwd: CString,
    /// Each above the first three, so that none is overwritten before it is used.
    streams: [Option<OwnedFd>; 3],
    has_terminal: bool,
    parent: i32,
    /// Closed by a successful exec; else gets the number of the error.
    failed: RawFd,
}

/// Strings, and the list of pointers to them that ends with null.
struct Strings {
    _strings: Vec<CString>,
    pointers: Vec<*const libc::c_char>,
}

impl Strings {
    fn new(strings: impl Iterator<Item = io::Result<CString>>) -> io::Result<Self> {
        let strings = strings.collect::<io::Result<Vec<_>>>()?;
        let pointers = strings.iter().map(|string| string.as_ptr()).chain([ptr::null()]).collect();
        Ok(Self { _strings: strings, pointers })
    }
}

/// Forks, into that cgroup if one is given, and executes. The child is the leader of a process group of its own, dies with
/// the thread that called this, and has no descriptors but its streams. Its pid once it is executed; an error if it cannot
/// be, and then nothing of it is left.
pub(super) fn spawn(image: &Image<'_>, cgroup: Option<BorrowedFd<'_>>) -> io::Result<i32> {
    let (mut told, failed) = io::pipe()?;
    let prepared = Prepared::new(image, failed.as_raw_fd())?;
    let pid = fork(cgroup, &prepared)?;
    drop(failed);
    let mut number = [0; 4];
    if told.read_exact(&mut number).is_err() {
        return Ok(pid);
    }
    let _ = wait(Some(pid), libc::WEXITED);
    Err(io::Error::from_raw_os_error(i32::from_ne_bytes(number)))
}

impl Prepared {
    fn new(image: &Image<'_>, failed: RawFd) -> io::Result<Self> {
        let mut streams = [None, None, None];
        for (own, given) in streams.iter_mut().zip(image.streams) {
            // A copy is above the first three.
            *own = given.map(|stream| stream.try_clone_to_owned()).transpose()?;
        }
        let variable = |(name, value): (&OsString, &OsString)| {
            let mut entry = name.clone();
            entry.push("=");
            entry.push(value);
            text(&entry)
        };
        Ok(Self {
            path: text(image.path.as_os_str())?,
            argv: Strings::new(image.argv.iter().map(|word| text(word)))?,
            environment: Strings::new(image.environment.iter().map(variable))?,
            cwd: text(image.cwd.as_os_str())?,
            streams,
            has_terminal: image.has_terminal,
            parent: nix::unistd::getpid().as_raw(),
            failed,
        })
    }
}

fn text(text: &OsStr) -> io::Result<CString> {
    CString::new(text.as_bytes()).map_err(io::Error::from)
}

#[expect(unsafe_code, reason = "no library forks into a cgroup")]
fn fork(cgroup: Option<BorrowedFd<'_>>, prepared: &Prepared) -> io::Result<i32> {
    // SAFETY: the masks are filled in before they are read. The child calls nothing but `become_child`, which keeps to
    // what is allowed after a fork in a process with threads.
    unsafe {
        let mut all = std::mem::zeroed::<libc::sigset_t>();
        let mut before = std::mem::zeroed::<libc::sigset_t>();
        libc::sigfillset(&raw mut all);
        libc::pthread_sigmask(libc::SIG_SETMASK, &raw const all, &raw mut before);
        let mut pid = clone(cgroup);
        let mut moves = None;
        if pid < 0 && matches!(io::Error::last_os_error().raw_os_error(), Some(libc::ENOSYS | libc::EPERM)) {
            // A kernel before 5.3, or a container that forbids the call because it cannot look into its arguments.
            pid = libc::c_long::from(libc::fork());
            moves = cgroup;
        }
        if pid == 0 {
            become_child(prepared, moves);
        }
        let error = io::Error::last_os_error();
        libc::pthread_sigmask(libc::SIG_SETMASK, &raw const before, ptr::null_mut());
        if pid < 0 { Err(error) } else { Ok(i32::try_from(pid).unwrap_or_default()) }
    }
}

#[expect(unsafe_code, reason = "no library forks into a cgroup")]
unsafe fn clone(cgroup: Option<BorrowedFd<'_>>) -> libc::c_long {
    // SAFETY: zeroed is a valid argument; without CLONE_VM the child gets its own copy of the memory, as with fork.
    unsafe {
        let mut arguments = std::mem::zeroed::<libc::clone_args>();
        arguments.exit_signal = u64::from(libc::SIGCHLD.cast_unsigned());
        if let Some(cgroup) = cgroup {
            // The library's constant has a type that it does not fit.
            arguments.flags = 1 << 33;
            arguments.cgroup = u64::from(cgroup.as_raw_fd().cast_unsigned());
        }
        libc::syscall(libc::SYS_clone3, &raw mut arguments, size_of::<libc::clone_args>())
    }
}

/// What happens in the child between fork and exec: only async-signal-safe calls on plain values; nothing allocates,
/// locks or touches memory of others.
#[expect(unsafe_code, reason = "the child must be put in order between fork and exec")]
unsafe fn become_child(prepared: &Prepared, cgroup: Option<BorrowedFd<'_>>) -> ! {
    // SAFETY: all pointers are to whole strings and lists of the parent's copy.
    unsafe {
        if put_in_order(prepared, cgroup) {
            libc::execvpe(
                prepared.path.as_ptr(),
                prepared.argv.pointers.as_ptr(),
                prepared.environment.pointers.as_ptr(),
            );
        }
        let number = (*libc::__errno_location()).to_ne_bytes();
        libc::write(prepared.failed, number.as_ptr().cast(), number.len());
        libc::_exit(exit::FAILED)
    }
}

#[expect(unsafe_code, reason = "the child must be put in order between fork and exec")]
unsafe fn put_in_order(prepared: &Prepared, cgroup: Option<BorrowedFd<'_>>) -> bool {
    // SAFETY: as above.
    unsafe {
        if let Some(cgroup) = cgroup {
            let list = libc::openat(cgroup.as_raw_fd(), c"cgroup.procs".as_ptr(), libc::O_WRONLY | libc::O_CLOEXEC);
            if list < 0 || libc::write(list, c"0".as_ptr().cast(), 1) != 1 {
                return false;
            }
        }
        if libc::setpgid(0, 0) != 0 || libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL) != 0 {
            return false;
        }
        // If gymrun died before the call above, nobody will send that signal any more.
        if libc::getppid() != prepared.parent {
            libc::_exit(exit::FAILED);
        }
        for (stream, number) in prepared.streams.iter().zip(0..) {
            if let Some(stream) = stream
                && libc::dup2(stream.as_raw_fd(), number) < 0
            {
                return false;
            }
        }
        if libc::chdir(prepared.cwd.as_ptr()) != 0 {
            return false;
        }
        for signal in 1..=64 {
            // Fails for those that cannot be changed, which is what is wanted.
            libc::signal(signal, libc::SIG_DFL);
        }
        if prepared.has_terminal {
            libc::signal(libc::SIGTSTP, libc::SIG_IGN);
        }
        let mut none = std::mem::zeroed::<libc::sigset_t>();
        libc::sigemptyset(&raw mut none);
        libc::sigprocmask(libc::SIG_SETMASK, &raw const none, ptr::null_mut());
        // Whatever gymrun itself inherited goes no further; a kernel before 5.11 refuses, and our own are marked.
        libc::syscall(libc::SYS_close_range, 3_u32, u32::MAX, libc::CLOSE_RANGE_CLOEXEC);
        true
    }
}
