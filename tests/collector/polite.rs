//! Peers of gRPC that leave politely: calls under way are finished, and what was not looked at is sent again.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use serde_json::json;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};

use crate::harness::{Answer, Collector, GOOD, Sink, free_port};
use crate::{config, span_count, spans};

const DATA: u8 = 0;
const HEADERS: u8 = 1;
const RESET: u8 = 3;
const SETTINGS: u8 = 4;
const LEAVE: u8 = 7;
const END_STREAM: u8 = 1;
const END_HEADERS: u8 = 4;

const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

/// A frame of HTTP/2.
fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let length = u32::try_from(payload.len()).expect("small").to_be_bytes();
    [&length[1..], &[kind, flags], &stream.to_be_bytes(), payload].concat()
}

/// The next frame: its kind, flags, stream and payload; none when the connection is closed.
async fn next(peer: &mut TcpStream) -> Option<(u8, u8, u32, Vec<u8>)> {
    let read = async {
        let mut head = [0; 9];
        peer.read_exact(&mut head).await.ok()?;
        let mut payload = vec![0; u32::from_be_bytes([0, head[0], head[1], head[2]]) as usize];
        peer.read_exact(&mut payload).await.ok()?;
        Some((head[3], head[4], u32::from_be_bytes([head[5], head[6], head[7], head[8]]), payload))
    };
    tokio::time::timeout(Duration::from_mins(1), read).await.expect("a frame or an end")
}

/// The begin of a call of spans.
async fn call(port: u16) -> TcpStream {
    let path = b"/opentelemetry.proto.collector.trace.v1.TraceService/Export";
    let kind = b"application/grpc";
    let length = |bytes: &[u8]| vec![u8::try_from(bytes.len()).expect("short")];
    // POST, http, the path, the type.
    let headers = [&[0x83, 0x86, 0x44][..], &length(path), path, &[0x5f], &length(kind), kind].concat();
    let begin = [PREFACE, &frame(SETTINGS, 0, 0, b""), &frame(HEADERS, END_HEADERS, 1, &headers)].concat();
    let mut client = TcpStream::connect(("127.0.0.1", port)).await.expect("connects");
    client.write_all(&begin).await.expect("sends");
    client
}

fn aged(grpc: u16, grace: &str) -> String {
    let keepalive = format!("keepalive: {{server_parameters: {{max_connection_age: 50ms{grace}}}}}");
    let protocols = "http: {endpoint: $HTTP}";
    config("  batch: {timeout: 10ms}", "batch", "", "file")
        .replace(protocols, &format!("{protocols}\n      grpc: {{endpoint: \"127.0.0.1:{grpc}\", {keepalive}}}"))
}

/// Clients of a connection that is old enough are told so, and what they have begun is answered.
#[tokio::test]
async fn an_old_connection_is_left_and_its_calls_are_answered() {
    for grace in ["", ", max_connection_age_grace: 1h"] {
        let grpc = free_port();
        let mut collector = Collector::start(&aged(grpc, grace), &[]).await;
        let mut client = call(grpc).await;
        while next(&mut client).await.expect("told first").0 != LEAVE {}
        let message = spans_in_wire_form();
        let length = u32::try_from(message.len()).expect("small").to_be_bytes();
        let message = [&[0][..], &length, &message].concat();
        client.write_all(&frame(DATA, END_STREAM, 1, &message)).await.expect("still open");
        let is_end = |(kind, flags, stream, _): &(u8, u8, u32, Vec<u8>)| {
            (*kind, *stream) == (HEADERS, 1) && flags & END_STREAM != 0
        };
        while !is_end(&next(&mut client).await.expect("an answer")) {}
        drop(client);
        assert_eq!(collector.stop().await, 0);
        assert_eq!(span_count(&collector.lines("x.jsonl")), 1, "{grace}");
    }
}

/// A request of one span named `n`.
fn spans_in_wire_form() -> Vec<u8> {
    let span = [42, 1, b'n'];
    let scope = [&[18, 3][..], &span].concat();
    let resource = [&[18, 5][..], &scope].concat();
    [&[10, 7][..], &resource].concat()
}

/// However polite: after the grace the connection is closed.
#[tokio::test]
async fn who_stays_beyond_the_grace_is_cut_off() {
    let grpc = free_port();
    let mut collector = Collector::start(&aged(grpc, ", max_connection_age_grace: 50ms"), &[]).await;
    let mut client = call(grpc).await;
    let mut kinds = Vec::new();
    while let Some((kind, ..)) = next(&mut client).await {
        kinds.push(kind);
    }
    assert!(kinds.contains(&LEAVE), "{kinds:?}");
    assert_eq!(collector.stop().await, 0);
}

/// What is answered to the call of a stream.
type Refusal = fn(u32) -> Vec<u8>;

/// An endpoint of gRPC that does this to the first calls, and takes the others; and how many there were.
async fn endpoint(first: usize, refusal: Refusal) -> (u16, Arc<AtomicUsize>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
    let port = listener.local_addr().expect("an address").port();
    let calls = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&calls);
    tokio::spawn(async move {
        while let Ok((mut peer, _)) = listener.accept().await {
            let count = Arc::clone(&count);
            tokio::spawn(async move {
                let mut preface = [0; PREFACE.len()];
                let _ = peer.read_exact(&mut preface).await;
                let _ = peer.write_all(&frame(SETTINGS, 0, 0, b"")).await;
                while let Some((kind, _, stream, _)) = next(&mut peer).await {
                    if kind != HEADERS {
                        continue;
                    }
                    // A status of 200, and `grpc-status: 0`.
                    let taken = [&[0x88, 0, 11][..], b"grpc-status", &[1, b'0']].concat();
                    let answer = match count.fetch_add(1, Ordering::SeqCst) {
                        number if number < first => refusal(stream),
                        _ => frame(HEADERS, END_HEADERS | END_STREAM, stream, &taken),
                    };
                    let _ = peer.write_all(&answer).await;
                }
            });
        }
    });
    (port, calls)
}

/// It leaves, and the last stream that it looked at is none.
fn leaves(_: u32) -> Vec<u8> {
    frame(LEAVE, 0, 0, &[0; 8])
}

/// `REFUSED_STREAM`.
fn refuses(stream: u32) -> Vec<u8> {
    frame(RESET, 0, stream, &[0, 0, 0, 7])
}

/// `INTERNAL_ERROR`: who knows what became of it.
fn breaks(stream: u32) -> Vec<u8> {
    frame(RESET, 0, stream, &[0, 0, 0, 2])
}

/// Without any retries.
#[tokio::test]
async fn what_an_endpoint_never_looked_at_is_sent_again_and_nothing_else() {
    let cases: [(usize, Refusal, u32, usize); 4] =
        [(1, leaves, 3, 2), (1, refuses, 3, 2), (99, refuses, 0, 3), (1, breaks, 0, 1)];
    for (case, (first, refusal, sent, wanted)) in cases.into_iter().enumerate() {
        let (port, calls) = endpoint(first, refusal).await;
        let exporter = format!(
            "  otlp_grpc: {{endpoint: \"127.0.0.1:{port}\", tls: {{insecure: true}}, retry_on_failure: {{enabled: false}}}}\n"
        );
        let text = config("  batch: {timeout: 10ms}", "batch", &exporter, "otlp_grpc");
        let mut collector = Collector::start(&text, &[]).await;
        assert_eq!(collector.post("/v1/traces", &spans(3)).await.0, 200);
        assert_eq!(collector.stop().await, 0);
        let traces = &collector.delivery()["traces"];
        assert_eq!(traces["sent"], sent, "case {case}: {traces} {}", collector.stderr());
        assert_eq!(calls.load(Ordering::SeqCst), wanted, "case {case}");
    }
}

/// Some compress what nobody asked for.
#[tokio::test]
async fn an_answer_that_is_compressed_unasked_is_read() {
    let pack = |text: &str| {
        let mut packed = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        std::io::Write::write_all(&mut packed, text.as_bytes()).expect("memory");
        &*Box::leak(packed.finish().expect("memory").into_boxed_slice())
    };
    let partial = pack(r#"{"partialSuccess":{"rejectedSpans":"1","errorMessage":"bad"}}"#);
    for (body, rejected) in [(partial, 1), (&partial[..9], 0), (pack(&" ".repeat(1 << 20)), 0)] {
        let headers = vec![("content-type", "application/json"), ("content-encoding", "gzip")];
        let sink = Sink::start(vec![Answer::Give(200, headers, body)]).await;
        let exporter = format!("  otlp_http: {{endpoint: \"{}\"}}\n", sink.url());
        let text = config("  batch: {timeout: 10ms}", "batch", &exporter, "otlp_http");
        let mut collector = Collector::start(&text, &[]).await;
        assert_eq!(collector.post("/v1/traces", &spans(3)).await.0, 200);
        assert_eq!(collector.stop().await, 0);
        let traces = &collector.delivery()["traces"];
        let counts = json!([traces["sent"], traces["rejected"], traces["dropped"]]);
        assert_eq!(counts, json!([3 - rejected, rejected, {}]), "{}", collector.stderr());
    }
}

/// A proxy that speaks SOCKS, and gives every connection to one endpoint.
async fn socks(sink: u16) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
    let port = listener.local_addr().expect("an address").port();
    tokio::spawn(async move {
        while let Ok((mut client, _)) = listener.accept().await {
            let mut hello = [0; 2];
            client.read_exact(&mut hello).await.expect("a greeting");
            client.read_exact(&mut vec![0; usize::from(hello[1])]).await.expect("ways to say who one is");
            client.write_all(&[5, 0]).await.expect("no need");
            // An address of IPv4 and a port.
            client.read_exact(&mut [0; 10]).await.expect("a request");
            client.write_all(&[5, 0, 0, 1, 0, 0, 0, 0, 0, 0]).await.expect("granted");
            let mut endpoint = TcpStream::connect(("127.0.0.1", sink)).await.expect("connects");
            tokio::spawn(async move { tokio::io::copy_bidirectional(&mut client, &mut endpoint).await });
        }
    });
    port
}

#[tokio::test]
async fn a_proxy_may_speak_socks() {
    let sink = Sink::start(vec![GOOD]).await;
    let proxy = format!("socks5://127.0.0.1:{}", socks(sink.port).await);
    let text = config(
        "  batch: {timeout: 10ms}",
        "batch",
        "  otlp_http: {endpoint: \"http://192.0.2.1:4318\"}\n",
        "otlp_http",
    );
    let mut collector = Collector::start(&text, &[("HTTP_PROXY", &proxy)]).await;
    assert_eq!(collector.post("/v1/traces", &spans(3)).await.0, 200);
    assert_eq!(collector.stop().await, 0);
    assert_eq!(collector.delivery()["traces"]["sent"], 3, "{}", collector.stderr());
}
