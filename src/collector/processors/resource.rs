//! The `resource` processor: a list of actions on the attributes of each resource.

use std::sync::Arc;

use futures_util::future::BoxFuture;

use super::actions::{self, Action};
use crate::collector::component::{Built, Consumer, Context, EVERY_SIGNAL, Factory, Next, Processor, Refusal, Signals};
use crate::collector::config::section::Section;
use crate::diag::Problem;
use crate::otlp::{Payload, Signal};

/// The kind.
pub const FACTORY: Factory<dyn Processor> =
    Factory { names: &["resource"], signals: Signals::Each(EVERY_SIGNAL), configure: read };

struct Settings {
    actions: Arc<[Action]>,
}

fn read(section: &mut Section<'_>) -> Option<Box<dyn Processor>> {
    Some(Box::new(Settings { actions: actions::read(section, "attributes")?.into() }))
}

impl Processor for Settings {
    fn build(&self, _context: Context, _signal: Signal, next: Next) -> Result<Built, Problem> {
        Ok(Built::stateless(Editor { actions: self.actions.clone(), next }))
    }
}

struct Editor {
    actions: Arc<[Action]>,
    next: Next,
}

impl Consumer for Editor {
    fn consume(&self, mut payload: Payload) -> BoxFuture<'_, Result<(), Refusal>> {
        for entry in &mut payload.resources {
            for action in self.actions.iter() {
                if action.concerns(|key| entry.resource.attributes.iter().any(|found| found.key.as_bytes() == key)) {
                    action.apply(&mut Arc::make_mut(&mut entry.resource).attributes);
                }
            }
        }
        Box::pin(self.next.consume(payload))
    }
}
