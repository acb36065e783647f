//! The `nop` exporter: takes everything and does nothing.

use futures_util::future::BoxFuture;

use crate::collector::component::{Built, Consumer, Context, EVERY_SIGNAL, Exporter, Factory, Refusal, Signals};
use crate::diag::Problem;
use crate::otlp::{Payload, Signal};

/// The kind.
pub const FACTORY: Factory<dyn Exporter> =
    Factory { names: &["nop"], signals: Signals::Each(EVERY_SIGNAL), configure: |_| Some(Box::new(Nothing)) };

struct Nothing;

impl Exporter for Nothing {
    fn start(self: Box<Self>, _context: Context, _signals: &[Signal]) -> BoxFuture<'static, Result<Built, Problem>> {
        Box::pin(std::future::ready(Ok(Built::stateless(Self))))
    }
}

impl Consumer for Nothing {
    fn consume(&self, _payload: Payload) -> BoxFuture<'_, Result<(), Refusal>> {
        Box::pin(std::future::ready(Ok(())))
    }
}
