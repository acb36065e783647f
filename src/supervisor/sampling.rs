//! One sample: the host and the tree of each unit.

use std::collections::{HashMap, HashSet};
use std::io;
use std::time::Instant;

use super::pss_schedule::PssSchedule;
use super::resolve::seconds;
use super::sampler::Sampled;
use crate::events::{CgroupMemory, EventKind, HostMemory, Sample, Sink, TreeSample};
use crate::plan::{Kind, MemoryPlan};
use crate::process;
use crate::procfs::{Census, Ends, Identity, Members, MemoryCgroup, Proc, TreeMemory};

/// What the sampler's thread works on.
pub(super) struct Work {
    proc: Proc,
    census: Census,
    /// `None`: the proportional set is never read.
    schedule: Option<PssSchedule>,
    units: Vec<Sampled>,
    /// What units were before they were started again, until it is told how much they took to their end.
    former: Vec<Sampled>,
    /// Roots of trees without processes of which that was told.
    told: HashSet<Identity>,
    running: HashSet<String>,
    /// RSS and PSS of each unit.
    peaks: HashMap<String, (u64, Option<u64>)>,
    host_peak: u64,
    /// Which accounts for gymrun and its job.
    cgroup: Option<MemoryCgroup>,
    cgroup_peak: u64,
    /// Pids that do not show their PSS, and were named.
    warned: HashSet<i32>,
    /// It was said that processes could not be looked at.
    blind: bool,
    sink: Sink,
}

impl Work {
    pub(super) fn new(plan: &MemoryPlan, sink: Sink, proc: Proc, ends: Ends) -> Self {
        let schedule = || {
            let [tick, pss] = [plan.interval_seconds, plan.pss_interval_seconds].map(seconds);
            PssSchedule::new(pss, tick, plan.pss_rss_change, Instant::now())
        };
        Self {
            census: Census::new(proc.clone(), ends),
            cgroup: proc.cgroups().memory(std::process::id().cast_signed()),
            cgroup_peak: 0,
            proc,
            schedule: plan.enabled.then(schedule),
            units: Vec::new(),
            former: Vec::new(),
            told: HashSet::new(),
            running: HashSet::new(),
            peaks: HashMap::new(),
            host_peak: 0,
            warned: HashSet::new(),
            blind: false,
            sink,
        }
    }

    pub(super) fn add(&mut self, unit: Sampled) {
        self.running.insert(unit.process.clone());
        // One that was started again has another root.
        let former = self.units.extract_if(.., |other| other.process == unit.process);
        self.former.extend(former.filter(|former| former.included && !self.told.remove(&former.members.root)));
        if let Some(schedule) = &mut self.schedule {
            schedule.forget(&unit.process);
        }
        self.units.push(unit);
    }

    pub(super) fn ended(&mut self, process: &str) {
        self.running.remove(process);
    }

    /// A sample of the schedule.
    pub(super) fn sample(&mut self, now: Instant) {
        let all = self.schedule.as_mut().is_some_and(|schedule| schedule.all_due(now));
        self.sample_with(now, all, true);
    }

    /// The last sample; its proportional sets are read, or not even those that the schedule wants.
    pub(super) fn sample_last(&mut self, with_pss: bool) {
        self.sample_with(Instant::now(), with_pss && self.schedule.is_some(), false);
    }

    fn sample_with(&mut self, now: Instant, all_pss: bool, moved_pss: bool) {
        let trees = match self.trees(now, all_pss, moved_pss) {
            Ok(trees) => trees,
            // Half a tree would be a wrong number.
            Err(error) => return self.complain(&error),
        };
        let host = self.proc.host_memory();
        let used = host.total.saturating_sub(host.available);
        self.host_peak = self.host_peak.max(used);
        let active = self.units.iter().filter(|u| u.kind == Kind::Server && self.running.contains(&u.process)).count();
        let sample = Sample {
            host: HostMemory { used, available: host.available, total: host.total, peak: self.host_peak },
            cgroup: self.cgroup(),
            trees,
            servers_active: u32::try_from(active).unwrap_or(u32::MAX),
        };
        self.say(EventKind::MemorySampled(Box::new(sample)));
    }

    fn cgroup(&mut self) -> Option<CgroupMemory> {
        let cgroup = self.cgroup.as_ref()?;
        let used = cgroup.current()?;
        self.cgroup_peak = self.cgroup_peak.max(used);
        Some(CgroupMemory { used, limit: cgroup.limit(), peak: self.cgroup_peak })
    }

    fn trees(&mut self, now: Instant, all_pss: bool, moved_pss: bool) -> io::Result<Vec<TreeSample>> {
        let included: Vec<Sampled> = self.units.iter().filter(|u| u.included).cloned().collect();
        let members: Vec<Members> = self.former.iter().chain(&included).map(|u| u.members.clone()).collect();
        self.census.walk(&members, &process::adopted())?;
        // All that can fail comes first: what is told once is not told in vain.
        let mut looked = Vec::with_capacity(included.len());
        for unit in included {
            let memory = self.memory(&unit, now, all_pss, moved_pss)?;
            looked.push((unit, memory));
        }
        let mut trees: Vec<TreeSample> = std::mem::take(&mut self.former)
            .into_iter()
            .map(|unit| self.tree(unit, &TreeMemory::default()))
            .filter(|tree| tree.cpu_seconds > 0.0)
            .collect();
        for (unit, memory) in looked {
            let root = unit.members.root;
            if memory.processes > 0 {
                self.told.remove(&root);
            } else if self.census.cpu_time(root).is_zero() || !self.told.insert(root) {
                continue;
            }
            trees.push(self.tree(unit, &memory));
        }
        Ok(trees)
    }

    /// The resident set in each sample, the proportional one when it is its time.
    fn memory(&mut self, unit: &Sampled, now: Instant, all_pss: bool, moved_pss: bool) -> io::Result<TreeMemory> {
        let root = unit.members.root;
        let Some(schedule) = &mut self.schedule else { return self.census.memory(root, false) };
        if !all_pss {
            let memory = self.census.memory(root, false)?;
            if !moved_pss || memory.processes == 0 || !schedule.due(&unit.process, memory.rss, now) {
                return Ok(memory);
            }
        }
        let start = Instant::now();
        let memory = self.census.memory(root, true)?;
        schedule.read(&unit.process, memory.rss, now, start.elapsed());
        Ok(memory)
    }

    fn tree(&mut self, unit: Sampled, memory: &TreeMemory) -> TreeSample {
        for pid in &memory.refused {
            if self.warned.insert(*pid) {
                let message = format!("pid {pid} does not show its proportional memory: it is left out of the tree's");
                self.say(EventKind::Warning { process: Some(unit.process.clone()), message, hint: None });
            }
        }
        let peak = self.peaks.entry(unit.process.clone()).or_default();
        peak.0 = peak.0.max(memory.rss);
        peak.1 = peak.1.max(memory.pss);
        TreeSample {
            kind: unit.kind,
            type_name: unit.type_name,
            pid: unit.members.root.pid.cast_unsigned(),
            rss: memory.rss,
            pss: memory.pss,
            processes: memory.processes,
            peak_rss: peak.0,
            peak_pss: peak.1,
            cpu_seconds: self.census.cpu_time(unit.members.root).as_secs_f64(),
            process: unit.process,
        }
    }

    fn complain(&mut self, error: &io::Error) {
        if !std::mem::replace(&mut self.blind, true) {
            let message = format!("a sample of memory was left out, since processes could not be looked at: {error}");
            let hint = Some("raise the limit of open files (`ulimit -n`)".to_owned());
            self.say(EventKind::Warning { process: None, message, hint });
        }
    }

    fn say(&self, kind: EventKind) {
        self.sink.emit(kind);
    }
}
