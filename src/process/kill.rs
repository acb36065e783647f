//! Signals to processes and groups.

use std::io;
use std::os::fd::{AsRawFd as _, FromRawFd as _, OwnedFd};

use nix::sys::signal::{Signal, killpg};
use nix::unistd::Pid;

use super::reaper::registry;
use crate::plan::StopSignal;
use crate::procfs::{Identity, Proc};

fn number(signal: StopSignal) -> Signal {
    match signal {
        StopSignal::Term => Signal::SIGTERM,
        StopSignal::Int => Signal::SIGINT,
        StopSignal::Quit => Signal::SIGQUIT,
        StopSignal::Hup => Signal::SIGHUP,
        StopSignal::Usr1 => Signal::SIGUSR1,
        StopSignal::Usr2 => Signal::SIGUSR2,
    }
}

/// Sends a stop signal to the process group of a spawned child. Nothing is sent once the child has been reaped: its number
/// may be another's then. Whether it was.
#[must_use]
pub fn signal_group(leader: Identity, signal: StopSignal) -> bool {
    send_to_group(leader, number(signal))
}

/// Wakes those of the group that are stopped, so that they can obey a signal that they have got, with the same condition.
pub fn wake_group(leader: Identity) {
    let _ = send_to_group(leader, Signal::SIGCONT);
}

/// Sends SIGKILL to the process group of a spawned child, with the same condition.
#[must_use]
pub fn kill_group(leader: Identity) -> bool {
    send_to_group(leader, Signal::SIGKILL)
}

fn send_to_group(leader: Identity, signal: Signal) -> bool {
    registry().while_unreaped(leader, || {
        // It can only fail because the group is gone.
        let _ = killpg(Pid::from_raw(leader.pid), signal);
    })
}

/// Sends a stop signal to exactly that process, and wakes it if it is stopped, so that it can obey; SIGKILL for `None`.
/// Whether it was there to get it.
#[must_use]
pub fn send_signal(identity: Identity, signal: Option<StopSignal>) -> bool {
    let there = send(identity, signal.map_or(Signal::SIGKILL, number));
    if there && signal.is_some() {
        wake(identity);
    }
    there
}

/// Wakes that process if it is stopped.
pub fn wake(identity: Identity) {
    // One that is gone by now needs no waking.
    let _ = send(identity, Signal::SIGCONT);
}

/// Stops that process until it is killed (SIGSTOP): it starts no others meanwhile.
pub fn freeze(identity: Identity) {
    // One that is gone by now starts no others either.
    let _ = send(identity, Signal::SIGSTOP);
}

fn send(identity: Identity, signal: Signal) -> bool {
    match open(identity.pid) {
        Ok(handle) => {
            // The handle is of whoever had the pid when it was opened: compare only now.
            Proc::default().identity(identity.pid) == Some(identity) && send_to(&handle, signal)
        }
        Err(error) if error.raw_os_error() == Some(libc::ESRCH) => false,
        // A kernel before 5.3: the pid is all there is.
        Err(_) => {
            Proc::default().identity(identity.pid) == Some(identity)
                && nix::sys::signal::kill(Pid::from_raw(identity.pid), signal).is_ok()
        }
    }
}

#[expect(unsafe_code, reason = "nix has no pidfd_open")]
fn open(pid: i32) -> io::Result<OwnedFd> {
    // SAFETY: the call takes plain numbers; what it returns is a new descriptor that nobody else owns.
    unsafe {
        let descriptor = libc::syscall(libc::SYS_pidfd_open, pid, 0);
        let descriptor = i32::try_from(descriptor).unwrap_or(-1);
        if descriptor < 0 { Err(io::Error::last_os_error()) } else { Ok(OwnedFd::from_raw_fd(descriptor)) }
    }
}

#[expect(unsafe_code, reason = "nix has no pidfd_send_signal")]
fn send_to(handle: &OwnedFd, signal: Signal) -> bool {
    let none = std::ptr::null::<libc::siginfo_t>();
    // SAFETY: the descriptor is open, and a null siginfo is allowed.
    unsafe { libc::syscall(libc::SYS_pidfd_send_signal, handle.as_raw_fd(), signal as libc::c_int, none, 0) == 0 }
}

#[cfg(test)]
mod tests {
    use super::{send_signal, signal_group};
    use crate::plan::StopSignal;
    use crate::procfs::{Family, Identity, Proc};

    #[test]
    fn whoever_has_the_pid_by_now_gets_nothing() {
        let family = Family::start("exec sleep 300");
        let proc = Proc::default();
        let now = proc.identity(family.child).expect("it runs");
        for former in [Identity { started: now.started - 1, ..now }, Identity { started: now.started + 1, ..now }] {
            for signal in [None, Some(StopSignal::Term)] {
                assert!(!send_signal(former, signal));
            }
            // A group gets signals for as long as its leader has not been reaped, and this one was not spawned here.
            assert!(!signal_group(former, StopSignal::Term));
        }
        assert!(!signal_group(now, StopSignal::Term));
        assert!(proc.stat(family.child).is_some_and(|stat| stat.alive()));
        assert!(send_signal(now, None));
        while proc.stat(family.child).is_some_and(|stat| stat.alive()) {
            std::thread::yield_now();
        }
    }
}
