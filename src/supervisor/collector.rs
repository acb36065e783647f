//! What the supervisor does with the job's collector besides running it: the last scrape, and the stop that drains it.

use std::time::Duration;

use tokio::sync::watch;
use tokio::time::{Instant, sleep};

use super::budget::{Pace, until, within};
use super::client::request;
use super::delivery;
use super::ports::port_name;
use super::resolve::{Resolver, seconds};
use super::teardown::Stop;
use crate::diag::Problem;
use crate::events::{Delivery, SignalDelivery};
use crate::plan::{COLLECTOR, CollectorPlan, Tree};

/// An otelcol's first scrape of a target comes up to this long after its start, then one interval.
const DISCOVERY: Duration = Duration::from_secs(5);
/// Limit of a request that the collector answers at once.
const REQUEST: Duration = Duration::from_secs(1);
/// Limits of the forced scrape.
const SCRAPE: Duration = Duration::from_secs(5);
const HURRIED_SCRAPE: Duration = Duration::from_secs(1);
/// Limits of what is called before the collector is stopped.
const HOOK: Duration = Duration::from_secs(5);
const HURRIED_HOOK: Duration = Duration::from_secs(1);
/// How often an otelcol is asked while it drains.
const SHORTEST_LOOK: Duration = Duration::from_millis(2);
const LONGEST_LOOK: Duration = Duration::from_millis(50);
const SMALL_ANSWER: usize = 64 * 1024;

/// How the job's collector is spoken to.
#[derive(Clone, Debug)]
pub(super) struct CollectorLink {
    embedded: bool,
    /// `host:port` of its health check, where ours takes orders.
    health: Option<String>,
    own_metrics: Option<String>,
    scrapes: bool,
    interval: Duration,
    scrape_grace: Duration,
    wait: Duration,
}

/// Asks an otelcol for its delivery until all that it received is in its files and its queues are empty, where there is
/// time for that: it holds batches back for a moment. `last` is what it said last.
async fn settle(address: &str, patient: bool, last: &mut Option<Result<Delivery, String>>) {
    let end = Instant::now() + REQUEST;
    loop {
        let answer = delivery::ask(address, REQUEST).await;
        let Ok(said) = last.insert(answer) else { return };
        let unwritten = |signal: &SignalDelivery| signal.written + signal.dropped_total() < signal.received;
        let behind = said.signals().iter().any(|(_, signal)| unwritten(signal) || delivery::queued(signal) > 0);
        if !patient || !behind || Instant::now() >= end {
            return;
        }
        sleep(Duration::from_millis(20)).await;
    }
}

impl CollectorLink {
    pub(super) fn new(plan: &CollectorPlan, resolver: &Resolver) -> Result<Self, Problem> {
        let receivers = plan.config.get("receivers");
        let scrapes = matches!(receivers, Some(Tree::Map(map)) if map.keys().any(|id| id.starts_with("prometheus")));
        Ok(Self {
            embedded: plan.embedded,
            health: resolver.ports.get(&port_name(COLLECTOR, Some("health"))).map(|port| format!("127.0.0.1:{port}")),
            own_metrics: plan.own_metrics.as_ref().map(|text| resolver.text(text)).transpose()?,
            scrapes,
            interval: seconds(plan.scrape_interval_seconds),
            scrape_grace: seconds(plan.final_scrape_grace_seconds),
            wait: seconds(plan.shutdown_wait_seconds),
        })
    }

    /// The last scrape: forced where the collector is ours, else one interval is waited for. Whether it was forced, and
    /// why it failed.
    pub(super) async fn last_scrape(&self, since: Instant, mut pace: watch::Receiver<Pace>) -> (bool, Option<String>) {
        if self.embedded {
            let Some(address) = &self.health else { return (true, Some("it has no health port".into())) };
            let scrape = request("POST", address, "/-/scrape?last=true", SMALL_ANSWER, SCRAPE);
            let answer = within(&mut pace, SCRAPE, HURRIED_SCRAPE, scrape).await;
            return (true, answer.unwrap_or_else(|| Err("no answer in the time that there was".into())).err());
        }
        if self.scrapes {
            let start = Instant::now();
            let interval = self.interval;
            let end = (start + interval).max(since + DISCOVERY + interval).min(start + self.scrape_grace);
            // Told to be quick, nobody waits any longer.
            let deadline = |pace| if pace == Pace::Leisurely { end } else { start };
            until(&mut pace, deadline, std::future::pending::<()>()).await;
        }
        (false, None)
    }

    /// Stops it: `before` is called, an otelcol is asked for its counts, ours is told its limit, then comes SIGTERM and
    /// the time to drain. What an otelcol said of its delivery.
    pub(super) async fn stop(self, stop: Stop, before: Box<dyn FnOnce() + Send>) -> Option<Result<Delivery, String>> {
        let mut said = None;
        let mut pace = stop.pace.clone();
        let killing = || *stop.pace.borrow() == Pace::Kill;
        if stop.slot.running() && !killing() {
            within(&mut pace, HOOK, HURRIED_HOOK, tokio::task::spawn_blocking(before)).await;
        }
        if let Some(address) = self.own_metrics.as_ref().filter(|_| stop.slot.running() && !killing()) {
            let patient = *pace.borrow() == Pace::Leisurely;
            within(&mut pace, 2 * REQUEST, REQUEST, settle(address, patient, &mut said)).await;
            said.get_or_insert_with(|| Err("the collector did not answer in time".into()));
        }
        let wait = self.wait;
        let kill_at = move |pace: Pace, started: Instant| pace.kill_last_at(started, wait);
        let health = self.health.as_ref().filter(|_| self.embedded);
        let now = Instant::now();
        if let Some(address) = health
            && stop.slot.running()
            && !killing()
        {
            let limit = tell_limit(address, kill_at(*stop.pace.borrow(), now));
            // If it does not listen any more, SIGTERM says the same with a limit of its own.
            within(&mut pace, REQUEST, REQUEST, limit).await;
        }
        let mut hurry = stop.pace.clone();
        let hurrying = async {
            while let (Some(address), Ok(())) = (health, hurry.changed().await) {
                let limit = kill_at(*hurry.borrow_and_update(), now);
                tell_limit(address, limit).await;
            }
            std::future::pending::<()>().await;
        };
        // While it drains, an otelcol still says how far it is: the last that it said is kept.
        let listening = async {
            let mut pause = SHORTEST_LOOK;
            if let Some(address) = &self.own_metrics
                && matches!(said, Some(Ok(_)))
            {
                loop {
                    sleep(pause).await;
                    pause = (pause * 2).min(LONGEST_LOOK);
                    match delivery::ask(address, REQUEST).await {
                        Ok(delivery) => said = Some(Ok(delivery)),
                        Err(_) => break,
                    }
                }
            }
            std::future::pending::<()>().await;
        };
        tokio::select! {
            () = stop.run_until(kill_at, Pace::give_up_last_at) => {}
            () = listening => {}
            () = hurrying => {}
        }
        said
    }
}

/// Tells ours until when it may drain.
async fn tell_limit(health: &str, until: Instant) {
    let left = until.saturating_duration_since(Instant::now()).as_secs_f64();
    // Where it does not take the limit, it is killed when the time is over.
    let _ = request("POST", health, &format!("/-/stop?seconds={left:.3}"), SMALL_ANSWER, REQUEST).await;
}
