//! The terminal on standard input, lent to a child that inherits it.
//!
//! A child has a process group of its own, and the kernel lets only the foreground group read from a terminal. So the
//! child's group becomes the foreground one for as long as it runs: Ctrl-C is then the child's. Ctrl-Z is ignored there,
//! since no shell would know of the child to wake it up again.

use nix::sys::signal::{Signal, killpg};
use nix::unistd::{Pid, getpgrp};

/// Whether standard input is a terminal whose foreground group is gymrun's.
pub(super) fn is_ours() -> bool {
    foreground() == Some(getpgrp())
}

/// Makes a group the foreground one. From now on gymrun may write to the terminal all the same.
pub(super) fn lend(group: i32) {
    ignore_background_writes();
    let group = Pid::from_raw(group);
    set_foreground(group);
    // It may have tried to read already, and was stopped for it.
    let _ = killpg(group, Signal::SIGCONT);
}

/// Makes gymrun's own group the foreground one again.
pub(super) fn take_back() {
    set_foreground(getpgrp());
}

#[expect(unsafe_code, reason = "nix has it behind a feature that nothing else needs")]
fn foreground() -> Option<Pid> {
    // SAFETY: the call takes a plain number; it fails where that is no terminal.
    let group = unsafe { libc::tcgetpgrp(libc::STDIN_FILENO) };
    (group > 0).then(|| Pid::from_raw(group))
}

#[expect(unsafe_code, reason = "nix has it behind a feature that nothing else needs")]
fn set_foreground(group: Pid) {
    // SAFETY: the call takes plain numbers; if the terminal is gone there is nothing to set.
    unsafe {
        libc::tcsetpgrp(libc::STDIN_FILENO, group.as_raw());
    }
}

#[expect(unsafe_code, reason = "ignoring a signal is an unsafe call")]
fn ignore_background_writes() {
    // SAFETY: no handler is set, so none can run.
    unsafe {
        libc::signal(libc::SIGTTOU, libc::SIG_IGN);
    }
}
