//! Signals to gymrun itself, as data.

use std::io;

use nix::sys::signal::{SigSet, Signal as Number};
use tokio::signal::unix::{Signal, SignalKind, signal};

use super::dispositions::is_ignored;

/// gymrun was told to stop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Told {
    /// SIGINT, as Ctrl-C sends it.
    Interrupt,
    /// SIGTERM.
    Terminate,
    /// SIGHUP: the terminal is gone.
    HangUp,
    /// SIGQUIT, as Ctrl-\\ sends it: by default it would end gymrun without its children.
    Quit,
}

impl Told {
    /// The number of the signal.
    #[must_use]
    pub fn number(self) -> i32 {
        match self {
            Self::Interrupt => libc::SIGINT,
            Self::Terminate => libc::SIGTERM,
            Self::HangUp => libc::SIGHUP,
            Self::Quit => libc::SIGQUIT,
        }
    }
}

/// Those signals wait from now on, in this thread and those that it starts, until [`OsSignals::new`] hears them: nobody
/// ends gymrun while it has begun a job directory and cannot say yet how that ended.
pub fn hold_signals() -> io::Result<()> {
    Ok(orders().thread_block()?)
}

/// What came of those that are held, by whom ever.
#[must_use]
#[expect(unsafe_code, reason = "nix cannot tell which signals wait")]
pub fn told_meanwhile() -> Option<Told> {
    // SAFETY: zeroed is a valid set, which the call fills in.
    let waiting = unsafe {
        let mut waiting = std::mem::zeroed::<libc::sigset_t>();
        if libc::sigpending(&raw mut waiting) != 0 {
            return None;
        }
        SigSet::from_sigset_t_unchecked(waiting)
    };
    // What is ignored waits, too, while it is blocked.
    let obeyed = |told: &Told| *told != Told::HangUp || !hang_up_ignored();
    let has = |told: &Told| Number::try_from(told.number()).is_ok_and(|signal| waiting.contains(signal));
    [Told::Interrupt, Told::Terminate, Told::HangUp, Told::Quit].into_iter().filter(obeyed).find(has)
}

fn orders() -> SigSet {
    [Number::SIGINT, Number::SIGTERM, Number::SIGHUP, Number::SIGQUIT].into_iter().collect()
}

/// The one door through which signals come in.
#[derive(Debug)]
pub struct OsSignals {
    interrupt: Signal,
    terminate: Signal,
    hang_up: Option<Signal>,
    quit: Signal,
}

impl OsSignals {
    /// From now on those signals are data. SIGHUP stays ignored where it was ignored: somebody said `nohup`. A file that
    /// has become as large as this process may make one (`ulimit -f`) is an error of the write, and no longer the end.
    /// Those that were held come first, also where it was who started gymrun that held them.
    pub fn new() -> io::Result<Self> {
        ignore_large_files();
        let signals = Self {
            interrupt: signal(SignalKind::interrupt())?,
            terminate: signal(SignalKind::terminate())?,
            quit: signal(SignalKind::quit())?,
            hang_up: if hang_up_ignored() { None } else { Some(signal(SignalKind::hangup())?) },
        };
        orders().thread_unblock()?;
        Ok(signals)
    }

    /// The next one; of those that came at once the one with the lower number, but for SIGHUP and SIGQUIT.
    pub async fn next(&mut self) -> Told {
        let hang_up = async {
            match &mut self.hang_up {
                Some(signal) => signal.recv().await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            biased;
            _ = self.interrupt.recv() => Told::Interrupt,
            _ = self.terminate.recv() => Told::Terminate,
            _ = hang_up => Told::HangUp,
            _ = self.quit.recv() => Told::Quit,
        }
    }
}

#[expect(unsafe_code, reason = "ignoring a signal is an unsafe call")]
fn ignore_large_files() {
    // SAFETY: no handler is set, so none can run.
    unsafe {
        libc::signal(libc::SIGXFSZ, libc::SIG_IGN);
    }
}

fn hang_up_ignored() -> bool {
    is_ignored(libc::SIGHUP)
}

#[cfg(test)]
mod tests {
    use nix::sys::signal::raise;

    use super::{Number, Told, hold_signals, orders, told_meanwhile};

    #[test]
    fn a_signal_that_is_held_is_seen_before_it_is_heard() {
        // In a thread of its own: what is blocked there, and raised there, is nobody else's.
        let seen = std::thread::spawn(|| {
            hold_signals().expect("they can be blocked");
            let before = told_meanwhile();
            raise(Number::SIGTERM).expect("it can be raised");
            let after = told_meanwhile();
            assert_eq!(orders().wait(), Ok(Number::SIGTERM));
            (before, after, told_meanwhile())
        });
        assert_eq!(seen.join().expect("it ends"), (None, Some(Told::Terminate), None));
    }
}
