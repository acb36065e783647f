//! What becomes of data on its way through a lane.

use std::fs;
use std::path::PathBuf;
use std::sync::atomic::{AtomicI32, Ordering};

use bytes::Bytes;
use futures_util::FutureExt as _;

use super::super::outcome::{Outcome, PartialSuccess};
use super::super::queue::{Batch, Sizer};
use super::*;
use crate::collector::counters::Tally;
use crate::collector::own::Labels;
use crate::collector::testing::{context, eventually, spans};

/// Takes everything, and makes the files of a folder such that they cannot be removed; without one it never answers.
struct Endpoint {
    folder: Option<PathBuf>,
}

impl Transport for Endpoint {
    fn encode(&self, _payload: Payload) -> std::io::Result<Bytes> {
        Ok(Bytes::new())
    }

    fn endpoint(&self) -> Labels {
        Labels::default()
    }

    fn attempt(&self, _request: Bytes) -> BoxFuture<'_, Outcome> {
        let Some(folder) = &self.folder else { return Box::pin(std::future::pending()) };
        for entry in fs::read_dir(folder).expect("reads") {
            let path = entry.expect("an entry").path();
            if path.is_file() {
                fs::remove_file(&path).expect("removes");
                fs::create_dir_all(path.join("not empty")).expect("makes");
            }
        }
        let partial_success = PartialSuccess { rejected: 0, message: String::new() };
        Box::pin(std::future::ready(Outcome::Accepted(partial_success)))
    }
}

/// Is busy that often, then takes one request and never will take another.
struct Busy(AtomicI32);

impl Transport for Busy {
    fn encode(&self, _payload: Payload) -> std::io::Result<Bytes> {
        Ok(Bytes::new())
    }

    fn endpoint(&self) -> Labels {
        Labels::default()
    }

    fn attempt(&self, _request: Bytes) -> BoxFuture<'_, Outcome> {
        let left = self.0.fetch_sub(1, Ordering::SeqCst);
        Box::pin(std::future::ready(match left {
            2.. => Outcome::Later { refusal: Refusal::retryable("http_503", "busy"), pause: None },
            1 => Outcome::Accepted(PartialSuccess { rejected: 0, message: String::new() }),
            _ => Outcome::Never(Refusal::permanent("http_400", "never")),
        }))
    }
}

/// Takes everything, but a payload of five items is its end.
struct Broken;

impl Transport for Broken {
    fn encode(&self, payload: Payload) -> std::io::Result<Bytes> {
        assert_ne!(payload.item_count(), 5, "a defect");
        Ok(Bytes::new())
    }

    fn endpoint(&self) -> Labels {
        Labels::default()
    }

    fn attempt(&self, _request: Bytes) -> BoxFuture<'_, Outcome> {
        Box::pin(std::future::ready(Outcome::Accepted(PartialSuccess::default())))
    }
}

fn sender(transport: Arc<dyn Transport>) -> Sender {
    let moment = Duration::from_millis(1);
    Sender {
        signal: Signal::Traces,
        transport,
        retry: Some(Retry { initial: moment, largest: moment, longest: moment, ..Retry::default() }),
        context: context("exporters/x"),
        stop: Stop::default(),
        meter: Arc::default(),
    }
}

fn lane(folder: Option<PathBuf>, spool: &Arc<Spool>) -> Arc<Lane> {
    lane_to(Arc::new(Endpoint { folder }), spool)
}

fn lane_to(transport: Arc<dyn Transport>, spool: &Arc<Spool>) -> Arc<Lane> {
    let queue = Queue { size: 1, ..Queue::default() };
    Arc::new(Lane::new(sender(transport), Some(queue), Some(spool.clone())))
}

/// Whoever waits for the result is told, also if it is only a part of the data that was lost.
#[tokio::test]
async fn data_that_a_defect_costs_is_refused_to_whoever_waits() {
    let batch = Batch { sizer: Sizer::Items, flush_timeout: Duration::from_millis(1), least: 0, most: 7 };
    for batch in [None, Some(batch)] {
        let queue = Queue { wait_for_result: true, batch: batch.clone(), ..Queue::default() };
        let lane = Arc::new(Lane::new(sender(Arc::new(Broken)), Some(queue), None));
        let parts = if batch.is_some() { 12 } else { 5 };
        let refusal = lane.clone().take(spans(parts)).await.expect_err("five were lost");
        assert_eq!((refusal.reason.as_ref(), refusal.retryable), ("panic", false));
        lane.clone().take(spans(parts - 1)).await.expect("all were sent");
        let counts = |tally| lane.sender.context.counters.total(Signal::Traces, &tally);
        assert_eq!(counts(Tally::Dropped("panic".into())), 5);
        assert_eq!(counts(Tally::Sent), (2 * parts - 6) as u64);
    }
}

/// A task may end before it began: its runtime did.
#[tokio::test]
async fn data_that_nobody_decided_about_is_refused() {
    let room = Room::new(Sizer::Requests, 1);
    for (settled, reason) in [(true, None), (false, Some("shutdown"))] {
        let ticket = room.enter(&spans(1), false).await.expect("room");
        let (result, part) = (ticket.wait(), ticket.clone());
        part.settle();
        if settled {
            ticket.settle();
        } else {
            drop(ticket);
        }
        let refusal = result.await.expect("a result").err();
        assert_eq!(refusal.as_ref().map(|refusal| refusal.reason.as_ref()), reason);
    }
}

#[tokio::test]
async fn what_was_sent_and_cannot_be_removed_is_sent_once() {
    let folder = tempfile::tempdir().expect("a folder");
    let spool = Arc::new(Spool::open(folder.path(), Arc::default()).expect("opens"));
    for _ in 0..2 {
        spool.add(spool.put(spans(3)).await.expect("stores"));
    }
    let lane = lane(Some(folder.path().to_owned()), &spool);
    lane.store.as_ref().expect("a store").send(Begin::AtOnce);
    lane.tasks.close();
    tokio::time::timeout(Duration::from_mins(1), lane.tasks.wait()).await.expect("comes to an end");
    let counters = &lane.sender.context.counters;
    assert_eq!(counters.total(Signal::Traces, &Tally::Sent), 3, "the other one could not be read any more");
    assert_eq!(spool.len(), 2);
}

/// What is tried again, and again from the disk, has not failed: what it comes to in the end is counted, once.
#[tokio::test]
async fn an_item_counts_as_what_finally_became_of_it() {
    let folder = tempfile::tempdir().expect("a folder");
    let spool = Arc::new(Spool::open(folder.path(), Arc::default()).expect("opens"));
    let lane = lane_to(Arc::new(Busy(AtomicI32::new(20))), &spool);
    let (counters, failed) = (lane.sender.context.counters.clone(), || lane.sender.meter.failed.get());
    let total = |tally: &Tally| counters.total(Signal::Traces, tally);
    lane.clone().take(spans(3)).await.expect("waits in the queue");
    eventually(|| total(&Tally::Sent) == 3).await;
    eventually(|| total(&Tally::Stored) == 0).await;
    assert_eq!(failed(), 0);
    lane.clone().take(spans(5)).await.expect("waits in the queue");
    eventually(|| total(&Tally::Dropped("http_400".into())) == 5).await;
    assert_eq!((failed(), total(&Tally::Sent), total(&Tally::Stored)), (5, 3, 0));
    // The same of what is on the disk when it is refused.
    spool.add(spool.put(spans(2)).await.expect("stores"));
    lane.store.as_ref().expect("a store").send(Begin::AtOnce);
    eventually(|| total(&Tally::Dropped("http_400".into())) == 7).await;
    assert_eq!(failed(), 7);
}

#[tokio::test]
async fn what_a_full_queue_stores_is_counted_though_nobody_waits() {
    let folder = tempfile::tempdir().expect("a folder");
    let spool = Arc::new(Spool::open(folder.path(), Arc::default()).expect("opens"));
    let lane = lane(None, &spool);
    lane.clone().take(spans(1)).await.expect("waits in the queue");
    assert!(lane.clone().take(spans(5)).now_or_never().is_none(), "it is being stored");
    let counters = lane.sender.context.counters.clone();
    eventually(|| counters.total(Signal::Traces, &Tally::Stored) == 5).await;
    assert_eq!(spool.len(), 1);
}
