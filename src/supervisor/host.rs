//! What the engine asks of whoever runs processes, and what it hears back.

use std::time::Duration;

use tokio::sync::watch;

use super::budget::Pace;
use super::machine::UnitId;
use crate::events::{ExitStatus, Explanation};
use crate::procfs::Identity;

/// What a host has to say. Reports of one unit come in the order in which things happened.
#[derive(Clone, Debug, PartialEq)]
pub enum Report {
    /// A unit runs.
    Spawned {
        /// The unit.
        unit: UnitId,
        /// Its pid.
        pid: u32,
    },
    /// A unit could not be started.
    SpawnFailed {
        /// The unit.
        unit: UnitId,
        /// What is wrong, with the path.
        message: String,
        /// 125, 126 or 127.
        code: i32,
    },
    /// A unit has still not been started at the limit that was asked for.
    NotStarted {
        /// The unit.
        unit: UnitId,
    },
    /// A unit's probe is bad, and has been for a while: said once.
    StillWaiting {
        /// The unit.
        unit: UnitId,
        /// What it answered.
        answer: String,
    },
    /// A unit is ready.
    Ready {
        /// The unit.
        unit: UnitId,
    },
    /// A unit did not get ready in time.
    NotReady {
        /// The unit.
        unit: UnitId,
        /// Its limit.
        limit: Duration,
        /// What its probe answered last.
        answer: String,
    },
    /// A unit hangs: its liveness probe failed too often in a row.
    Hung {
        /// The unit.
        unit: UnitId,
        /// How often.
        failures: u32,
        /// What it answered last.
        answer: String,
    },
    /// A unit's back-off is over.
    Rested {
        /// The unit.
        unit: UnitId,
    },
    /// A unit's process ended.
    Exited {
        /// The unit.
        unit: UnitId,
        /// The number with which that process was asked for: one that was given up may end after the next has begun.
        life: u64,
        /// How.
        status: ExitStatus,
    },
    /// A unit gets its stop signal.
    Stopping {
        /// The unit.
        unit: UnitId,
        /// `SIGTERM` and the like.
        signal: String,
        /// The process itself has ended.
        has_ended: bool,
    },
    /// A unit's tree got SIGKILL.
    Killed {
        /// The unit.
        unit: UnitId,
        /// How many processes.
        processes: u32,
    },
    /// A unit and its whole tree are gone.
    Gone {
        /// The unit.
        unit: UnitId,
    },
    /// Something of a unit outlived SIGKILL, or its process has ended and cannot be reaped: that is not waited for any more.
    GivenUp {
        /// The unit.
        unit: UnitId,
        /// What is left of it.
        processes: Vec<Identity>,
    },
    /// The last scrape is over.
    Scraped {
        /// Whether it was forced.
        forced: bool,
        /// How long it took.
        took: Duration,
        /// Why it failed, if it did.
        error: Option<String>,
    },
    /// The last sample is taken.
    Sampled,
    /// What a look back at a unit found, as it was asked for.
    LookedBack {
        /// The unit.
        unit: UnitId,
        /// The number of the look.
        look: u64,
        /// What it has written last.
        lines: Vec<String>,
        /// Why it ended.
        explanation: Option<Explanation>,
    },
    /// Something that the author should know.
    Warning {
        /// The unit.
        unit: Option<UnitId>,
        /// A lower-case fragment.
        message: String,
        /// The way out.
        hint: Option<String>,
    },
}

/// Runs processes for the engine. Every call returns at once; what comes of it is a [`Report`].
pub trait Host {
    /// Starts a unit, for the first time or again: `Spawned` or `SpawnFailed`, and `Exited` at its end, with that `life`.
    fn spawn(&mut self, unit: UnitId, life: u64);
    /// Says `NotStarted` if a unit has still not been started when the time that `pace` gives it is over.
    fn limit_start(&mut self, unit: UnitId, pace: watch::Receiver<Pace>);
    /// Finds out when a unit is ready: `Ready` or `NotReady`.
    fn watch(&mut self, unit: UnitId);
    /// Finds out whether a unit that is ready hangs: `Hung`.
    fn guard(&mut self, unit: UnitId);
    /// Keeps the ports of a unit of which nothing is left until it is started again.
    fn hold(&mut self, unit: UnitId);
    /// Lets that time pass: `Rested`.
    fn rest(&mut self, unit: UnitId, backoff: Duration);
    /// Gives up what was begun by `watch` or `guard`.
    fn forget(&mut self, unit: UnitId);
    /// The engine has heard that a unit runs, or that it has ended.
    fn heard(&mut self, unit: UnitId, runs: bool);
    /// Begins to sample memory.
    fn start_sampler(&mut self);
    /// Takes the last sample and samples no more: `Sampled`.
    fn stop_sampler(&mut self, pace: watch::Receiver<Pace>);
    /// Makes the last scrape: `Scraped`.
    fn scrape(&mut self, pace: watch::Receiver<Pace>);
    /// Stops a unit with its whole tree, at the pace that `pace` says now and later: `Gone` or `GivenUp`.
    fn stop(&mut self, unit: UnitId, pace: watch::Receiver<Pace>);
    /// Reads the end of a unit's log, with all that it has written by now, if there is to be one, and finds out why it ended
    /// in that way, if it has: `LookedBack`, always.
    fn look_back(&mut self, unit: UnitId, look: u64, lines: bool, ended: Option<ExitStatus>);
}
