//! Signals to gymrun itself, as data.

use std::future::poll_fn;
use std::io;
use std::task::Poll;

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
    /// Another one that by default ends who gets it, as SIGUSR1 from `scancel --signal`: its number.
    Other(i32),
}

/// The others. Faults of gymrun itself are not among them.
const OTHERS: [Number; 9] = [
    Number::SIGUSR1,
    Number::SIGUSR2,
    Number::SIGALRM,
    Number::SIGVTALRM,
    Number::SIGPROF,
    Number::SIGXCPU,
    Number::SIGIO,
    Number::SIGPWR,
    Number::SIGSTKFLT,
];

impl Told {
    /// All of them: the first of those that wait is heard first. The last are those that mean nothing to the kernel
    /// (real-time signals, as from `scancel --signal=35`).
    fn all() -> impl Iterator<Item = Self> {
        let others = OTHERS.into_iter().map(|number| number as i32).chain(libc::SIGRTMIN()..=libc::SIGRTMAX());
        [Self::Interrupt, Self::Terminate, Self::HangUp, Self::Quit].into_iter().chain(others.map(Self::Other))
    }

    /// The number of the signal.
    #[must_use]
    pub fn number(self) -> i32 {
        match self {
            Self::Interrupt => libc::SIGINT,
            Self::Terminate => libc::SIGTERM,
            Self::HangUp => libc::SIGHUP,
            Self::Quit => libc::SIGQUIT,
            Self::Other(number) => number,
        }
    }

    /// Whether it is left alone: it is ignored already, since somebody said `nohup` or the like. The background processes
    /// of a shell have those of the keyboard ignored, and mean nothing by it.
    fn ignored(self) -> bool {
        matches!(self, Self::HangUp | Self::Other(_)) && is_ignored(self.number())
    }
}

/// Those signals wait from now on, in this thread and those that it starts, until [`OsSignals::new`] hears them: nobody
/// ends gymrun while it has begun a job directory and cannot say yet how that ended. A file that has become as large as this
/// process may make one (`ulimit -f`) is an error of the write from now on, and no longer the end.
pub fn hold_signals() -> io::Result<()> {
    ignore_large_files();
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
        waiting
    };
    // SAFETY: the set is valid.
    let has = |told: &Told| unsafe { libc::sigismember(&raw const waiting, told.number()) == 1 };
    // What is ignored waits, too, while it is blocked.
    Told::all().filter(|told| !told.ignored()).find(has)
}

#[expect(unsafe_code, reason = "nix knows no real-time signals")]
fn orders() -> SigSet {
    // SAFETY: an empty set is made valid, and only then given numbers of signals and handed on.
    unsafe {
        let mut set = std::mem::zeroed::<libc::sigset_t>();
        libc::sigemptyset(&raw mut set);
        for told in Told::all() {
            libc::sigaddset(&raw mut set, told.number());
        }
        SigSet::from_sigset_t_unchecked(set)
    }
}

/// The one door through which signals come in.
#[derive(Debug)]
pub struct OsSignals(Vec<(Told, Signal)>);

impl OsSignals {
    /// From now on those signals are data; those that are ignored stay so, but for SIGINT, SIGTERM and SIGQUIT. What was held
    /// comes first, also where it was who started gymrun that held it. A file as large as this process may make one is an
    /// error of the write, as in [`hold_signals`].
    pub fn new() -> io::Result<Self> {
        ignore_large_files();
        let heard = Told::all().filter(|told| !told.ignored());
        let signals = heard.filter_map(|told| match signal(SignalKind::from_raw(told.number())) {
            Ok(signal) => Some(Ok((told, signal))),
            // A tool that gymrun runs in has one of these for itself, as valgrind the last.
            Err(_) if told.number() >= libc::SIGRTMIN() => None,
            Err(error) => Some(Err(error)),
        });
        let signals = signals.collect::<io::Result<_>>()?;
        orders().thread_unblock()?;
        Ok(Self(signals))
    }

    /// The next one; of those that came at once SIGINT, then SIGTERM.
    pub async fn next(&mut self) -> Told {
        poll_fn(|context| {
            let heard =
                self.0.iter_mut().find_map(|(told, signal)| signal.poll_recv(context).is_ready().then_some(*told));
            heard.map_or(Poll::Pending, Poll::Ready)
        })
        .await
    }
}

#[expect(unsafe_code, reason = "ignoring a signal is an unsafe call")]
fn ignore_large_files() {
    // SAFETY: no handler is set, so none can run.
    unsafe {
        libc::signal(libc::SIGXFSZ, libc::SIG_IGN);
    }
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

    #[test]
    #[expect(unsafe_code, reason = "nix knows no real-time signals")]
    fn a_signal_that_has_no_name_is_held_and_seen_as_well() {
        let seen = std::thread::spawn(|| {
            hold_signals().expect("they can be blocked");
            // SAFETY: they are blocked in this thread, which ends with them.
            let raised = [libc::SIGRTMAX(), libc::SIGRTMIN()].map(|number| unsafe { libc::raise(number) });
            assert_eq!(raised, [0, 0]);
            told_meanwhile()
        });
        assert_eq!(seen.join().expect("it ends"), Some(Told::Other(libc::SIGRTMIN())));
    }
}
