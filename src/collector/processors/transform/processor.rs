//! Runs the statements of a signal over each payload.

use std::sync::Arc;

use futures_util::future::BoxFuture;

use super::statement::Action;
use crate::collector::component::{Built, Consumer, Context, Next, Processor, Refusal};
use crate::diag::Problem;
use crate::otlp::{Payload, Signal};

/// The statements by signal, in the order of [`Signal::ALL`].
pub(super) struct Settings {
    pub statements: [Arc<[Action]>; 3],
}

impl Processor for Settings {
    fn build(&self, _context: Context, signal: Signal, next: Next) -> Result<Built, Problem> {
        Ok(Built::stateless(Transformer { statements: self.statements[signal as usize].clone(), next }))
    }
}

struct Transformer {
    statements: Arc<[Action]>,
    next: Next,
}

impl Consumer for Transformer {
    fn consume(&self, mut payload: Payload) -> BoxFuture<'_, Result<(), Refusal>> {
        for statement in self.statements.iter() {
            statement.apply(&mut payload);
        }
        Box::pin(self.next.consume(payload))
    }
}
