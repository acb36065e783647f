//! Everybody who reads the collector's own metrics, from the start to the end.

use std::sync::Arc;

use futures_util::future::join_all;
use tokio::task::JoinHandle;
use tokio::time::Instant;

use super::gather::Gatherer;
use super::pull::{self, Pull};
use super::push::{self, Push, Pushing};
use crate::collector::component::{Context, ended};
use crate::collector::deadline::Deadline;
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
    pages: Vec<JoinHandle<()>>,
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
                    self.pages.push(task);
                }
                Reader::Push(push) => self.pushing.push(push::start(push, gatherer.clone(), &context).await?),
            }
        }
        Ok(())
    }

    /// Ends them; those that send do so once more. The ports of pages are free then.
    pub async fn stop(mut self, deadline: &Deadline) {
        for page in std::mem::take(&mut self.pages) {
            ended(page).await;
        }
        join_all(std::mem::take(&mut self.pushing).into_iter().map(|pushing| pushing.stop(deadline))).await;
    }
}

impl Drop for Readers {
    fn drop(&mut self) {
        self.pages.iter().for_each(JoinHandle::abort);
    }
}
