//! Samples the memory of the host and of each unit's process tree, on a thread of its own.

use std::io;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::{Duration, Instant};

use tokio::sync::{oneshot, watch};

use super::budget::{Pace, within};
use super::resolve::seconds;
use super::sampling::Work;
use crate::events::{Closing, Sink};
use crate::plan::{Kind, MemoryPlan, Unit};
use crate::procfs::{Ends, Members, Proc};

/// Limits of the last sample.
const LAST: Duration = Duration::from_secs(5);
const HURRIED_LAST: Duration = Duration::from_secs(1);

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
    /// Whether its memory is sampled; servers are counted either way.
    pub included: bool,
}

impl Sampled {
    /// A unit of a plan, whose tree is found by `members`.
    pub(super) fn of(planned: &Unit, memory: &MemoryPlan, members: Members) -> Self {
        Self {
            process: planned.name.clone(),
            kind: planned.kind,
            type_name: match planned.kind {
                Kind::Service => "service".into(),
                Kind::Driver => "driver".into(),
                Kind::Server | Kind::Collector => planned.type_name.clone(),
            },
            members,
            included: memory.include.iter().any(|scope| scope.covers(planned.kind)),
        }
    }
}

enum Order {
    Add(Sampled),
    /// The process itself ended; its daemons may live on.
    Ended(String),
    Finish {
        with_pss: bool,
        done: oneshot::Sender<()>,
    },
}

/// A running sampler. It samples at once, then at each interval, and a last time when it is finished.
#[derive(Debug)]
pub struct Sampler {
    orders: mpsc::Sender<Order>,
    closing: Closing,
}

impl Sampler {
    /// Starts the thread, which says what it finds to `sink` until that is closed by `closing`, reads `proc`, and takes in what
    /// is noted in `ends` of the units' roots before they are reaped.
    pub fn start(
        plan: &MemoryPlan,
        units: Vec<Sampled>,
        sink: Sink,
        closing: Closing,
        proc: Proc,
        ends: Ends,
    ) -> io::Result<Self> {
        let (orders, inbox) = mpsc::channel();
        let interval = seconds(plan.interval_seconds).max(Duration::from_millis(10));
        let mut work = Work::new(plan, sink, proc, ends);
        for unit in units {
            work.add(unit);
        }
        thread::Builder::new()
            .name("sampler".into())
            .stack_size(256 * 1024)
            .spawn(move || run(work, interval, &inbox))?;
        Ok(Self { orders, closing })
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

    /// Takes the last sample and ends; whether that was done in the time that there is. A process that the kernel is
    /// busy with can hold up a look at its memory for long. Nothing is said afterwards in any case.
    pub async fn stop(self, mut pace: watch::Receiver<Pace>) -> bool {
        let (done, wait) = oneshot::channel();
        // The proportional set is the part that takes its time.
        let with_pss = *pace.borrow() == Pace::Leisurely;
        let _ = self.orders.send(Order::Finish { with_pss, done });
        let in_time = within(&mut pace, LAST, HURRIED_LAST, wait).await.is_some();
        self.mute();
        in_time
    }

    /// From now on nothing is said any more.
    pub fn mute(&self) {
        self.closing.close();
    }
}

fn run(mut work: Work, interval: Duration, inbox: &mpsc::Receiver<Order>) {
    let mut next = Instant::now();
    loop {
        let now = Instant::now();
        if now >= next {
            work.sample(now);
            next = following(next, interval, Instant::now());
        }
        match inbox.recv_timeout(next.saturating_duration_since(Instant::now())) {
            Ok(Order::Add(unit)) => work.add(unit),
            Ok(Order::Ended(process)) => work.ended(&process),
            Ok(Order::Finish { with_pss, done }) => {
                work.sample_last(with_pss);
                let _ = done.send(());
                return;
            }
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => return,
        }
    }
}

/// The next tick on the grid of `last` and `interval`; those that were missed are left out.
pub(super) fn following(last: Instant, interval: Duration, now: Instant) -> Instant {
    let next = last + interval;
    if next > now { next } else { now + interval }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::Path;
    use std::sync::{Arc, Mutex};
    use std::time::{Duration, Instant};

    use nix::sys::stat::Mode;
    use tokio::sync::watch;

    use super::{Pace, Sampled, Sampler};
    use crate::events::{EventKind, Sample, Sink};
    use crate::plan::{Kind, MemoryPlan, MemoryScope};
    use crate::procfs::{Ends, Identity, Members, Proc};

    fn process(root: &Path, pid: i32) {
        let task = root.join(format!("{pid}/task/{pid}"));
        fs::create_dir_all(&task).expect("a scratch directory");
        fs::write(task.join("children"), "").expect("a scratch file");
        let stat = format!("{pid} (x) S 1 {pid} {pid} 0 0 0 0 0 0 0 0 0 0 0 0 0 1 0 7 0 0\n");
        fs::write(root.join(format!("{pid}/stat")), stat).expect("a scratch file");
        fs::write(root.join(format!("{pid}/statm")), "900 3 1 1 0 1 0\n").expect("a scratch file");
    }

    fn unit(process: &str, pid: i32, kind: Kind, included: bool) -> Sampled {
        let members = Members { root: Identity { pid, started: 7 }, mark: String::new(), cgroup: None };
        Sampled { process: process.into(), kind, type_name: String::new(), members, included }
    }

    fn start(root: &Path, units: Vec<Sampled>) -> (Sampler, Arc<Mutex<Vec<Sample>>>) {
        start_seen(root, units, |_| ())
    }

    fn start_seen(
        root: &Path,
        units: Vec<Sampled>,
        see: impl Fn(&EventKind) + Send + Sync + 'static,
    ) -> (Sampler, Arc<Mutex<Vec<Sample>>>) {
        let plan = MemoryPlan {
            enabled: true,
            interval_seconds: 3600.0,
            pss_interval_seconds: 3600.0,
            pss_rss_change: 0.2,
            include: vec![MemoryScope::Driver],
        };
        let samples = Arc::new(Mutex::new(Vec::new()));
        let seen = Arc::clone(&samples);
        let sink = Sink::new(move |event| {
            if let EventKind::MemorySampled(sample) = event.kind {
                seen.lock().expect("nobody panics here").push(*sample);
            }
        });
        let (sink, closing) = sink.closable();
        let sink = sink.seen_by(see);
        let started = Sampler::start(&plan, units, sink, closing, Proc::at(root), Ends::default());
        (started.expect("it starts"), samples)
    }

    #[tokio::test]
    async fn servers_count_though_their_memory_is_not_sampled() {
        let root = tempfile::tempdir().expect("a scratch directory");
        process(root.path(), 10);
        process(root.path(), 11);
        let units = vec![unit("server", 10, Kind::Server, false), unit("driver", 11, Kind::Driver, true)];
        let (sampler, said) = start(root.path(), units);
        assert!(sampler.stop(watch::channel(Pace::Leisurely).1).await);
        let said = said.lock().expect("nobody panics here");
        let last = said.last().expect("a last sample");
        assert_eq!((last.servers_active, last.trees.len()), (1, 1));
    }

    #[tokio::test]
    async fn a_look_that_hangs_does_not_hold_up_the_stop() {
        let root = tempfile::tempdir().expect("a scratch directory");
        process(root.path(), 10);
        let hangs = root.path().join("10/smaps_rollup");
        nix::unistd::mkfifo(&hangs, Mode::S_IRWXU).expect("a pipe with a name");
        for pace in [Pace::Kill, Pace::Hurried { since: tokio::time::Instant::now(), scale: 1.0 }] {
            let (sampler, said) = start(root.path(), vec![unit("driver", 10, Kind::Driver, true)]);
            let start = Instant::now();
            assert!(!sampler.stop(watch::channel(pace).1).await);
            assert!(start.elapsed() < Duration::from_secs(30));
            // It goes on, and is not heard any more.
            let opened = tokio::task::spawn_blocking({
                let hangs = hangs.clone();
                move || fs::OpenOptions::new().write(true).open(hangs).map(drop)
            });
            opened.await.expect("it ends").expect("somebody reads it");
            assert!(said.lock().expect("nobody panics here").is_empty());
        }
    }

    #[tokio::test]
    async fn what_hangs_before_a_sample_is_said_does_not_hold_up_the_stop() {
        let root = tempfile::tempdir().expect("a scratch directory");
        process(root.path(), 10);
        let (go, wait) = std::sync::mpsc::channel::<()>();
        let wait = Mutex::new(wait);
        let (hangs, hung) = std::sync::mpsc::channel();
        let see = move |_: &EventKind| {
            let _ = hangs.send(());
            let _ = wait.lock().expect("nobody panics here").recv();
        };
        let (sampler, said) = start_seen(root.path(), vec![unit("driver", 10, Kind::Driver, true)], see);
        hung.recv().expect("it samples at once");
        let stop = tokio::spawn(sampler.stop(watch::channel(Pace::Kill).1));
        let stopped = tokio::time::timeout(Duration::from_secs(30), stop).await;
        assert!(!stopped.expect("nobody waits for it").expect("it ends"));
        drop(go);
        while hung.recv().is_ok() {}
        assert!(said.lock().expect("nobody panics here").is_empty());
    }
}
