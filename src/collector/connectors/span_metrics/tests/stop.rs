//! The connector as it runs: what the stop hands on.

use futures_util::future::BoxFuture;
use tokio::time::Instant;

use super::*;
use crate::collector::component::{Connector as _, Consumer, Next, Refusal};
use crate::collector::connectors::span_metrics::connector::SpanMetrics;
use crate::collector::counters::Tally;
use crate::collector::deadline::Deadline;
use crate::collector::testing::{self, Keeper};

struct Stuck;

impl Consumer for Stuck {
    fn consume(&self, _: Payload) -> BoxFuture<'_, Result<(), Refusal>> {
        Box::pin(std::future::pending())
    }
}

#[tokio::test]
async fn what_cannot_be_handed_on_in_time_is_counted() {
    let context = testing::context("connectors/span_metrics");
    let connector = SpanMetrics { settings: settings() };
    let built = connector.build(context.clone(), Signal::Traces, Signal::Metrics, Next::to(Stuck)).expect("built");
    built.consumer.consume(shop(vec![span("a", 1)])).await.expect("taken");
    built.running.shutdown(Deadline::fixed(Instant::now() + Duration::from_millis(20))).await;
    assert!(context.counters.total(Signal::Metrics, &Tally::Dropped("shutdown".into())) > 0);
}

#[tokio::test]
async fn the_stop_hands_on_what_came_after_the_last_flush_and_no_more() {
    let context = testing::context("connectors/span_metrics");
    for spans in [2, 0] {
        let kept = Keeper::default();
        let connector = SpanMetrics { settings: Settings { excluded: [false; 5], ..settings() } };
        let built = connector.build(context.clone(), Signal::Traces, Signal::Metrics, Next::to(kept.clone()));
        let built = built.expect("built");
        if spans > 0 {
            built.consumer.consume(shop((0..spans).map(|_| span("a", 1)).collect())).await.expect("taken");
        }
        built.running.shutdown(Deadline::fixed(Instant::now() + Duration::from_secs(5))).await;
        let kept = kept.payloads.lock().expect("lock");
        if spans == 0 {
            assert!(kept.is_empty());
        } else {
            assert_eq!(kept.len(), 1);
            let line = calls(&kept[0]).remove(0);
            let id = line.split_once("collector.instance.id=").expect("id").1;
            let id = id.split_once('}').expect("end").0;
            assert_eq!((id.len(), &id[14..15]), (36, "4"), "{id}");
        }
    }
}
