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
        for pass in self.passes.iter() {
            for step in pass {
                walk(payload, step.level, &mut |scene| step.drops(scene, &say).map(|drops| !drops))?;
            }
            remove_empty(payload, pass);
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
