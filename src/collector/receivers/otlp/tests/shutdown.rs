//! Stopping while requests are in flight.

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;
use tokio::sync::Semaphore;

use super::http::client;
use super::server::{json_trace, start};
use crate::collector::component::{Consumer, Refusal};
use crate::otlp::Payload;

/// Says that a payload has come, then waits for leave.
#[derive(Clone)]
struct Gate {
    come: Arc<Semaphore>,
    leave: Arc<Semaphore>,
}

impl Gate {
    fn closed() -> Self {
        Self { come: Arc::new(Semaphore::new(0)), leave: Arc::new(Semaphore::new(0)) }
    }
}

impl Consumer for Gate {
    fn consume(&self, _payload: Payload) -> BoxFuture<'_, Result<(), Refusal>> {
        Box::pin(async {
            self.come.add_permits(1);
            let _leave = self.leave.acquire().await;
            Ok(())
        })
    }
}

async fn request(url: String) -> (u16, String) {
    let request = client().post(format!("{url}/v1/traces")).header("content-type", "application/json");
    let response = request.body(json_trace()).send().await.expect("an answer");
    (response.status().as_u16(), response.text().await.expect("a body"))
}

#[tokio::test]
async fn what_is_in_flight_is_finished() {
    let gate = Gate::closed();
    let server = start(gate.clone(), 1 << 20, 1 << 20).await;
    let url = server.http.clone();
    let answer = tokio::spawn(request(url.clone()));
    let _come = gate.come.acquire().await.expect("open");
    let stopping = tokio::spawn(server.stop(Duration::from_mins(1)));
    // No new connection is taken from the moment on when the stop has begun.
    let refused = async {
        while client().post(&url).send().await.is_ok() {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(Duration::from_mins(1), refused).await.expect("refuses new requests");
    gate.leave.add_permits(1);
    assert_eq!(answer.await.expect("no panic").0, 200);
    stopping.await.expect("no panic");
}

#[tokio::test]
async fn at_the_deadline_it_is_refused() {
    let gate = Gate::closed();
    let server = start(gate.clone(), 1 << 20, 1 << 20).await;
    let answer = tokio::spawn(request(server.http.clone()));
    let _come = gate.come.acquire().await.expect("open");
    server.stop(Duration::from_millis(50)).await;
    let (status, text) = answer.await.expect("no panic");
    assert_eq!(status, 503, "{text}");
    assert!(text.contains("shutting down"), "{text}");
}
