//! Senders that do nothing wrong, by HTTP and by gRPC, until they are told to stop.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use gymrun::otlp::Signal;
use gymrun::otlp::wire::Writer;
use tokio::task::JoinHandle;

use super::grpc::{Channel, frame};

/// The senders.
pub struct Traffic {
    done: Arc<AtomicBool>,
    sent: Arc<AtomicUsize>,
    senders: Vec<JoinHandle<()>>,
}

/// A request of three spans named `good`.
fn request() -> Vec<u8> {
    let mut request = Writer::new();
    request.message_field(1, |entry| {
        entry.message_field(2, |scope| {
            for _ in 0..3 {
                scope.message_field(2, |span| {
                    span.bytes_field(1, &[1; 16]);
                    span.bytes_field(2, &[2; 8]);
                    span.bytes_field(5, b"good");
                });
            }
        });
    });
    request.into_vec()
}

impl Traffic {
    /// Sends to these ports from now on.
    pub async fn start(http: u16, grpc: u16) -> Self {
        let (done, sent) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicUsize::new(0)));
        let (until, count) = (done.clone(), sent.clone());
        let by_http = tokio::spawn(async move {
            let client = reqwest::Client::new();
            while !until.load(Ordering::SeqCst) {
                let post = client.post(format!("http://127.0.0.1:{http}/v1/traces"));
                let post = post.header("content-type", "application/x-protobuf").body(request());
                let answer = post.send().await.expect("an answer");
                assert_eq!(answer.status(), 200);
                count.fetch_add(3, Ordering::SeqCst);
                tokio::task::yield_now().await;
            }
        });
        let channel = Channel::connect(grpc).await;
        let (until, count) = (done.clone(), sent.clone());
        let by_grpc = tokio::spawn(async move {
            while !until.load(Ordering::SeqCst) {
                assert_eq!(channel.send(Signal::Traces, None, &frame(&request())).await, 0);
                count.fetch_add(3, Ordering::SeqCst);
                tokio::task::yield_now().await;
            }
        });
        Self { done, sent, senders: vec![by_http, by_grpc] }
    }

    /// Stops; gives how many spans were accepted.
    pub async fn stop(self) -> usize {
        self.done.store(true, Ordering::SeqCst);
        for sender in self.senders {
            sender.await.expect("the answers were good");
        }
        let sent = self.sent.load(Ordering::SeqCst);
        assert!(sent > 0);
        sent
    }
}
