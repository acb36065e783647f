//! A process that outlives a gymrun which is killed, and takes the job's cgroup along.
//!
//! What gymrun starts dies with it, but not what that has started. The guard is a copy of gymrun that does nothing: it
//! waits at a pipe that nobody but gymrun can write to. A word says that the job is over; the pipe's end without one says
//! that gymrun is gone, and then the guard has the kernel kill the cgroup. It is in a session of its own, outside of the
//! job's cgroup, blocks every signal, holds nothing open but the pipe and the file that kills, and next to no memory of its own:
//! what gymrun writes to is given back at once, the rest both share. Its end is told to nobody, as that of a thread: no wait for children sees it, and
//! gymrun waits for it alone, at the very end.

use std::fs::File;
use std::io::{self, Write as _};
use std::os::fd::{AsRawFd as _, RawFd};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use super::cgroup::Cgroup;
use super::dispositions::while_blocked;
use super::footprint::ProgramFile;
use super::inherited::shed_inherited_memory;
use super::reaper::registry;

/// The guard of a job. Dropped, it is gone.
#[derive(Debug)]
pub(super) struct Guard {
    /// `None` once it was told to end.
    pipe: Option<io::PipeWriter>,
    pid: i32,
}

impl Guard {
    /// Starts one.
    pub(super) fn start(cgroup: &Cgroup) -> io::Result<Self> {
        let (end, pipe) = io::pipe()?;
        let kill = File::options().write(true).open(cgroup.path().join("cgroup.kill"))?;
        let pid = registry().spawn_guard(|| fork(end.as_raw_fd(), kill.as_raw_fd()))?;
        Ok(Self { pipe: Some(pipe), pid })
    }

    /// Tells it to end, and does not wait.
    pub(super) fn dismiss(&mut self) {
        if let Some(mut pipe) = self.pipe.take() {
            // If it cannot be told, what it then does harms nobody: the job is over.
            let _ = pipe.write_all(b"x");
        }
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        self.dismiss();
        // It may be stopped. Its number is its own as long as nobody has waited for it.
        let _ = kill(Pid::from_raw(self.pid), Signal::SIGKILL);
        registry().reap_guard(self.pid);
    }
}

#[expect(unsafe_code, reason = "the guard is a fork that never executes anything")]
fn fork(end: RawFd, kill: RawFd) -> io::Result<i32> {
    // A fork whose end sends no signal: a wait for children does not see it.
    let flags: libc::c_ulong = 0;
    let none = std::ptr::null::<libc::c_void>();
    let program = ProgramFile::find();
    // SAFETY: without flags the child has all memory for itself, and goes on on its own copy of this stack; it keeps to
    // async-signal-safe calls.
    while_blocked(|| unsafe {
        match libc::syscall(libc::SYS_clone, flags, none, none, none, none) {
            0 => watch(end, kill, &program),
            pid => i32::try_from(pid).ok().filter(|pid| *pid > 0).ok_or_else(io::Error::last_os_error),
        }
    })
}

#[expect(unsafe_code, reason = "the guard is a fork that never executes anything")]
unsafe fn watch(end: RawFd, kill: RawFd, program: &ProgramFile) -> ! {
    // SAFETY: plain numbers and one byte of this function's own; nothing allocates or locks.
    unsafe {
        libc::setsid();
        libc::chdir(c"/".as_ptr());
        libc::prctl(libc::PR_SET_NAME, c"job-guard".as_ptr());
        // Others wait for the end of what gymrun has open.
        let (low, high) = (end.min(kill).cast_unsigned(), end.max(kill).cast_unsigned());
        for (first, last) in [(0, low - 1), (low + 1, high - 1), (high + 1, u32::MAX)] {
            if first <= last && libc::syscall(libc::SYS_close_range, first, last, 0) != 0 {
                // A kernel before 5.9 has neither this call nor `cgroup.kill`.
                libc::_exit(0);
            }
        }
        shed_inherited_memory();
        wait_for_the_word(end, kill, program)
    }
}

/// From here on no other page of the program is needed.
#[inline(never)]
#[expect(unsafe_code, reason = "the guard is a fork that never executes anything")]
unsafe extern "C" fn wait_for_the_word(end: RawFd, kill: RawFd, program: &ProgramFile) -> ! {
    program.shed_all_but((wait_for_the_word as *const ()).addr());
    // SAFETY: plain numbers and bytes of this function's own.
    unsafe {
        let mut word = 0_u8;
        let got = libc::read(end, (&raw mut word).cast(), 1);
        if got == 0 {
            let one = b'1';
            libc::write(kill, (&raw const one).cast(), 1);
        }
        libc::_exit(0)
    }
}
