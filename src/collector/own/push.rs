//! A periodic reader: the metrics as OTLP, sent at an interval and once more at the end.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tokio_util::task::AbortOnDropHandle;

use super::gather::Gatherer;
use crate::collector::component::{Built, Context, Exporter, Running};
use crate::collector::counters::Counters;
use crate::collector::deadline::Deadline;
use crate::collector::tasks::until;
use crate::diag::Problem;
use crate::otlp::Signal;

/// How often, and where to.
pub struct Push {
    /// From one time to the next.
    pub interval: Duration,
    /// How long one time may take.
    pub timeout: Duration,
    /// The way there.
    pub exporter: Box<dyn Exporter>,
}

/// A reader that sends. Dropping it ends it, whatever it is about.
pub struct Pushing {
    stop: CancellationToken,
    task: AbortOnDropHandle<()>,
    last: Box<dyn Fn() -> AbortOnDropHandle<()> + Send + Sync>,
    running: Box<dyn Running>,
}

/// Begins to send.
pub async fn start(push: Push, gatherer: Arc<Gatherer>, context: &Context) -> Result<Pushing, Problem> {
    let Push { interval, timeout, exporter } = push;
    // What it sends is no data of the pipelines, and is not counted with it.
    let context = Context { counters: Arc::new(Counters::default()), ..context.clone() };
    let Built { consumer, running } = exporter.start(context.clone(), &[Signal::Metrics]).await?;
    let send = Arc::new(move || {
        let (gatherer, consumer, context) = (gatherer.clone(), consumer.clone(), context.clone());
        async move {
            let deadline = Instant::now() + timeout;
            match until(deadline, consumer.consume(gatherer.payload())).await {
                Some(Ok(())) => {}
                Some(Err(refusal)) => context.log.limited(&format!("own metrics were not sent: {}", refusal.message)),
                None => context.log.limited("own metrics were not sent in time"),
            }
        }
    });
    let stop = CancellationToken::new();
    let (every, stopped) = (send.clone(), stop.clone());
    let task = AbortOnDropHandle::new(tokio::spawn(async move {
        loop {
            tokio::select! {
                () = tokio::time::sleep(interval) => every().await,
                () = stopped.cancelled() => return,
            }
        }
    }));
    let last = Box::new(move || AbortOnDropHandle::new(tokio::spawn(send())));
    Ok(Pushing { stop, task, last, running })
}

impl Pushing {
    /// Sends the last numbers, if there is time. What is under way and the last ones have one try each.
    pub async fn stop(self, deadline: &Deadline) {
        self.stop.cancel();
        // It has no queue and nothing to end, and does not try again from now on.
        self.running.shutdown(deadline.clone()).await;
        if deadline.until(self.task).await.is_some() {
            deadline.until((self.last)()).await;
        }
    }
}
