//! What is sent to a collector, and how.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use super::config::Ports;
use super::process::PATIENCE;
use super::spans::{Requests, SPANS_PER_REQUEST};
use super::{grpc, http};

/// Connections, each with one request under way.
pub const CONNECTIONS: usize = 4;

/// How spans are sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Protocol {
    Http,
    Grpc,
}

/// So many requests, as fast as they are answered or at a rate.
pub struct Load<'a> {
    pub requests: &'a Requests,
    pub protocol: Protocol,
    /// How many requests at most.
    pub count: u64,
    /// From one request to the next; none: as fast as they are answered.
    pub interval: Option<Duration>,
    /// No new request after this time.
    pub limit: Duration,
}

/// What came of it.
#[derive(Clone, Copy, Debug)]
pub struct Sent {
    /// Accepted by the collector.
    pub spans: u64,
    /// Answers that asked to send again, which was done.
    pub refusals: u64,
}

/// The shared state of the connections.
pub(super) struct Turn<'a> {
    load: &'a Load<'a>,
    begin: Instant,
    next: AtomicU64,
    accepted: AtomicU64,
    refusals: AtomicU64,
}

impl<'a> Load<'a> {
    /// As many as this, as fast as they are answered.
    pub const fn fast(requests: &'a Requests, protocol: Protocol, count: u64) -> Self {
        Self { requests, protocol, count, interval: None, limit: PATIENCE }
    }

    /// Sends all of it and waits for the answers.
    pub fn send(&self, ports: Ports) -> Sent {
        let [next, accepted, refusals] = [(); 3].map(|()| AtomicU64::new(0));
        let turn = Turn { load: self, begin: Instant::now(), next, accepted, refusals };
        match self.protocol {
            Protocol::Http => http::send(ports.http, &self.requests.bodies, &turn),
            Protocol::Grpc => grpc::send(ports.grpc, &self.requests.bodies, &turn),
        }
        Sent { spans: turn.accepted.into_inner() * SPANS_PER_REQUEST as u64, refusals: turn.refusals.into_inner() }
    }
}

impl Turn<'_> {
    /// Which body is sent next and how long to wait before; none when all are on their way.
    pub(super) fn next(&self) -> Option<(usize, Duration)> {
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        if number >= self.load.count || self.begin.elapsed() >= self.load.limit {
            return None;
        }
        let wait = self.load.interval.map_or(Duration::ZERO, |interval| {
            let due = interval.saturating_mul(u32::try_from(number).unwrap_or(u32::MAX));
            due.saturating_sub(self.begin.elapsed())
        });
        let bodies = self.load.requests.bodies.len() as u64;
        Some((usize::try_from(number % bodies).expect("small"), wait))
    }

    /// Notes that a request was accepted.
    pub(super) fn accepted(&self) {
        self.accepted.fetch_add(1, Ordering::Relaxed);
    }

    /// Notes that a request has to be sent again; what to wait before that.
    pub(super) fn refused(&self) -> Duration {
        self.refusals.fetch_add(1, Ordering::Relaxed);
        Duration::from_millis(5)
    }
}
