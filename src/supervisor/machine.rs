//! The nouns of the table in `state`: units and their rules, phases, stages, inputs and actions.

use std::sync::Arc;

use crate::events::{ExitStatus, StopReason};
use crate::plan::{Kind, OnExit, Plan, Readiness};

/// The index of a unit in its plan.
pub type UnitId = usize;

/// What the table knows of a unit: never changes.
#[derive(Clone, Debug, PartialEq)]
pub struct Rule {
    /// Its name.
    pub name: String,
    /// What it is to the job.
    pub kind: Kind,
    /// It is started when those are ready.
    pub needs: Vec<UnitId>,
    /// Those that need it.
    pub needed_by: Vec<UnitId>,
    /// When it is ready.
    pub ready: ReadyWhen,
    /// Whether it is asked if it is alive for as long as it is ready.
    pub liveness: bool,
    /// What its unexpected end does.
    pub on_exit: OnExit,
}

/// When a unit is ready.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReadyWhen {
    /// As soon as it runs.
    Started,
    /// When the host says so.
    Probed,
    /// When it has ended with 0.
    Done,
}

/// The rules of a plan. The driver and the collector need no edges: the stages keep their order.
#[must_use]
pub fn rules(plan: &Plan) -> Arc<[Rule]> {
    let position = |name: &str| plan.units.iter().position(|u| u.name == name);
    plan.units
        .iter()
        .enumerate()
        .map(|(id, unit)| Rule {
            name: unit.name.clone(),
            kind: unit.kind,
            needs: unit
                .depends_on
                .iter()
                .filter_map(|name| position(name))
                .filter(|id| plan.units[*id].kind.in_middle())
                .collect(),
            needed_by: (0..plan.units.len())
                .filter(|other| *other != id && plan.units[*other].depends_on.contains(&unit.name))
                .collect(),
            ready: match unit.readiness {
                Readiness::Started => ReadyWhen::Started,
                Readiness::Probe(_) => ReadyWhen::Probed,
                Readiness::Exited { .. } => ReadyWhen::Done,
            },
            liveness: unit.liveness.is_some(),
            on_exit: unit.on_exit,
        })
        .collect()
}

/// What a unit is doing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    /// Not started yet.
    Waiting,
    /// The host is starting it.
    Starting,
    /// Runs, not ready.
    Up,
    /// Runs and is ready.
    Ready,
    /// Runs, did not get ready in time, and the job goes on without it.
    Late,
    /// A task that has ended with 0.
    Done,
    /// Ended of itself; what it left behind may still run.
    Dead,
    /// Could not be started.
    Missing,
    /// Not started since one that it needs failed.
    Skipped,
    /// The host has not got it started in the time that there was: nobody waits for that any more.
    Stuck,
    /// The host is stopping it.
    Stopping,
    /// It hung: the host is stopping it, and the job goes on without it or ends.
    Felled,
    /// The host is stopping it, or what it left behind, so that it can be started again.
    Recycling,
    /// Nothing of it runs; it is started again once its back-off is over.
    Resting,
    /// It and its whole tree are gone, or were given up: nobody waits for them any more.
    Gone,
}

impl Phase {
    /// Nothing of it runs and nothing will.
    #[must_use]
    pub fn over(self) -> bool {
        matches!(self, Self::Waiting | Self::Missing | Self::Skipped | Self::Stuck | Self::Resting | Self::Gone)
    }

    /// Its process runs, or has left something behind, and nobody is stopping it yet.
    #[must_use]
    pub fn stoppable(self) -> bool {
        matches!(self, Self::Up | Self::Ready | Self::Late | Self::Done | Self::Dead)
    }

    /// Its process runs, and nobody is stopping it or has given it up.
    #[must_use]
    pub fn runs(self) -> bool {
        matches!(self, Self::Up | Self::Ready | Self::Late)
    }

    /// What needs it may start.
    #[must_use]
    pub fn satisfies(self) -> bool {
        matches!(self, Self::Ready | Self::Done)
    }

    /// What needs it will never start.
    #[must_use]
    pub fn fails(self) -> bool {
        matches!(self, Self::Late | Self::Dead | Self::Missing | Self::Skipped | Self::Felled)
    }
}

/// Where the job is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Stage {
    /// The collector, then the others.
    Start,
    /// All are ready; the driver runs.
    Serve,
    /// The driver is being stopped, or what it left behind.
    EndDriver,
    /// The last scrape.
    EndScrape,
    /// The last memory sample.
    EndSample,
    /// Services and servers, in reverse order.
    EndUnits,
    /// The collector.
    EndCollector,
    /// Everything at once, after a second signal.
    EndAll,
    /// Nothing is left.
    Over,
}

/// What decided how the job ends: the first of them stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Cause {
    /// The driver ended before anybody stopped it.
    DriverEnded(ExitStatus),
    /// The driver could not be started; the code is a shell's.
    DriverMissing(i32),
    /// The time limit.
    TimeLimit,
    /// gymrun was told to stop by this signal.
    Told(i32),
    /// A unit died that had been ready.
    Died(UnitId),
    /// A unit did not get ready or could not be started.
    NotReady(UnitId),
}

/// What happened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Input {
    /// The job begins.
    Begin,
    /// A unit runs.
    Spawned(UnitId),
    /// A unit could not be started.
    SpawnFailed(UnitId, i32),
    /// A unit has still not been started at its limit.
    NotStarted(UnitId),
    /// A unit's probe is good.
    ProbeGood(UnitId),
    /// A unit did not get ready in time.
    NotReady(UnitId),
    /// A unit's process ended.
    Exited(UnitId, ExitStatus),
    /// Something of a unit got SIGKILL.
    Killed(UnitId),
    /// A unit that is ready does not answer any more.
    Hung(UnitId),
    /// Whether a unit may be started again as far as its limit goes. Comes before each end or failure of one that may at
    /// all, for that one.
    Restarts(UnitId, bool),
    /// A unit's back-off is over.
    Rested(UnitId),
    /// A unit and its whole tree are gone.
    Gone(UnitId),
    /// Something of a unit got SIGKILL and did not die of it, or is not let go: nobody waits for it any more. If it was the
    /// process itself its end may still come.
    GivenUp(UnitId),
    /// The last scrape is over.
    Scraped,
    /// The last sample is taken.
    Sampled,
    /// gymrun got a signal.
    Told(i32),
    /// The time limit is over.
    TimeUp,
}

/// What is to be done, in this order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Action {
    /// Start a unit.
    Spawn(UnitId),
    /// Find out when a unit is ready, within its limit.
    Await(UnitId),
    /// Say when the time is over in which a unit may still be started.
    LimitStart(UnitId),
    /// Say that a unit is ready.
    Ready(UnitId),
    /// Ask from now on whether a unit is alive.
    Guard(UnitId),
    /// Say that a unit hangs.
    Hung(UnitId),
    /// Count a restart of a unit, and say when it will be.
    Restart(UnitId),
    /// Keep the ports of a unit of which nothing is left, which is to be started again.
    Hold(UnitId),
    /// Say when the back-off of a unit is over.
    Rest(UnitId),
    /// Say that a unit did not get ready in time.
    Late(UnitId),
    /// Say that a unit is not started because of another.
    Skip {
        /// The unit.
        unit: UnitId,
        /// The one that failed.
        because: UnitId,
    },
    /// Say how a unit ended.
    Ended {
        /// The unit.
        unit: UnitId,
        /// How.
        status: ExitStatus,
        /// Whether that was due.
        expected: bool,
        /// Whether gymrun had asked it to end, or was about to.
        asked: bool,
        /// Whether it had been ready.
        was_ready: bool,
    },
    /// Say that a unit failed and the job goes on without it.
    GoOnWithout(UnitId),
    /// Say that the collector died and the job goes on without telemetry.
    LostCollector,
    /// All are ready: begin to sample.
    Serve,
    /// The ordered stop begins. `hurried`: within its fixed budget.
    BeginStop {
        /// Why.
        reason: StopReason,
        /// Whether graces are cut to fit.
        hurried: bool,
    },
    /// From now on graces are cut to fit.
    Hurry,
    /// Give up finding out whether a unit is ready.
    Forget(UnitId),
    /// Stop a unit and its whole tree.
    Stop(UnitId),
    /// Make the last scrape.
    Scrape,
    /// Take the last sample.
    Sample,
    /// Kill everything that is being stopped, at once.
    KillAll,
    /// Nothing is left.
    Finish,
}
