//! What signals do to gymrun, where that matters for what it forks.

use std::sync::OnceLock;

use nix::sys::signal::{SigSet, SigmaskHow};

/// The highest number of a signal.
const LAST: libc::c_int = 64;

/// Does something while this thread gets no signal: none of gymrun's handlers runs, in the child neither that is forked.
pub(super) fn while_blocked<T>(act: impl FnOnce() -> T) -> T {
    // It fails for none but wrong arguments.
    let before = SigSet::all().thread_swap_mask(SigmaskHow::SIG_SETMASK);
    let done = act();
    if let Ok(before) = before {
        let _ = before.thread_set_mask();
    }
    done
}

/// All signals there are.
pub(super) fn all() -> &'static [libc::c_int] {
    static ALL: OnceLock<Vec<libc::c_int>> = OnceLock::new();
    ALL.get_or_init(|| (1..=LAST).collect())
}

/// The signals that gymrun ignores, at once or later: what it executes would go on ignoring them. Handlers end with exec.
pub(super) fn ignored() -> &'static [libc::c_int] {
    static IGNORED: OnceLock<Vec<libc::c_int>> = OnceLock::new();
    IGNORED.get_or_init(|| {
        // The standard library's, and our own.
        let ours = [libc::SIGPIPE, libc::SIGXFSZ, libc::SIGTTOU];
        all().iter().copied().filter(|number| ours.contains(number) || is_ignored(*number)).collect()
    })
}

/// Whether a signal is ignored now.
#[expect(unsafe_code, reason = "nix cannot ask for a disposition without setting one")]
pub(super) fn is_ignored(signal: libc::c_int) -> bool {
    // SAFETY: with a null action the call only fills in the zeroed, valid `now`.
    unsafe {
        let mut now = std::mem::zeroed::<libc::sigaction>();
        libc::sigaction(signal, std::ptr::null(), &raw mut now) == 0 && now.sa_sigaction == libc::SIG_IGN
    }
}

#[cfg(test)]
mod tests {
    use nix::sys::signal::{SigSet, Signal};

    use super::{all, ignored, while_blocked};

    #[test]
    fn nothing_comes_meanwhile_and_everything_afterwards() {
        let mask = || SigSet::thread_get_mask().expect("a mask");
        let before = mask();
        let meanwhile = while_blocked(mask);
        assert!(meanwhile.contains(Signal::SIGTERM) && meanwhile.contains(Signal::SIGCHLD));
        assert_eq!(mask(), before);
    }

    #[test]
    fn what_is_ignored_now_or_later_is_among_all() {
        assert_eq!((all()[0], all()[63], all().len()), (1, 64, 64));
        assert!([libc::SIGPIPE, libc::SIGXFSZ, libc::SIGTTOU].iter().all(|signal| ignored().contains(signal)));
        assert!(!ignored().contains(&libc::SIGTERM));
    }
}
