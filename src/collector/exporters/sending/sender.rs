//! One signal's way to the endpoint: encode once, try until it is decided.

use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use futures_util::future::BoxFuture;
use tokio_util::sync::CancellationToken;

use super::backoff::{Backoff, Retry};
use super::meter::LaneMeter;
use super::outcome::{Outcome, PartialSuccess};
use crate::collector::component::{Context, Refusal};
use crate::collector::config::duration::about;
use crate::collector::counters::Tally;
use crate::collector::items::counted_items;
use crate::collector::own::Labels;
use crate::otlp::{Payload, Signal};

/// How a request travels.
pub(in crate::collector::exporters) trait Transport: Send + Sync {
    /// The request as it is sent, made once for all tries; the payload is let go of part by part.
    fn encode(&self, payload: Payload) -> std::io::Result<Bytes>;

    /// Where to, as labels of the collector's own metrics.
    fn endpoint(&self) -> Labels;

    /// One try.
    fn attempt(&self, request: Bytes) -> BoxFuture<'_, Outcome>;
}

/// The two stages of a stop.
#[derive(Clone, Debug, Default)]
pub(super) struct Stop {
    /// Pauses end at once, and the try after that is the last.
    pub last_try: CancellationToken,
    /// What is under way is given up.
    pub abandon: CancellationToken,
}

/// Sends the payloads of one signal.
pub(super) struct Sender {
    pub signal: Signal,
    pub transport: Arc<dyn Transport>,
    pub retry: Option<Retry>,
    pub context: Context,
    pub stop: Stop,
    pub meter: Arc<LaneMeter>,
}

impl Sender {
    /// Sends it and counts what was accepted; what was not is for the caller to count.
    pub async fn send(&self, payload: Payload) -> Result<(), Refusal> {
        let items = payload.item_count();
        let under_way = UnderWay::new(&self.meter);
        let result = self.try_until_decided(payload, items).await;
        drop(under_way);
        self.meter.decided.add(1);
        result
    }

    /// The same with one try, for what is stored.
    pub async fn send_once(&self, payload: Payload) -> Result<(), Untaken> {
        let items = payload.item_count();
        let under_way = UnderWay::new(&self.meter);
        let result = match self.encode(payload) {
            Ok(request) => self.attempt(request, items).await,
            Err(refusal) => Err(Untaken::never(refusal)),
        };
        drop(under_way);
        let stays = result.as_ref().is_err_and(|untaken| untaken.refusal.is_worth_keeping());
        if !stays {
            self.meter.decided.add(1);
        }
        result
    }

    async fn try_until_decided(&self, payload: Payload, items: usize) -> Result<(), Refusal> {
        let request = self.encode(payload)?;
        let begin = Instant::now();
        let mut tries = 0_u32;
        let mut backoff = self.retry.map(Backoff::new);
        loop {
            tries = tries.saturating_add(1);
            let last = self.stop.last_try.is_cancelled();
            let Err(Untaken { refusal, later, pause }) = self.attempt(request.clone(), items).await else {
                return Ok(());
            };
            let Some(backoff) = backoff.as_mut().filter(|_| later && !last) else { return Err(refusal) };
            let Some(pause) = backoff.next(begin.elapsed(), pause, fastrand::f64()) else {
                let message = format!("{}: {}", no_more_tries(tries, begin.elapsed()), refusal.message);
                return Err(Refusal { message, ..refusal });
            };
            self.context.failed(&format!(
                "{}; trying {} again in {}",
                refusal.message,
                counted_items(self.signal, items),
                about(pause)
            ));
            tokio::select! {
                () = tokio::time::sleep(pause) => {}
                () = self.stop.last_try.cancelled() => {}
            }
        }
    }

    fn encode(&self, payload: Payload) -> Result<Bytes, Refusal> {
        let refused = |error| Refusal::permanent("encoding", format!("the request cannot be compressed: {error}"));
        self.transport.encode(payload).map_err(refused)
    }

    /// One try, until everything is given up.
    async fn attempt(&self, request: Bytes, items: usize) -> Result<(), Untaken> {
        let outcome = tokio::select! {
            biased;
            outcome = self.transport.attempt(request) => outcome,
            () = self.stop.abandon.cancelled() => return Err(Untaken::never(given_up())),
        };
        match outcome {
            Outcome::Accepted(partial_success) => {
                self.accepted(items, &partial_success);
                Ok(())
            }
            Outcome::Never(refusal) => Err(Untaken::never(refusal)),
            Outcome::Later { refusal, pause } => Err(Untaken { refusal, later: true, pause }),
        }
    }

    fn accepted(&self, items: usize, partial_success: &PartialSuccess) {
        let rejected = usize::try_from(partial_success.rejected).unwrap_or(usize::MAX).min(items);
        self.context.count(self.signal, Tally::Sent, items - rejected);
        self.context.count(self.signal, Tally::Rejected, rejected);
        let message = &partial_success.message;
        if rejected > 0 {
            self.context.failed(&format!("{} rejected: {message}", counted_items(self.signal, rejected)));
        } else if !message.is_empty() {
            self.context.log.limited(&format!("the endpoint accepted everything and says: {message}"));
        }
    }
}

/// What a try did not bring to its place.
pub(super) struct Untaken {
    pub refusal: Refusal,
    /// Whether the same sender may try again.
    later: bool,
    /// What the endpoint asked for.
    pub pause: Option<Duration>,
}

impl Untaken {
    fn never(refusal: Refusal) -> Self {
        Self { refusal, later: false, pause: None }
    }
}

/// A request that is not decided yet, whatever ends it.
struct UnderWay<'a> {
    meter: &'a LaneMeter,
}

impl<'a> UnderWay<'a> {
    fn new(meter: &'a LaneMeter) -> Self {
        meter.in_flight.add(1);
        Self { meter }
    }
}

impl Drop for UnderWay<'_> {
    fn drop(&mut self) {
        self.meter.in_flight.take(1);
    }
}

/// How often and how long it was tried.
fn no_more_tries(tries: u32, time: Duration) -> String {
    if tries <= 1 {
        "given up after one try".into()
    } else {
        format!("given up after {tries} tries within {}", about(time))
    }
}

/// The refusal of what a stop did not leave time for.
pub(super) fn given_up() -> Refusal {
    Refusal::retryable("shutdown", "the collector stopped before it could be sent")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn short_times_are_not_said_to_be_none() {
        for (tries, milliseconds, wanted) in [
            (1, 0, "given up after one try"),
            (1, 5000, "given up after one try"),
            (3, 40, "given up after 3 tries within 40 ms"),
            (2, 1400, "given up after 2 tries within 1.4 s"),
            (9, 61_000, "given up after 9 tries within 61 s"),
        ] {
            assert_eq!(no_more_tries(tries, Duration::from_millis(milliseconds)), wanted);
        }
    }
}
