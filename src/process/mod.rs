//! One child process: group, stdio, signals, and the one reaper.
//!
//! All children are spawned by one thread that lives as long as gymrun, because Linux ties a parent-death signal to the
//! thread that forked. One other thread waits for every process there is to wait for, those that gymrun adopted as a
//! subreaper included: there is no other `wait` anywhere. Both hold one lock while they fork or reap, so an exit is never
//! seen before its start, and nobody else's wait can take an exit status away.

mod copy;
mod exit;
mod kill;
mod launch;
mod os_signals;
mod program;
mod reaper;
mod terminal;

pub use copy::{Copier, CopyPlan, Destination, LineSink, Source};
pub use exit::Exit;
pub use kill::{kill_group, send_signal, signal_group};
pub use launch::{Launch, LaunchError, LaunchErrorKind, Output, Started};
pub use os_signals::{OsSignals, Told};
pub use reaper::{adopted, launch, launch_and_wait};
