//! The host that is this machine.

use std::collections::HashSet;
use std::path::PathBuf;
use std::sync::mpsc::{Receiver, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::sync::{mpsc, watch};
use tokio::task::{AbortHandle, JoinHandle};
use tokio::time::Instant;

use super::answer::Witness;
use super::budget::{Pace, until};
use super::collector::CollectorLink;
use super::coroner::{Coroner, Death};
use super::disk::DiskWatch;
use super::host::{Host, Report};
use super::logs::{Logs, NewLife};
use super::looks::Looks;
use super::machine::UnitId;
use super::ports::Reservations;
use super::resolve::{Resolved, seconds};
use super::sampler::{Sampled, Sampler};
use super::show::ShowOutput;
use super::slot::Slot;
use super::teardown;
use super::watch::{until_hung, until_ready};
use crate::diag::exit;
use crate::events::{Delivery, ExitStatus, Sink};
use crate::plan::{Kind, Plan, Readiness};
use crate::process::{self, Copier, CopyPlan, Launch, Started, in_words};
use crate::procfs::Proc;

/// A start that takes longer is stuck, when there is no time.
const MOMENT: Duration = Duration::from_secs(1);
/// How long after all is ready gymrun needs what the start has needed: the first samples, the driver's start, an end.
const CALM: Duration = Duration::from_secs(2);

/// What the host needs besides the plan.
pub(super) struct Setting {
    pub(super) plan: Arc<Plan>,
    pub(super) resolved: Vec<Resolved>,
    pub(super) reservations: Reservations,
    pub(super) job_dir: PathBuf,
    pub(super) show: ShowOutput,
    pub(super) sink: Sink,
    pub(super) collector: Option<CollectorLink>,
    pub(super) before_collector_stop: Box<dyn FnOnce() + Send>,
}

/// Runs units as children of this process.
pub(super) struct LocalHost {
    setting: Setting,
    reports: mpsc::UnboundedSender<Report>,
    slots: Vec<Arc<Slot>>,
    logs: Logs,
    disk: Arc<DiskWatch>,
    watches: Vec<Option<AbortHandle>>,
    /// Write what the output of units that were started again still owed.
    earlier: Vec<JoinHandle<()>>,
    sampler: Option<Sampler>,
    coroner: Arc<Coroner>,
    looks: Looks,
    /// What an otelcol said of its delivery before it was stopped.
    pub(super) delivery: Arc<Mutex<Option<Result<Delivery, String>>>>,
}

impl LocalHost {
    pub(super) fn new(setting: Setting, reports: mpsc::UnboundedSender<Report>) -> Self {
        let slots = setting.resolved.iter().map(|unit| Arc::new(Slot::new(unit))).collect();
        let watches = setting.resolved.iter().map(|_| None).collect();
        let looks = Looks::start(Proc::default());
        let logs = Logs::new(&setting.plan.units, &setting.job_dir, setting.sink.clone());
        let watch = |sink| logs.watch(&setting.plan, &setting.job_dir, sink);
        let disk = Arc::new(DiskWatch::new(&setting.job_dir, &setting.sink, watch));
        disk.look_every(Duration::ZERO);
        Self {
            setting,
            reports,
            slots,
            logs,
            disk,
            watches,
            earlier: Vec::new(),
            sampler: None,
            coroner: Arc::new(Coroner::new(Proc::default(), std::process::id())),
            looks,
            delivery: Arc::default(),
        }
    }

    fn report(&self, report: Report) {
        // The engine listens until everything is over; after that nobody needs to know.
        let _ = self.reports.send(report);
    }

    /// A unit that ran before gets a new slot; what its output still owes is written meanwhile, and in the log when what is
    /// given ends.
    fn renew(&mut self, unit: UnitId) -> Option<Receiver<()>> {
        self.slots[unit].root.get()?;
        if let Some(cgroup) = self.slots[unit].cgroup.as_ref() {
            self.setting.resolved[unit].put_into(cgroup.renew());
        }
        let new = Arc::new(Slot::new(&self.setting.resolved[unit]));
        let earlier = std::mem::replace(&mut self.slots[unit], new);
        let (name, sink) = (self.setting.plan.units[unit].name.clone(), self.setting.sink.clone());
        let (to_file, filed) = channel();
        self.earlier.push(tokio::spawn(async move { earlier.finish(&name, &sink, Some(to_file)).await }));
        Some(filed)
    }

    /// What is called, on the spawning thread, once the child runs or does not.
    fn on_start(
        &self,
        unit: UnitId,
        life: NewLife,
    ) -> impl FnOnce(Result<Started, process::LaunchError>) + Send + use<> {
        let slot = Arc::clone(&self.slots[unit]);
        let reports = self.reports.clone();
        let show = self.setting.show.clone();
        let sink = self.setting.sink.clone();
        let name = self.setting.plan.units[unit].name.clone();
        let driver = self.setting.plan.units[unit].kind == Kind::Driver;
        let failed_reports = self.reports.clone();
        let failed = move |message, code| drop(failed_reports.send(Report::SpawnFailed { unit, message, code }));
        move |result| match result {
            Ok(started) => {
                let (log, piped) = life.begin(started.log_begin);
                if let Some((log, turn)) = piped {
                    let sources = show.sources(started.pipes, &name, driver, &sink);
                    match Copier::start(CopyPlan { sources, log, turn }) {
                        Ok(copier) => drop(slot.copier.set(copier)),
                        Err(error) => {
                            // It would be ended as soon as it writes.
                            let _ = process::kill_group(started.identity);
                            return failed(format!("nobody can read its output: {}", in_words(&error)), exit::FAILED);
                        }
                    }
                }
                let _ = slot.root.set(started.identity);
                let _ = slot.since.set(Instant::now());
                let _ = slot.log.set(log);
                if let Some(error) = started.outside {
                    let _ = slot.outside.set(());
                    let why = in_words(&error);
                    let message = format!("it does not run in its cgroup ({why}): its processes are found by a walk");
                    sink.warn(Some(&name), message, None);
                }
                let _ = reports.send(Report::Spawned { unit, pid: started.identity.pid.cast_unsigned() });
            }
            Err(error) => failed(error.to_string(), error.code()),
        }
    }

    fn sampled(&self, unit: UnitId) -> Option<Sampled> {
        let members = self.slots[unit].members()?;
        Some(Sampled::of(&self.setting.plan.units[unit], &self.setting.plan.telemetry.memory, members))
    }

    /// Who judges the answers to the unit's probes.
    fn witness(&self, unit: UnitId) -> Arc<Witness> {
        Witness::new(unit, &self.setting.resolved[unit], &self.slots[unit], &self.reports)
    }

    /// Whether the collector was started at all.
    pub(super) fn collector_ran(&self) -> bool {
        let collector = self.setting.plan.units.iter().position(|u| u.kind == Kind::Collector);
        collector.is_some_and(|unit| self.slots[unit].root.get().is_some())
    }

    /// Ends every copier: what was written is in the files, whoever still holds a pipe, and shown as far as somebody
    /// reads it.
    pub(super) async fn finish(&mut self) {
        if let Some(sampler) = self.sampler.take() {
            // Everything was killed: there was no last sample, and nothing comes after the end.
            sampler.mute();
        }
        let units = self.slots.iter().zip(&self.setting.plan.units);
        let all = units.map(|(slot, unit)| slot.finish(&unit.name, &self.setting.sink, None));
        futures_util::future::join_all(all).await;
        futures_util::future::join_all(self.earlier.drain(..)).await;
        self.logs.finish(&self.setting.plan).await;
    }

    /// Looks at the disk for the last time.
    pub(super) async fn look_at_disk(&self) {
        self.disk.end().await;
    }
}

impl Host for LocalHost {
    fn spawn(&mut self, unit: UnitId, life: u64) {
        let former = self.renew(unit);
        let planned = &self.setting.plan.units[unit];
        let resolved = &self.setting.resolved[unit];
        let (output, log) = self.logs.output(unit, planned, former);
        let launch = Launch {
            argv: resolved.argv.clone(),
            environment: Arc::clone(&resolved.environment),
            cwd: resolved.cwd.clone(),
            search: resolved.search.clone(),
            stdin: planned.stdin,
            output,
            cgroup: resolved.cgroup.clone(),
        };
        let on_start = self.on_start(unit, log);
        let slot = Arc::clone(&self.slots[unit]);
        let reports = self.reports.clone();
        let coroner = Arc::clone(&self.coroner);
        let on_exit = move |exit| {
            // One that was ended at once, since nobody could read its output, counts as not started.
            if slot.root.get().is_some() {
                let status = ExitStatus::from(exit);
                coroner.inspect(&slot, status);
                let _ = reports.send(Report::Exited { unit, life, status });
            }
        };
        self.setting.reservations.release(planned);
        process::launch(launch, on_start, on_exit);
    }

    fn limit_start(&mut self, unit: UnitId, mut pace: watch::Receiver<Pace>) {
        let grace = seconds(self.setting.plan.units[unit].stop.grace_seconds);
        let reports = self.reports.clone();
        tokio::spawn(async move {
            let start = Instant::now();
            // Whatever the hurry, one that is just being started gets the moment that this takes.
            let deadline = |pace: Pace| pace.kill_at(start, grace).max(start + MOMENT);
            until(&mut pace, deadline, std::future::pending::<()>()).await;
            let _ = reports.send(Report::NotStarted { unit });
        });
    }

    fn watch(&mut self, unit: UnitId) {
        let since = self.slots[unit].since.get().copied().unwrap_or_else(Instant::now);
        let reports = self.reports.clone();
        let task = match (&self.setting.resolved[unit].probe, &self.setting.plan.units[unit].readiness) {
            (Some(probe), _) => tokio::spawn(until_ready(probe.clone(), self.witness(unit), since)),
            (None, Readiness::Exited { timeout_seconds: Some(limit) }) => {
                let limit = seconds(*limit);
                tokio::spawn(async move {
                    tokio::time::sleep_until(since + limit).await;
                    let _ = reports.send(Report::NotReady { unit, limit, answer: "it still runs".into() });
                })
            }
            _ => return,
        };
        self.watches[unit] = Some(task.abort_handle());
    }

    fn guard(&mut self, unit: UnitId) {
        let (Some(target), Some(liveness)) =
            (self.setting.resolved[unit].liveness.clone(), &self.setting.plan.units[unit].liveness)
        else {
            return;
        };
        let (interval, failures) = (seconds(liveness.interval_seconds), liveness.failure_threshold);
        let task = tokio::spawn(until_hung(target, interval, failures, self.witness(unit)));
        self.watches[unit] = Some(task.abort_handle());
    }

    fn hold(&mut self, unit: UnitId) {
        for message in self.setting.reservations.hold_again(&self.setting.plan.units[unit]) {
            self.report(Report::Warning { unit: Some(unit), message, hint: None });
        }
    }

    fn rest(&mut self, unit: UnitId, backoff: Duration) {
        let reports = self.reports.clone();
        tokio::spawn(async move {
            tokio::time::sleep(backoff).await;
            let _ = reports.send(Report::Rested { unit });
        });
    }

    fn forget(&mut self, unit: UnitId) {
        if let Some(task) = self.watches[unit].take() {
            task.abort();
        }
    }

    fn heard(&mut self, unit: UnitId, runs: bool) {
        if let (true, Some(root)) = (runs, self.slots[unit].root.get()) {
            self.coroner.begins(root.pid.cast_unsigned());
        }
        if !runs {
            // Not by who reaped it: those who wait for this are tasks of this thread, which is woken once for both.
            self.slots[unit].ended.send_replace(true);
        }
        let Some(sampler) = &self.sampler else { return };
        if !runs {
            sampler.ended(&self.setting.plan.units[unit].name);
        } else if let Some(sampled) = self.sampled(unit) {
            sampler.add(sampled);
        }
    }

    fn start_sampler(&mut self) {
        // By then there is next to nothing to do, for hours, or all is over.
        process::shed_memory_after(CALM);
        let running = (0..self.slots.len()).filter(|unit| self.slots[*unit].running());
        let units = running.filter_map(|unit| self.sampled(unit)).collect();
        let memory = &self.setting.plan.telemetry.memory;
        let (sink, closing) = self.setting.sink.closable();
        let sink = self.coroner.sees(&sink);
        match Sampler::start(memory, units, sink, closing, Proc::default(), self.coroner.ends()) {
            Ok(sampler) => {
                self.sampler = Some(sampler);
                // From now on the job is calm, and wants to be: the disk is looked at as often as everything else.
                self.disk.look_every(seconds(memory.interval_seconds));
            }
            Err(error) => self.report(Report::Warning {
                unit: None,
                message: format!("memory is not sampled: {}", in_words(&error)),
                hint: None,
            }),
        }
    }

    fn stop_sampler(&mut self, pace: watch::Receiver<Pace>) {
        let reports = self.reports.clone();
        let sampler = self.sampler.take();
        self.disk.look_every(Duration::ZERO);
        tokio::spawn(async move {
            if let Some(sampler) = sampler
                && !sampler.stop(pace).await
            {
                let message = "the last memory sample is missing: reading it took too long".to_owned();
                let _ = reports.send(Report::Warning { unit: None, message, hint: None });
            }
            let _ = reports.send(Report::Sampled);
        });
    }

    fn scrape(&mut self, pace: watch::Receiver<Pace>) {
        let reports = self.reports.clone();
        let collector = self.setting.collector.clone();
        let its_unit = self.setting.plan.units.iter().position(|unit| unit.kind == Kind::Collector);
        let since = its_unit.and_then(|id| self.slots[id].since.get().copied());
        tokio::spawn(async move {
            let start = Instant::now();
            let (forced, error) = match collector {
                Some(collector) => collector.last_scrape(since.unwrap_or(start), pace).await,
                None => (false, None),
            };
            let _ = reports.send(Report::Scraped { forced, took: start.elapsed(), error });
        });
    }

    fn stop(&mut self, unit: UnitId, pace: watch::Receiver<Pace>) {
        self.forget(unit);
        let _ = self.slots[unit].asked.set(());
        let stop = teardown::Stop {
            unit,
            slot: Arc::clone(&self.slots[unit]),
            policy: self.setting.plan.units[unit].stop,
            reports: self.reports.clone(),
            pace,
            known: HashSet::new(),
            looks: self.looks.clone(),
        };
        let link = self.setting.collector.clone().filter(|_| self.setting.plan.units[unit].kind == Kind::Collector);
        match link {
            Some(link) => {
                let hook = std::mem::replace(&mut self.setting.before_collector_stop, Box::new(|| ()));
                let delivery = Arc::clone(&self.delivery);
                tokio::spawn(async move {
                    let said = link.stop(stop, hook).await;
                    *delivery.lock().unwrap_or_else(PoisonError::into_inner) = said;
                });
            }
            None => {
                tokio::spawn(stop.run());
            }
        }
    }

    fn look_back(&mut self, unit: UnitId, look: u64, lines: bool, ended: Option<ExitStatus>) {
        let slot = Arc::clone(&self.slots[unit]);
        let disk = Arc::clone(&self.disk);
        let reports = self.reports.clone();
        let coroner = Arc::clone(&self.coroner);
        let (name, job_dir) = (&self.setting.plan.units[unit].name, &self.setting.job_dir);
        let death = ended.map(|status| Death::of(name, &slot, &self.setting.resolved[unit], job_dir, status));
        let witness = self.witness(unit);
        tokio::spawn(async move {
            disk.look_aside().await;
            let (lines, explanation) = coroner.look_back(&slot, lines, death).await;
            let explanation = witness.explain(ended, explanation).await;
            let _ = reports.send(Report::LookedBack { unit, look, lines, explanation });
        });
    }
}
