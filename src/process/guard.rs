//! A process that outlives a gymrun which is killed, and takes the job's cgroup along.
//!
//! What gymrun starts dies with it, but not what that has started. The guard is a copy of gymrun that does nothing: it
//! waits at a pipe that nobody but gymrun can write to. A word says that the job is over; the pipe's end without one says
//! that gymrun is gone, and then the guard has the kernel kill the cgroup. It is in a session of its own, outside of the
//! job's cgroup, blocks every signal, holds nothing open but the pipe and the file that kills, and shares its memory with
//! gymrun as it was when the job began.

use std::fs::File;
use std::io::{self, Write as _};
use std::os::fd::{AsRawFd as _, RawFd};

use super::cgroup::Cgroup;
use super::reaper::registry;

/// The guard of a job. Dropped, it ends.
#[derive(Debug)]
pub(super) struct Guard {
    pipe: io::PipeWriter,
}

impl Guard {
    /// Starts one.
    pub(super) fn start(cgroup: &Cgroup) -> io::Result<Self> {
        let (end, pipe) = io::pipe()?;
        let kill = File::options().write(true).open(cgroup.path().join("cgroup.kill"))?;
        registry().spawn_guard(|| fork(end.as_raw_fd(), kill.as_raw_fd()))?;
        Ok(Self { pipe })
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        // If it cannot be told, what it then does harms nobody: the job is over.
        let _ = self.pipe.write_all(b"x");
    }
}

#[expect(unsafe_code, reason = "the guard is a fork that never executes anything")]
fn fork(end: RawFd, kill: RawFd) -> io::Result<i32> {
    // SAFETY: the masks are filled in before they are read; the child keeps to async-signal-safe calls.
    unsafe {
        let mut all = std::mem::zeroed::<libc::sigset_t>();
        let mut before = std::mem::zeroed::<libc::sigset_t>();
        libc::sigfillset(&raw mut all);
        libc::pthread_sigmask(libc::SIG_SETMASK, &raw const all, &raw mut before);
        let pid = libc::fork();
        if pid == 0 {
            watch(end, kill);
        }
        let error = io::Error::last_os_error();
        libc::pthread_sigmask(libc::SIG_SETMASK, &raw const before, std::ptr::null_mut());
        if pid < 0 { Err(error) } else { Ok(pid) }
    }
}

#[expect(unsafe_code, reason = "the guard is a fork that never executes anything")]
unsafe fn watch(end: RawFd, kill: RawFd) -> ! {
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
        let mut word = 0_u8;
        let got = libc::read(end, (&raw mut word).cast(), 1);
        if got == 0 {
            libc::write(kill, c"1".as_ptr().cast(), 1);
        }
        libc::_exit(0)
    }
}
