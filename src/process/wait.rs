//! The one wait for the end of a process.

use super::exit::Exit;

/// What a wait found.
pub(super) enum Waited {
    /// This process has ended.
    Ended(i32, Exit),
    /// Nothing yet.
    Nothing,
    /// There is no process to wait for.
    NoChildren,
}

/// Waits for one child, or for any.
#[expect(unsafe_code, reason = "nix loses the status of a process that a real-time signal ended")]
pub(super) fn wait(pid: Option<i32>, flags: libc::c_int) -> Waited {
    let (kind, id) = pid.map_or((libc::P_ALL, 0), |pid| (libc::P_PID, pid.cast_unsigned()));
    // SAFETY: zeroed is a valid siginfo_t, the kernel fills it in, and its fields are read only where it says so.
    unsafe {
        let mut info = std::mem::zeroed::<libc::siginfo_t>();
        if libc::waitid(kind, id, &raw mut info, flags) != 0 {
            let error = std::io::Error::last_os_error().raw_os_error();
            return if error == Some(libc::ECHILD) { Waited::NoChildren } else { Waited::Nothing };
        }
        match (info.si_pid(), info.si_code) {
            (0, _) => Waited::Nothing,
            (pid, libc::CLD_EXITED) => Waited::Ended(pid, Exit::Code(info.si_status())),
            (pid, _) => Waited::Ended(pid, Exit::Signal(info.si_status())),
        }
    }
}
