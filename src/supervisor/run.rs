//! One job from its plan to its outcome.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fmt::Write as _;
use std::path::PathBuf;
use std::sync::{Arc, PoisonError};
use std::time::{Duration, Instant};

use tokio::sync::mpsc;
use tokio::task::spawn_blocking;
use tokio::time::timeout;

use super::collector::CollectorLink;
use super::delivery;
use super::engine::{Ended, Engine};
use super::files;
use super::host::Report;
use super::local::{LocalHost, Setting};
use super::outcome::{Outcome, judge};
use super::ports;
use super::resolve::Resolver;
use super::show::ShowOutput;
use super::teardown;
use crate::diag::{Problem, counted};
use crate::events::{Delivery, EventKind, Means, Sink};
use crate::plan::Plan;
use crate::process::{Containment, OsSignals, in_words, keep_a_blocking_thread, take_all_descriptors, told_meanwhile};
use crate::procfs::Proc;

/// How long the collector's report may take to be read.
const REPORT_LIMIT: Duration = Duration::from_secs(2);

/// What a run needs besides its plan.
pub struct RunOptions {
    /// The job directory: exists, and is locked by the caller.
    pub job_dir: PathBuf,
    /// W3C `traceparent` of gymrun's root span.
    pub traceparent: String,
    /// gymrun's own environment.
    pub environment: BTreeMap<OsString, OsString>,
    /// Where events go.
    pub sink: Sink,
    /// How output is shown.
    pub show: ShowOutput,
    /// Called at most once, on a thread of its own: services and servers are gone, the collector still takes data. Not
    /// called if there is no collector, or it is dead, or everything is being killed.
    pub before_collector_stop: Box<dyn FnOnce() + Send>,
}

impl std::fmt::Debug for RunOptions {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("RunOptions").field("job_dir", &self.job_dir).finish_non_exhaustive()
    }
}

/// Runs a whole job and returns when nothing of it is left. Blocks; not to be called inside a runtime. Says everything
/// through the sink, from `JobStarted` to `JobEnded`. From its begin on every signal that by default would end
/// gymrun and is no fault is an order to stop; after one that was held back until then nothing is started.
#[must_use]
pub fn run(plan: &Arc<Plan>, options: RunOptions) -> Outcome {
    take_all_descriptors();
    let sink = options.sink.clone();
    sink.emit(EventKind::JobStarted {
        name: plan.name.clone(),
        job_id: plan.job_id.clone(),
        job_dir: options.job_dir.display().to_string(),
        pid: std::process::id(),
        traceparent: options.traceparent.clone(),
    });
    // A job that has used up its processes (`ulimit -u`) can still be ended, one thing after the other.
    let runtime = keep_a_blocking_thread(tokio::runtime::Builder::new_current_thread().enable_all(), 0);
    let say = |outcome: &Outcome| {
        let message = outcome.message.clone();
        sink.emit(EventKind::JobEnded { code: outcome.code, class: outcome.class, message });
    };
    match runtime {
        Err(error) => {
            let outcome = Outcome::failed(format!("cannot make a runtime: {}", in_words(&error)));
            say(&outcome);
            outcome
        }
        Ok(runtime) => {
            let (outcome, rest) = runtime.block_on(run_async(plan, options));
            say(&outcome);
            // While that is written. A hook that hangs must not keep gymrun here.
            runtime.shutdown_background();
            drop(rest);
            outcome
        }
    }
}

/// What a job that is over leaves in this process: of no use to anybody, and nobody waits for its end but gymrun's own.
struct Rest {
    _ended: Ended<LocalHost>,
    /// Waits for the guard.
    _containment: Containment,
}

async fn run_async(plan: &Arc<Plan>, options: RunOptions) -> (Outcome, Option<Rest>) {
    let before = told_meanwhile();
    let told = match OsSignals::new() {
        Ok(signals) => hear(signals),
        Err(error) => return (Outcome::failed(format!("cannot take signals: {}", in_words(&error))), None),
    };
    if let Some(before) = before {
        return (Outcome::told(before.number()), None);
    }
    let sink = options.sink.clone();
    let job_dir = options.job_dir.clone();
    let (reports, inbox) = mpsc::unbounded_channel();
    let mut containment = Containment::choose(&Proc::default());
    sink.emit(EventKind::Contained(means(&containment, &sink)));
    let host = match prepare(plan, options, reports, &containment) {
        Ok(host) => host,
        Err(problem) => return (Outcome::failed(sentence(&problem)), None),
    };
    let mut ended = Engine::new(Arc::clone(plan), host, sink.clone(), inbox).run(told).await;
    // The look takes another thread: it begins before the sweep.
    let look = ended.host.look_at_disk();
    let ((), swept) = tokio::join!(biased; look, teardown::sweep(&containment, ended.pace, &ended.given_up));
    if swept.count > 0 {
        let more = if swept.count > swept.found.len() { ", ..." } else { "" };
        let list = swept.found.join(", ");
        let (one, many) = ("process that belonged to no unit was", "processes that belonged to no unit were");
        let message = format!("{} left, and ended: {list}{more}", counted(swept.count, one, many));
        sink.warn(None, message, None);
    }
    if !swept.left.is_empty() {
        sink.warn(None, format!("cannot be killed, and is left behind: pid {}", list(&swept.left)), None);
    }
    containment.close();
    ended.host.finish().await;
    while let Ok(report) = ended.reports.try_recv() {
        if let Report::Warning { message, hint, .. } = report {
            sink.warn(None, message, hint);
        }
    }
    let delivery = delivered(plan, job_dir, &ended.host, ended.state.collector_lost).await;
    match &delivery {
        Some(Ok(delivery)) => sink.emit(EventKind::Delivered(Box::new(delivery.clone()))),
        Some(Err(error)) => sink.warn(None, format!("nothing is known of the telemetry's delivery: {error}"), None),
        None => {}
    }
    let outcome = judge(plan, &ended.state, &ended.failures, &ended.explanations, delivery.as_ref());
    (outcome, Some(Rest { _ended: ended, _containment: containment }))
}

/// By which means nothing gets away. That there are no cgroups is usual, that a guard fails is not.
fn means(containment: &Containment, sink: &Sink) -> Means {
    let unguarded = containment.unguarded();
    match containment.cgroup() {
        Ok(path) => {
            if let Some(unguarded) = &unguarded {
                sink.warn(None, unguarded.clone(), None);
            }
            Means::Cgroup { cgroup: path.display().to_string(), unguarded }
        }
        Err(reason) => Means::Walk { because: reason.to_owned(), unguarded },
    }
}

/// What the collector said of its delivery; `None` if there was none to say anything.
async fn delivered(plan: &Plan, job_dir: PathBuf, host: &LocalHost, lost: bool) -> Option<Result<Delivery, String>> {
    let collector = plan.collector.as_ref()?;
    let said = host.delivery.lock().unwrap_or_else(PoisonError::into_inner).take();
    if !collector.embedded {
        return said;
    }
    // It writes the report at its end, so one that never ran or died has none: that was said already.
    let due = host.collector_ran() && !lost;
    let read = move || (due || delivery::path(&job_dir).exists()).then(|| delivery::read(&job_dir));
    match timeout(REPORT_LIMIT, spawn_blocking(read)).await {
        Ok(Ok(report)) => report,
        _ => Some(Err("the file system of its report does not answer".into())),
    }
}

/// Chooses ports, fills in every reference, writes the files.
fn prepare(
    plan: &Arc<Plan>,
    options: RunOptions,
    reports: mpsc::UnboundedSender<Report>,
    containment: &Containment,
) -> Result<LocalHost, Problem> {
    let (ports, reservations) = ports::choose(plan)?;
    options.sink.emit(EventKind::PortsChosen { ports: ports.clone() });
    for (process, warning) in &reservations.warnings {
        options.sink.warn(Some(process), warning.clone(), None);
    }
    let resolver = Resolver {
        ports,
        environment: options.environment,
        job_dir: options.job_dir.clone(),
        traceparent: options.traceparent,
    };
    let mut units = resolver.units(plan)?;
    for (number, (unit, planned)) in units.iter_mut().zip(&plan.units).enumerate() {
        if let Some(cgroup) = containment.unit(number, &planned.name) {
            unit.put_into(cgroup);
        }
    }
    let collector = plan.collector.as_ref().map(|c| CollectorLink::new(c, &resolver)).transpose()?;
    files::write(plan, &resolver)?;
    let setting = Setting {
        plan: Arc::clone(plan),
        resolved: units,
        reservations,
        job_dir: options.job_dir,
        show: options.show,
        sink: options.sink,
        collector,
        before_collector_stop: options.before_collector_stop,
    };
    Ok(LocalHost::new(setting, reports))
}

fn list(pids: &[i32]) -> String {
    pids.iter().map(i32::to_string).collect::<Vec<_>>().join(", ")
}

/// A problem in one line.
fn sentence(problem: &Problem) -> String {
    let place = if problem.location.is_unknown() { String::new() } else { problem.location.to_string() };
    let places: Vec<&str> = [problem.path.as_str(), place.as_str()].into_iter().filter(|p| !p.is_empty()).collect();
    let mut text = problem.message.clone();
    if !places.is_empty() {
        let _ = write!(text, " ({})", places.join(", "));
    }
    if let Some(hint) = &problem.hint {
        let _ = write!(text, "; {hint}");
    }
    text
}

/// Within this time after a signal another one is its echo: whoever forwards one sends it to a process that its group has
/// given it to already (`timeout`, `srun`, `docker run --init`, most that wrap a command when Ctrl-C is pressed).
const ECHO: Duration = Duration::from_secs(1);

/// The numbers of the signals that gymrun gets, without echoes.
fn hear(mut signals: OsSignals) -> mpsc::UnboundedReceiver<i32> {
    let (send, told) = mpsc::unbounded_channel();
    tokio::spawn(async move {
        let mut last: Option<Instant> = None;
        loop {
            let signal = signals.next().await.number();
            if last.is_some_and(|last| last.elapsed() < ECHO) {
                continue;
            }
            last = Some(Instant::now());
            if send.send(signal).is_err() {
                return;
            }
        }
    });
    told
}
