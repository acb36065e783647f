//! Dropping.

use std::sync::Arc;

use futures_util::future::BoxFuture;

use super::super::matching::Matching;
use crate::collector::component::{Built, Consumer, Context, Next, Processor, Refusal};
use crate::collector::ottl::{Conditions, Level, Scene, walk};
use crate::diag::Problem;
use crate::otlp::{Items, Metric, Payload, Signal};

/// One test of the items of a context.
pub(super) struct Step {
    pub level: Level,
    pub test: Test,
}

/// When an item goes.
pub(super) enum Test {
    /// If one of these holds.
    Conditions(Conditions),
    /// If it is not meant by these.
    Unless(Box<Matching>),
}

/// Steps from the outermost context to the innermost, after which what is empty goes.
pub(super) type Pass = Vec<Step>;

pub(super) struct Settings {
    /// By signal.
    pub passes: [Arc<[Pass]>; 3],
    /// By signal: why the processor cannot be used there.
    pub refusals: [Option<String>; 3],
}

impl Processor for Settings {
    fn suits(&self, signal: Signal) -> Result<(), Problem> {
        self.refusals[signal as usize].as_ref().map_or(Ok(()), |why| Err(Problem::new(why.clone())))
    }

    fn build(&self, context: Context, signal: Signal, next: Next) -> Result<Built, Problem> {
        Ok(Built::stateless(Sieve { context, passes: self.passes[signal as usize].clone(), next }))
    }
}

struct Sieve {
    context: Context,
    passes: Arc<[Pass]>,
    next: Next,
}

impl Step {
    fn drops(&self, scene: &Scene, say: &dyn Fn(&str)) -> Result<bool, String> {
        match &self.test {
            Test::Conditions(conditions) => conditions.hold(scene, say),
            Test::Unless(matching) => Ok(!matching.means(self.level, scene)),
        }
    }
}

impl Sieve {
    fn sift(&self, payload: &mut Payload) -> Result<(), String> {
        let say = |failure: &str| self.context.log.limited(failure);
        let before = payload.size();
        for pass in self.passes.iter() {
            for step in pass {
                walk(payload, step.level, &mut |scene| step.drops(scene, &say).map(|drops| !drops))?;
            }
            remove_empty(payload, pass);
        }
        // A few items of a large request must not hold all of it for as long as they wait somewhere.
        if payload.size() < before / 4 {
            *payload = std::mem::replace(payload, Payload::new(payload.signal)).detached();
        }
        Ok(())
    }
}

/// Takes out what is empty, whether or not it was before: as deep as the pass looked.
fn remove_empty(payload: &mut Payload, pass: &[Step]) {
    let looks = |levels: &[Level]| pass.iter().any(|step| levels.contains(&step.level));
    let (points, scopes) = (looks(&[Level::DataPoint]), pass.iter().any(|step| step.level != Level::Resource));
    payload.resources.retain_mut(|entry| {
        if scopes {
            entry.scopes.retain_mut(|scope| match &mut scope.items {
                Items::Records(records) => !records.is_empty(),
                Items::Metrics(metrics) => {
                    metrics.retain(|metric| !points || metric.data_points() > 0 || !has_type(metric));
                    !metrics.is_empty()
                }
            });
        }
        !entry.scopes.is_empty()
    });
}

fn has_type(metric: &Metric) -> bool {
    let scene = Scene { metric: crate::otlp::Edit::new(metric.rest().clone()), ..Scene::default() };
    scene.data().is_some()
}

impl Consumer for Sieve {
    fn consume(&self, mut payload: Payload) -> BoxFuture<'_, Result<(), Refusal>> {
        if self.passes.is_empty() {
            return Box::pin(self.next.consume(payload));
        }
        match self.sift(&mut payload) {
            Err(failure) => Box::pin(std::future::ready(Err(Refusal::retryable("condition", failure)))),
            Ok(()) if payload.resources.is_empty() => Box::pin(std::future::ready(Ok(()))),
            Ok(()) => Box::pin(self.next.consume(payload)),
        }
    }
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;

    use super::super::config::FACTORY;
    use super::*;
    use crate::collector::testing::{Keeper, context, read_section, spans};

    /// What is left of a large request, while it waits somewhere, does not hold the rest of it.
    #[tokio::test]
    async fn a_few_items_of_a_request_do_not_hold_all_of_it() {
        for (condition, shared) in [("name != \"s0\"", false), ("name == \"s0\"", true)] {
            let keeper = Keeper::default();
            let yaml = format!("traces: {{span: ['{condition}']}}");
            let filter = read_section(&yaml, FACTORY.configure).expect("good");
            let built = filter.build(context("filter"), Signal::Traces, Next::new(vec![Arc::new(keeper.clone())]));
            let request = Bytes::from(spans(50).encode());
            let payload = Payload::decode(Signal::Traces, request.clone()).expect("valid");
            built.expect("builds").consumer.consume(payload).await.expect("takes");
            assert_eq!(keeper.counts(), [if shared { 49 } else { 1 }]);
            assert_eq!(request.is_unique(), !shared, "{condition}");
        }
    }
}
