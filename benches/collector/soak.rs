//! A long run at half of what the collector can take: nothing is lost, and memory does not grow.

use std::time::{Duration, Instant};

use crate::bed::{Load, Outlets, Pipelines, Program, Protocol, Requests, Running, SPANS_PER_REQUEST, Sink};

/// How the maximum is found: as fast as it goes, for so long.
const CALIBRATION: Duration = Duration::from_secs(3);

/// What a soak found; everything that was sent arrived, or there is none.
pub struct Soaked {
    /// Accepted, at the sink, and in the file.
    pub spans: u64,
    /// What it took at most, in spans a second.
    pub maximum: f64,
    /// What it was sent, in spans a second.
    pub rate: f64,
    /// Requests that were refused for a while.
    pub refusals: u64,
    /// Resident bytes, four times a second.
    memory: Vec<u64>,
}

impl Soaked {
    /// The most in the second quarter and the least in the last, in bytes: a leak makes the one exceed the other.
    pub fn memory(&self) -> (u64, u64) {
        let quarter = self.memory.len() / 4;
        let early = self.memory.iter().skip(quarter).take(quarter.max(1)).max();
        let late = self.memory.iter().rev().take(quarter.max(1)).min();
        (early.copied().unwrap_or_default(), late.copied().unwrap_or_default())
    }
}

/// Sends for this long, half by OTLP/HTTP and half by OTLP/gRPC; fails if anything is lost.
pub fn run(length: Duration) -> Soaked {
    let requests = Requests::make();
    let sink = Sink::start();
    let mut running = Running::start(Program::Gymrun, Pipelines::Full, sink.port, None);
    let mut outlets = Outlets::new(&sink, &running);
    let load = |protocol, interval, limit| Load { requests: &requests, protocol, count: u64::MAX, interval, limit };

    let begin = Instant::now();
    let first = load(Protocol::Http, None, CALIBRATION).send(running.ports);
    outlets.expect_all(first.spans);
    let seconds = sink.totals().newest.expect("spans came").duration_since(begin).as_secs_f64();
    let maximum = first.spans as f64 / seconds;

    // A quarter of the maximum by each protocol.
    let interval = Duration::from_secs_f64(4.0 * SPANS_PER_REQUEST as f64 / maximum);
    let mut memory = Vec::new();
    let sent = std::thread::scope(|scope| {
        let senders = [Protocol::Http, Protocol::Grpc].map(|protocol| {
            let (load, ports) = (load(protocol, Some(interval), length), running.ports);
            scope.spawn(move || load.send(ports))
        });
        while !senders.iter().all(std::thread::ScopedJoinHandle::is_finished) {
            std::thread::sleep(Duration::from_millis(250));
            // What has been counted is let go, in the sink and in the file.
            outlets.arrived();
            memory.push(running.memory().resident);
        }
        senders.map(|sender| sender.join().expect("a sender"))
    });
    let spans = first.spans + sent.iter().map(|sent| sent.spans).sum::<u64>();
    outlets.expect_all(spans);
    running.stop();
    let rate = (spans - first.spans) as f64 / length.as_secs_f64();
    Soaked { spans, maximum, rate, refusals: sent.iter().map(|sent| sent.refusals).sum(), memory }
}
