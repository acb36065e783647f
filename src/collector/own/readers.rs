//! Everybody who reads the collector's own metrics, from the start to the end.

use std::sync::Arc;

use futures_util::future::join_all;
use tokio::time::Instant;
use tokio_util::task::AbortOnDropHandle;

use super::gather::Gatherer;
use super::pull::{self, Pull};
use super::push::{self, Push, Pushing};
use crate::collector::component::Context;
use crate::collector::deadline::Deadline;
use crate::collector::tasks::ended;
use crate::diag::Problem;

/// A reader of `service.telemetry.metrics.readers`.
pub enum Reader {
    /// It is asked.
    Pull(Pull),
    /// It sends.
    Push(Push),
}

/// The readers at work. Dropping them ends them.
#[derive(Default)]
pub struct Readers {
    pages: Vec<AbortOnDropHandle<()>>,
    pushing: Vec<Pushing>,
}

impl Readers {
    /// Opens them all.
    pub async fn open(readers: Vec<Reader>, gatherer: &Arc<Gatherer>, context: &Context) -> Result<Self, Problem> {
        let mut all = Self::default();
        let opened = all.open_each(readers, gatherer, context).await;
        if let Err(problem) = opened {
            all.stop(&Deadline::fixed(Instant::now())).await;
            return Err(problem);
        }
        Ok(all)
    }

    async fn open_each(
        &mut self,
        readers: Vec<Reader>,
        gatherer: &Arc<Gatherer>,
        context: &Context,
    ) -> Result<(), Problem> {
        let name: Arc<str> = "service/telemetry/metrics".into();
        let context = Context { log: context.log.named(name.clone()), name, ..context.clone() };
        for reader in readers {
            match reader {
                Reader::Pull(pull) => {
                    let (task, address) = pull::serve(&pull, gatherer.clone(), &context).await?;
                    context.log.info(&format!("the page is at http://{address}/metrics"));
                    self.pages.push(AbortOnDropHandle::new(task));
                }
                Reader::Push(push) => self.pushing.push(push::start(push, gatherer.clone(), &context).await?),
            }
        }
        Ok(())
    }

    /// Ends them; those that send do so once more. The ports of pages are free then.
    pub async fn stop(self, deadline: &Deadline) {
        for page in self.pages {
            ended(page.detach()).await;
        }
        join_all(self.pushing.into_iter().map(|pushing| pushing.stop(deadline))).await;
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicBool, Ordering};
    use std::time::Duration;

    use futures_util::future::{BoxFuture, pending, ready};

    use super::super::page::Style;
    use super::*;
    use crate::collector::component::{Built, Consumer, Exporter, Refusal};
    use crate::collector::own::instruments::Detail;
    use crate::collector::testing::{context, eventually};
    use crate::otlp::{Payload, Signal};

    /// Begins to take what it is given, and never ends.
    #[derive(Clone, Default)]
    struct Stuck(Arc<AtomicBool>);

    impl Exporter for Stuck {
        fn start(self: Box<Self>, _: Context, _: &[Signal]) -> BoxFuture<'static, Result<Built, Problem>> {
            Box::pin(ready(Ok(Built::stateless(*self))))
        }
    }

    impl Consumer for Stuck {
        fn consume(&self, _: Payload) -> BoxFuture<'_, Result<(), Refusal>> {
            self.0.store(true, Ordering::Relaxed);
            Box::pin(pending())
        }
    }

    /// Nobody stops the readers of a start that is given up: those that wait, those that send, those that are asked.
    #[tokio::test]
    async fn readers_that_nobody_holds_have_ended() {
        let context = context("collector");
        let gatherer = Arc::new(Gatherer::new(Detail::Normal, &context));
        for (interval, is_sending) in [(Duration::from_hours(1), false), (Duration::from_millis(1), true)] {
            let stuck = Stuck::default();
            let push = Push { interval, timeout: Duration::from_hours(1), exporter: Box::new(stuck.clone()) };
            let port = std::net::TcpListener::bind("127.0.0.1:0").expect("a free port");
            let endpoint = port.local_addr().expect("an address").to_string();
            drop(port);
            let pull = Pull { endpoint: endpoint.clone(), line: 1, style: Style::default() };
            let readers = vec![Reader::Push(push), Reader::Pull(pull)];
            let readers = Readers::open(readers, &gatherer, &context).await.expect("opens");
            eventually(|| stuck.0.load(Ordering::Relaxed) == is_sending).await;
            drop(readers);
            eventually(|| Arc::strong_count(&stuck.0) == 1).await;
            eventually(|| std::net::TcpListener::bind(&endpoint).is_ok()).await;
        }
    }
}
