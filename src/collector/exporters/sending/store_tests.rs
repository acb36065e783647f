//! What is stored is tried each once, in order, and nothing keeps the rest back.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use futures_util::future::BoxFuture;
use tokio_util::task::TaskTracker;

use super::backoff::Retry;
use super::outcome::{Outcome, PartialSuccess};
use super::sender::{Sender, Stop, Transport};
use super::store::{Begin, MOST_IN_VAIN, Store};
use crate::collector::component::Refusal;
use crate::collector::counters::Tally;
use crate::collector::own::Labels;
use crate::collector::storage::Spool;
use crate::collector::testing::{context, eventually, spans};
use crate::otlp::{Payload, Signal};

/// By how many items a request has, and how many came before it.
type Answer = fn(usize, usize) -> Outcome;

/// The endpoint.
struct Endpoint {
    answer: Answer,
    /// The items of all requests.
    seen: Mutex<Vec<usize>>,
    stop: Stop,
    /// The stop comes while that request is under way, counted from 0.
    stops_at: AtomicUsize,
}

impl Transport for Endpoint {
    fn encode(&self, payload: Payload) -> std::io::Result<Bytes> {
        Ok(vec![0; payload.item_count()].into())
    }

    fn endpoint(&self) -> Labels {
        Labels::default()
    }

    fn attempt(&self, request: Bytes) -> BoxFuture<'_, Outcome> {
        let mut seen = self.seen.lock().expect("lock");
        if seen.len() == self.stops_at.load(Ordering::SeqCst) {
            self.stop.last_try.cancel();
        }
        seen.push(request.len());
        Box::pin(std::future::ready((self.answer)(request.len(), seen.len() - 1)))
    }
}

fn taken() -> Outcome {
    Outcome::Accepted(PartialSuccess::default())
}

fn later(pause: Option<Duration>) -> Outcome {
    Outcome::Later { refusal: Refusal::retryable("http_503", "status 503"), pause }
}

fn of_sender() -> Outcome {
    let refusal = Refusal::permanent("http_401", "status 401");
    Outcome::Never(Refusal { of_sender: true, ..refusal })
}

struct Scene {
    store: Arc<Store>,
    spool: Arc<Spool>,
    endpoint: Arc<Endpoint>,
    stop: Stop,
    tasks: TaskTracker,
    context: crate::collector::component::Context,
    _folder: tempfile::TempDir,
}

impl Scene {
    /// Requests of 1, 2, ... `requests` items are stored.
    async fn new(requests: usize, answer: Answer) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let open = || Arc::new(Spool::open(folder.path(), Arc::default()).expect("opens"));
        let former = open();
        for items in 1..=requests {
            former.add(former.put(spans(items)).await.expect("stores"));
        }
        let spool = open();
        let (stop, tasks, context) = (Stop::default(), TaskTracker::new(), context("exporters/x"));
        let (seen, stops_at) = (Mutex::default(), AtomicUsize::new(usize::MAX));
        let endpoint = Arc::new(Endpoint { answer, seen, stop: stop.clone(), stops_at });
        let moment = Duration::from_millis(1);
        let sender = Sender {
            signal: Signal::Traces,
            transport: endpoint.clone(),
            retry: Some(Retry { initial: moment, largest: moment, ..Retry::default() }),
            context: context.clone(),
            stop: stop.clone(),
            meter: Arc::default(),
        };
        let store = Store::new(Arc::new(sender), spool.clone(), tasks.clone());
        Self { store, spool, endpoint, stop, tasks, context, _folder: folder }
    }

    fn seen(&self) -> Vec<usize> {
        self.endpoint.seen.lock().expect("lock").clone()
    }

    /// Sends until there is no pause any more.
    async fn end(&self) {
        self.stop.last_try.cancel();
        self.store.send(Begin::AtOnce);
        self.tasks.close();
        tokio::time::timeout(Duration::from_mins(1), self.tasks.wait()).await.expect("comes to an end");
    }

    async fn until_left(&self, requests: usize) {
        self.store.send(Begin::AtOnce);
        eventually(|| self.spool.len() == requests).await;
    }
}

#[tokio::test]
async fn what_the_endpoint_never_takes_keeps_nothing_back() {
    for answer in [
        |items, _| if items == 2 { later(None) } else { taken() },
        |items, _| match items {
            2 => later(Some(Duration::from_millis(1))),
            _ => taken(),
        },
    ] {
        let scene = Scene::new(4, answer).await;
        scene.until_left(1).await;
        assert_eq!(scene.seen()[..4], [1, 2, 3, 4]);
        assert_eq!(scene.context.counters.total(Signal::Traces, &Tally::Sent), 8);
        scene.spool.add(scene.spool.put(spans(9)).await.expect("stores"));
        eventually(|| scene.spool.len() == 1).await;
        scene.end().await;
        assert_eq!(scene.spool.files(None).len(), 1, "it stays");
    }
}

/// More of them than end a round: the next one begins behind them, and sends the rest in order.
#[tokio::test]
async fn nor_do_many() {
    let scene = Scene::new(3 * MOST_IN_VAIN + 3, |items, _| match items {
        items if items > 3 * MOST_IN_VAIN => taken(),
        _ => later(None),
    })
    .await;
    scene.until_left(3 * MOST_IN_VAIN).await;
    let seen = scene.seen();
    let last = 3 * MOST_IN_VAIN + 3;
    assert_eq!(seen[..MOST_IN_VAIN], (1..=MOST_IN_VAIN).collect::<Vec<_>>());
    let mut sent: Vec<usize> = seen.into_iter().filter(|items| *items > 3 * MOST_IN_VAIN).collect();
    sent.dedup();
    assert_eq!(sent, (last - 2..=last).collect::<Vec<_>>());
    scene.end().await;
}

/// What the endpoint says of all ends a round, and so do some tries in vain: nothing is gained by reading all that is stored.
#[tokio::test]
async fn an_endpoint_that_takes_nothing_is_not_asked_for_all() {
    let answers: [(Answer, usize); 3] =
        [(|_, _| later(None), MOST_IN_VAIN), (|_, _| later(Some(Duration::from_secs(1))), 1), (|_, _| of_sender(), 1)];
    for (answer, tries) in answers {
        let scene = Scene::new(3 * MOST_IN_VAIN, answer).await;
        scene.end().await;
        assert_eq!((scene.seen().len(), scene.spool.len()), (tries, 3 * MOST_IN_VAIN));
        assert!(scene.spool.settled().await.problem.is_some_and(|problem| problem.contains("status")));
    }
}

/// After an outage only the request that found its end goes before older ones.
#[tokio::test]
async fn after_an_outage_the_order_is_kept() {
    let scene = Scene::new(20, |_, before| if before < MOST_IN_VAIN + 2 { later(None) } else { taken() }).await;
    scene.until_left(0).await;
    let found = MOST_IN_VAIN + 3;
    let tried_in_vain = [found - 2, found - 1];
    let mut wanted: Vec<usize> = (1..=20).filter(|items| *items != found && !tried_in_vain.contains(items)).collect();
    wanted.insert(0, found);
    let seen = scene.seen();
    assert_eq!(seen[MOST_IN_VAIN + 2..][..wanted.len()], wanted);
    assert_eq!(seen[MOST_IN_VAIN + 2 + wanted.len()..], tried_in_vain);
    assert_eq!(scene.spool.settled().await.problem, None);
    scene.end().await;
}

/// Whoever waits for the end of it is told at once that waiting does not help.
#[tokio::test]
async fn a_sender_that_is_refused_is_an_end() {
    let scene = Scene::new(2, |_, _| of_sender()).await;
    scene.store.send(Begin::AtOnce);
    let settled =
        tokio::time::timeout(Duration::from_mins(1), scene.spool.settled()).await.expect("before it is given up");
    assert_eq!(settled.problem.as_deref(), Some("status 401"));
    scene.end().await;
}

/// A stop may come while a round is under way: all is tried once more.
#[tokio::test]
async fn a_round_that_a_stop_finds_half_done_is_followed_by_a_whole_one() {
    let scene = Scene::new(3, |_, before| if before < 1 { later(None) } else { taken() }).await;
    scene.endpoint.stops_at.store(1, Ordering::SeqCst);
    scene.store.send(Begin::AtOnce);
    scene.tasks.close();
    tokio::time::timeout(Duration::from_mins(1), scene.tasks.wait()).await.expect("comes to an end");
    assert_eq!((scene.seen(), scene.spool.len()), (vec![1, 2, 3, 1], 0));
}
