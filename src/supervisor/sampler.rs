//! Samples the memory of the host and of each unit's process tree, on a thread of its own.

use std::collections::{HashMap, HashSet};
use std::io;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::{Duration, Instant};

use super::resolve::seconds;
use crate::events::{EventKind, HostMemory, Sample, Sink, TreeSample};
use crate::plan::{Kind, MemoryPlan};
use crate::process;
use crate::procfs::{Members, Proc};

/// A unit whose tree is sampled.
#[derive(Clone, Debug)]
pub struct Sampled {
    /// Its name.
    pub process: String,
    /// What it is to the job.
    pub kind: Kind,
    /// `nemo.gym.server.type`.
    pub type_name: String,
    /// How its tree is found.
    pub members: Members,
}

enum Order {
    Add(Sampled),
    /// The process itself ended; its daemons may live on.
    Ended(String),
    Finish(Box<dyn FnOnce() + Send>),
}

/// A running sampler. It samples at once, then at each interval, and a last time when it is finished.
#[derive(Debug)]
pub struct Sampler {
    orders: mpsc::Sender<Order>,
}

impl Sampler {
    /// Starts the thread.
    pub fn start(plan: &MemoryPlan, units: Vec<Sampled>, sink: Sink) -> io::Result<Self> {
        let (orders, inbox) = mpsc::channel();
        let mut work = Work {
            interval: seconds(plan.interval_seconds).max(Duration::from_millis(10)),
            pss_interval: plan.enabled.then(|| seconds(plan.pss_interval_seconds)),
            units: Vec::new(),
            running: HashSet::new(),
            peaks: HashMap::new(),
            host_peak: 0,
            warned: HashSet::new(),
            proc: Proc::default(),
            sink,
        };
        for unit in units {
            work.add(unit);
        }
        thread::Builder::new().name("sampler".into()).stack_size(256 * 1024).spawn(move || work.run(&inbox))?;
        Ok(Self { orders })
    }

    /// One more unit.
    pub fn add(&self, unit: Sampled) {
        // The thread is gone only after `finish`: then nobody samples any more.
        let _ = self.orders.send(Order::Add(unit));
    }

    /// A unit's process ended.
    pub fn ended(&self, process: &str) {
        let _ = self.orders.send(Order::Ended(process.to_owned()));
    }

    /// Takes the last sample, then calls `done`.
    pub fn finish(self, done: impl FnOnce() + Send + 'static) {
        if let Err(mpsc::SendError(Order::Finish(done))) = self.orders.send(Order::Finish(Box::new(done))) {
            done();
        }
    }
}

struct Work {
    interval: Duration,
    /// `None`: never.
    pss_interval: Option<Duration>,
    units: Vec<Sampled>,
    running: HashSet<String>,
    /// RSS and PSS of each unit.
    peaks: HashMap<String, (u64, Option<u64>)>,
    host_peak: u64,
    /// Pids that do not show their PSS, and were named.
    warned: HashSet<i32>,
    proc: Proc,
    sink: Sink,
}

impl Work {
    fn add(&mut self, unit: Sampled) {
        self.running.insert(unit.process.clone());
        self.units.push(unit);
    }

    fn run(&mut self, inbox: &mpsc::Receiver<Order>) {
        let start = Instant::now();
        let mut next = start;
        let mut next_pss = start;
        loop {
            let now = Instant::now();
            if now >= next {
                let with_pss = self.pss_interval.is_some() && now >= next_pss;
                self.sample(with_pss);
                next = following(next, self.interval, Instant::now());
                if let (true, Some(interval)) = (with_pss, self.pss_interval) {
                    next_pss = following(next_pss, interval, now);
                }
            }
            match inbox.recv_timeout(next.saturating_duration_since(Instant::now())) {
                Ok(Order::Add(unit)) => self.add(unit),
                Ok(Order::Ended(process)) => {
                    self.running.remove(&process);
                }
                Ok(Order::Finish(done)) => {
                    self.sample(self.pss_interval.is_some());
                    return done();
                }
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => return,
            }
        }
    }

    fn sample(&mut self, with_pss: bool) {
        let host = self.proc.host_memory();
        let used = host.total.saturating_sub(host.available);
        self.host_peak = self.host_peak.max(used);
        let members: Vec<Members> = self.units.iter().map(|u| u.members.clone()).collect();
        let found = self.proc.members(&members, &process::adopted());
        let mut trees = Vec::new();
        for (unit, stats) in self.units.iter().zip(found) {
            let memory = self.proc.tree_memory(stats.iter().map(|s| s.identity.pid), with_pss);
            if memory.processes == 0 {
                continue;
            }
            for pid in &memory.refused {
                if self.warned.insert(*pid) {
                    let message =
                        format!("pid {pid} does not show its proportional memory: it is left out of the tree's");
                    self.sink.warn(Some(&unit.process), message, None);
                }
            }
            let peak = self.peaks.entry(unit.process.clone()).or_default();
            peak.0 = peak.0.max(memory.rss);
            peak.1 = peak.1.max(memory.pss);
            trees.push(TreeSample {
                process: unit.process.clone(),
                kind: unit.kind,
                type_name: unit.type_name.clone(),
                pid: unit.members.root.pid.cast_unsigned(),
                rss: memory.rss,
                pss: memory.pss,
                processes: memory.processes,
                peak_rss: peak.0,
                peak_pss: peak.1,
            });
        }
        let active = self.units.iter().filter(|u| u.kind == Kind::Server && self.running.contains(&u.process)).count();
        let sample = Sample {
            host: HostMemory { used, available: host.available, total: host.total, peak: self.host_peak },
            trees,
            servers_active: u32::try_from(active).unwrap_or(u32::MAX),
        };
        self.sink.emit(EventKind::MemorySampled(Box::new(sample)));
    }
}

/// The next tick on the grid of `last` and `interval`; those that were missed are left out.
fn following(last: Instant, interval: Duration, now: Instant) -> Instant {
    let next = last + interval;
    if next > now { next } else { now + interval }
}
