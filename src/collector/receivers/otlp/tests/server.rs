//! A receiver on free ports, and what its tests send.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

use crate::collector::component::{Consumer, Next, Outputs, Running};
use crate::collector::deadline::Deadline;
use crate::collector::log::{Level, Log};
use crate::collector::net::encoding::ENCODINGS;
use crate::collector::receivers::otlp::config::{GrpcSettings, HttpSettings};
use crate::collector::receivers::otlp::receiver::{Listening, OtlpReceiver};
use crate::collector::testing;
use crate::otlp::Signal;
use crate::otlp::wire::Writer;

pub struct Server {
    pub grpc: String,
    pub http: String,
    running: Listening,
}

/// A receiver of traces and metrics with these limits; logs have no pipeline.
pub async fn start(consumer: impl Consumer + 'static, max_message: usize, max_body: usize) -> Server {
    let lines = Arc::new(Mutex::new(Vec::new()));
    let kept = Arc::clone(&lines);
    let sink = move |line: &str| kept.lock().unwrap_or_else(PoisonError::into_inner).push(line.to_owned());
    let mut context = testing::context("receivers/otlp");
    context.log = Log::new(Arc::new(sink), Level::Info);
    let next = Next::to(consumer);
    let outputs = Outputs::default().with(Signal::Traces, next.clone()).with(Signal::Metrics, next);
    let paths = Signal::ALL.map(|signal| (format!("/v1/{}", signal.name()), signal)).to_vec();
    let endpoint = "127.0.0.1:0".to_string();
    let receiver = OtlpReceiver {
        grpc: Some(GrpcSettings { endpoint: endpoint.clone(), max_message, ..GrpcSettings::default() }),
        http: Some(HttpSettings {
            endpoint,
            paths,
            max_body,
            encodings: ENCODINGS.to_vec(),
            ..HttpSettings::default()
        }),
    };
    let running = receiver.listen(context, outputs).await.expect("free ports");
    let address = |protocol: &str| {
        let lines = lines.lock().unwrap_or_else(PoisonError::into_inner);
        let line = lines.iter().find(|line| line.contains(protocol)).expect("a line with the address");
        let address = line.split_whitespace().find(|word| word.starts_with("127.0.0.1:")).expect("an address");
        format!("http://{address}")
    };
    Server { grpc: address("OTLP/gRPC"), http: address("OTLP/HTTP"), running }
}

impl Server {
    pub async fn stop(self, within: Duration) {
        Box::new(self.running).shutdown(Deadline::fixed(Instant::now() + within)).await;
    }
}

/// A trace request of one span whose name has `size` bytes.
pub fn trace(size: usize) -> Vec<u8> {
    let mut writer = Writer::new();
    let name = "n".repeat(size);
    writer.message_field(1, |resource| {
        resource.message_field(2, |scope| scope.message_field(2, |span| span.bytes_field(5, name.as_bytes())));
    });
    writer.into_vec()
}

/// The same as JSON.
pub fn json_trace() -> &'static str {
    r#"{"resourceSpans":[{"scopeSpans":[{"spans":[{"name":"n"}]}]}]}"#
}
