//! The `forward` connector: from pipelines to pipelines of the same signal, unchanged.

use futures_util::future::BoxFuture;

use crate::collector::component::{Built, Connector, Consumer, Context, Factory, Next, Refusal, Signals};
use crate::diag::Problem;
use crate::otlp::{Payload, Signal};

/// The kind.
pub const FACTORY: Factory<dyn Connector> = Factory {
    names: &["forward"],
    signals: Signals::Between(&[
        (Signal::Traces, Signal::Traces),
        (Signal::Metrics, Signal::Metrics),
        (Signal::Logs, Signal::Logs),
    ]),
    configure: |_| Some(Box::new(Forward)),
};

struct Forward;

impl Connector for Forward {
    fn build(&self, _context: Context, _from: Signal, _to: Signal, next: Next) -> Result<Built, Problem> {
        Ok(Built::stateless(Passage { next }))
    }
}

struct Passage {
    next: Next,
}

impl Consumer for Passage {
    fn consume(&self, payload: Payload) -> BoxFuture<'_, Result<(), Refusal>> {
        Box::pin(self.next.consume(payload))
    }

    fn ready(&self) -> BoxFuture<'_, ()> {
        Box::pin(self.next.ready())
    }
}
