//! Samplers of this process: the floor and gymrun's.

use std::fs::File;
use std::os::unix::fs::FileExt as _;
use std::time::Duration;

use gymrun::procfs::{Census, Ends, Identity, Members, Proc};
use nix::time::{ClockId, clock_gettime};

use crate::statistics::Series;

/// CPU time of this thread.
pub fn cpu() -> Duration {
    Duration::from(clock_gettime(ClockId::CLOCK_THREAD_CPUTIME_ID).expect("a clock"))
}

/// CPU microseconds of one call: the median of many.
pub fn cost<T>(times: usize, mut act: impl FnMut() -> T) -> f64 {
    act();
    let mut series = Series::default();
    for _ in 0..times {
        let before = cpu();
        std::hint::black_box(act());
        series.push(cpu().saturating_sub(before).as_secs_f64() * 1e6);
    }
    series.median()
}

/// Nothing but the reads.
pub struct Floor {
    files: Vec<File>,
    buffer: Vec<u8>,
}

impl Floor {
    pub fn open(root: i32, file: &str) -> Self {
        let pids = Proc::default().descendants(&[root]);
        let open = |pid: i32| File::open(format!("/proc/{pid}/{file}")).expect("it runs");
        Self { files: pids.into_iter().map(open).collect(), buffer: vec![0; 4096] }
    }

    pub fn sample(&mut self) {
        for file in &self.files {
            file.read_at(&mut self.buffer, 0).expect("it runs");
        }
    }
}

/// gymrun's own.
pub struct Ours {
    census: Census,
    unit: Members,
}

impl Ours {
    pub fn begin(root: i32) -> Self {
        let root: Identity = Proc::default().identity(root).expect("it runs");
        Self {
            census: Census::new(Proc::default(), Ends::default()),
            unit: Members { root, mark: "GYMRUN_PROCESS=bench:none".into(), cgroup: None },
        }
    }

    /// Processes, and bytes of RSS or PSS.
    pub fn sample(&mut self, with_pss: bool) -> (usize, u64) {
        self.census.walk(std::slice::from_ref(&self.unit), &[]).expect("there are descriptors");
        let memory = self.census.memory(self.unit.root, with_pss).expect("there are descriptors");
        std::hint::black_box(self.census.cpu_time(self.unit.root));
        (memory.processes as usize, memory.pss.unwrap_or(memory.rss))
    }
}
