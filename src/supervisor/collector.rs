//! What the supervisor does with the job's collector besides running it: the last scrape, and the stop that drains it.

use std::time::Duration;

use tokio::sync::watch;
use tokio::time::{Instant, sleep, sleep_until, timeout};

use super::budget::Pace;
use super::client::request;
use super::delivery;
use super::ports::port_name;
use super::resolve::{Resolver, seconds};
use super::teardown::Stop;
use crate::diag::Problem;
use crate::events::Delivery;
use crate::plan::{COLLECTOR, CollectorPlan, Tree};

/// An otelcol's first scrape of a target comes up to this long after its start, then one interval.
const DISCOVERY: Duration = Duration::from_secs(5);
/// Limit of a request that the collector answers at once.
const REQUEST: Duration = Duration::from_secs(1);
/// Limit of what is called before the collector is stopped.
const HOOK: Duration = Duration::from_secs(5);
/// How often an otelcol is asked while it drains.
const SHORTEST_LOOK: Duration = Duration::from_millis(2);
const LONGEST_LOOK: Duration = Duration::from_millis(250);
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

/// What an otelcol says of its delivery, once all that it received is in its files where there is time for that: it
/// holds batches back for a moment.
async fn settled(address: &str, patient: bool) -> Result<Delivery, String> {
    let end = Instant::now() + REQUEST;
    loop {
        let said = delivery::ask(address, REQUEST).await?;
        let behind = said.signals().iter().any(|(_, signal)| signal.written + signal.dropped_total() < signal.received);
        if !patient || !behind || Instant::now() >= end {
            return Ok(said);
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
        let now = *pace.borrow_and_update();
        if self.embedded {
            let limit = now.scrape_limit();
            let Some(address) = &self.health else { return (true, Some("it has no health port".into())) };
            return (true, request("POST", address, "/-/scrape?last=true", SMALL_ANSWER, limit).await.err());
        }
        if self.scrapes && now == Pace::Leisurely {
            let start = Instant::now();
            let interval = self.interval;
            let until = (start + interval).max(since + DISCOVERY + interval).min(start + self.scrape_grace);
            // Told to be quick, nobody waits any longer.
            tokio::select! {
                () = sleep_until(until) => {}
                Ok(()) = pace.changed() => {}
            }
        }
        (false, None)
    }

    /// Stops it: `before` is called, an otelcol is asked for its counts, ours is told its limit, then comes SIGTERM and
    /// the time to drain. What an otelcol said of its delivery.
    pub(super) async fn stop(self, stop: Stop, before: Box<dyn FnOnce() + Send>) -> Option<Result<Delivery, String>> {
        let mut said = None;
        let pace = *stop.pace.borrow();
        if stop.slot.running() && pace != Pace::Kill {
            let limit = if pace == Pace::Leisurely { HOOK } else { REQUEST };
            let _ = timeout(limit, tokio::task::spawn_blocking(before)).await;
            if let Some(address) = &self.own_metrics {
                said = Some(settled(address, pace == Pace::Leisurely).await);
            }
        }
        let wait = self.wait;
        let kill_at = move |pace: Pace, started: Instant| pace.kill_collector_at(started, wait);
        if self.embedded
            && stop.slot.running()
            && let Some(address) = &self.health
        {
            let now = Instant::now();
            let left = kill_at(*stop.pace.borrow(), now).saturating_duration_since(now).as_secs_f64();
            // If it does not listen any more, SIGTERM says the same with a limit of its own.
            let _ = request("POST", address, &format!("/-/stop?seconds={left:.3}"), SMALL_ANSWER, REQUEST).await;
        }
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
            () = stop.run_until(kill_at) => {}
            () = listening => {}
        }
        said
    }
}
