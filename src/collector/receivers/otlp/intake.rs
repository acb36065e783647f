//! What both protocols share: the way of a request into the pipelines.

use std::sync::Arc;

use tokio_util::sync::CancellationToken;

use super::status::{INTERNAL, Status};
use super::under_way::UnderWay;
use crate::collector::component::{Context, Outputs};
use crate::collector::items::counted_items;
use crate::collector::own::{ACCEPTED, Count, FAILED, Families, Meters, Number, REFUSED, labels, of};
use crate::otlp::{DecodeError, Payload, Signal};

/// How a request came.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Protocol {
    Http,
    Grpc,
}

/// What came by one protocol, by signal: taken and refused.
type Flow = [[Count; 2]; 3];

/// Hands payloads to the pipelines.
pub(super) struct Intake {
    context: Context,
    outputs: Outputs,
    /// The time for what is in flight is over.
    abandoned: CancellationToken,
    flows: Arc<[Flow; 2]>,
    /// The requests.
    pub under_way: UnderWay,
}

impl Intake {
    pub fn new(context: Context, outputs: Outputs, stop: CancellationToken, abandoned: CancellationToken) -> Self {
        let flows: Arc<[Flow; 2]> = Arc::default();
        let (counted, id) = (flows.clone(), context.name.trim_start_matches("receivers/").to_owned());
        context.shared.get::<Meters>().add(move |families| read(&counted, &id, families));
        Self { context, outputs, abandoned, flows, under_way: UnderWay::new(stop) }
    }

    /// Whether some pipeline takes the signal.
    pub fn takes(&self, signal: Signal) -> bool {
        self.outputs.get(signal).is_some()
    }

    /// Says that a request could not be read; how many items it had nobody knows.
    pub fn malformed(&self, signal: Signal, error: &DecodeError) {
        self.context.failed(&format!("refused a malformed request of {}: {error}", signal.name()));
    }

    /// Hands a payload on; one without items is success as it is. A client that goes away does not undo it, so that
    /// all pipelines get it or none.
    pub async fn take(&self, payload: Payload, protocol: Protocol) -> Result<(), Status> {
        let (signal, items) = (payload.signal, payload.item_count());
        let Some(next) = self.outputs.get(signal).filter(|_| items > 0).cloned() else { return Ok(()) };
        let (context, abandoned, flows) = (self.context.clone(), self.abandoned.clone(), self.flows.clone());
        let handed = tokio::spawn(async move {
            // What goes into the pipelines is counted there, and so is what is given up on its way.
            let result = tokio::select! {
                biased;
                // The pipelines are no longer there for what comes as late as that.
                () = abandoned.cancelled() => Err(Status::stopping()),
                result = next.consume(payload) => result.map_err(Status::from),
            };
            flows[protocol as usize][signal as usize][usize::from(result.is_err())].add(items);
            if let Err(status) = &result {
                context.failed(&format!("refused {}: {}", counted_items(signal, items), status.message));
            }
            result
        });
        handed.await.unwrap_or_else(|error| {
            Err(Status { code: INTERNAL, http: 500, message: format!("the pipeline failed: {error}") })
        })
    }
}

fn read(flows: &[Flow; 2], id: &str, families: &mut Families) {
    for (flow, transport) in flows.iter().zip(["http", "grpc"]) {
        for signal in Signal::ALL {
            let [taken, refused] = &flow[signal as usize];
            if taken.get() + refused.get() == 0 {
                continue;
            }
            for (instruments, items) in [(&ACCEPTED, taken.get()), (&REFUSED, refused.get()), (&FAILED, 0)] {
                let labels = labels([("receiver", id), ("transport", transport)]);
                families.add(of(instruments, signal), labels, Number::Integer(items));
            }
        }
    }
}
