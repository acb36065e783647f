//! What a lane says about itself: sent, failed, under way, waiting.

use std::sync::Arc;

use super::room::Room;
use super::sender::Sender;
use crate::collector::counters::Tally;
use crate::collector::own::{
    Count, ENQUEUE_FAILED, Families, IN_FLIGHT, Labels, Meters, Number, QUEUE_CAPACITY, QUEUE_SIZE, SEND_FAILED, SENT,
    labels, of,
};
use crate::otlp::Signal;

/// The counts of one lane.
#[derive(Default)]
pub(super) struct LaneMeter {
    /// Requests that were decided.
    pub decided: Count,
    /// Requests that are not decided yet.
    pub in_flight: Count,
    /// Items that were given up, once each: neither what is tried again nor what is stored.
    pub failed: Count,
    /// Items that the queue did not take.
    pub not_queued: Count,
}

/// Has the lane of `sender` say its numbers.
pub(super) fn register(sender: &Sender, room: Option<Arc<Room>>) {
    let (context, signal, meter) = (sender.context.clone(), sender.signal, sender.meter.clone());
    let id = context.name.trim_start_matches("exporters/").to_owned();
    let counters = context.counters.clone();
    let endpoint = sender.transport.endpoint();
    context.shared.get::<Meters>().add(move |families| {
        let count = |tally| counters.of(&context.name, signal, &tally);
        // What an endpoint left out of what it accepted counts as sent there.
        let sent = count(Tally::Sent).saturating_add(count(Tally::Rejected));
        read(&meter, &id, signal, sent, &endpoint, families);
        if let Some(room) = &room {
            let (size, capacity) = room.fill();
            for (instrument, number) in [(&QUEUE_SIZE, size), (&QUEUE_CAPACITY, capacity)] {
                families.add(instrument, of_signal(&id, signal), Number::Integer(number));
            }
        }
    });
}

fn of_signal(id: &str, signal: Signal) -> Labels {
    labels([("exporter", id), ("data_type", signal.name())])
}

fn read(meter: &LaneMeter, id: &str, signal: Signal, sent: u64, endpoint: &Labels, families: &mut Families) {
    let with_endpoint = || labels([("exporter", id)]).into_iter().chain(endpoint.clone()).collect::<Labels>();
    let (decided, in_flight) = (meter.decided.get(), meter.in_flight.get());
    if decided > 0 {
        families.add(of(&SENT, signal), with_endpoint(), Number::Integer(sent));
    }
    if decided + in_flight > 0 {
        families.add(&IN_FLIGHT, of_signal(id, signal), Number::Integer(in_flight));
    }
    for (instruments, items, labels) in [
        (&SEND_FAILED, meter.failed.get(), with_endpoint()),
        (&ENQUEUE_FAILED, meter.not_queued.get(), labels([("exporter", id)])),
    ] {
        if items > 0 {
            families.add(of(instruments, signal), labels, Number::Integer(items));
        }
    }
}
