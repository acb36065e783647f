//! Odd connections: half a request, one that is closed behind its request, more of them than there are descriptors.

use std::process::Command;
use std::time::Duration;

use nix::sys::resource::{Resource, getrlimit, setrlimit};
use nix::sys::signal::Signal;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use crate::harness::{Answer, Collector, GOOD, Sink, free_port};
use crate::rpc::half_call;
use crate::{config, eventually, span_count, spans};

/// How HTTP/2 begins, with a setting frame, and then the head of a call (`:method POST`, `:scheme http`) without an end.
const HALF_CALL: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0\0\0\x02\x01\x04\0\0\0\x01\x83\x86";

/// More than the buffers of a connection take.
const MUCH: usize = 8 << 20;

const HALVES: [&[u8]; 4] = [
    b"",
    b"POST /v1/traces HTTP/1.1\r\nHost: a\r\n",
    b"POST /v1/traces HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\nContent-Length: 100\r\n\r\n{\"resourceSpans\"",
    HALF_CALL,
];

/// Whoever has not sent a whole request when the collector stops waits in vain, and what the collector holds for others is
/// sent all the same.
#[tokio::test]
async fn half_a_request_takes_no_time_from_what_was_acknowledged() {
    for half in HALVES {
        let sink = Sink::start(vec![GOOD]).await;
        let exporter = format!("  otlp_http: {{endpoint: \"{}\"}}\n", sink.url());
        let text = config("  batch: {timeout: 60s}", "batch", &exporter, "file, otlp_http");
        let grpc = free_port();
        let protocols = "http: {endpoint: $HTTP}";
        let text = text.replace(protocols, &format!("{protocols}\n      grpc: {{endpoint: \"127.0.0.1:{grpc}\"}}"));
        let mut collector = Collector::start(&text, &[]).await;
        assert_eq!(collector.post("/v1/traces", &spans(3)).await.0, 200);
        let port = if half == HALF_CALL { grpc } else { collector.http };
        let mut client = TcpStream::connect(("127.0.0.1", port)).await.expect("connects");
        client.write_all(half).await.expect("sends");
        // An answer of another connection: the half has come, as far as one can know.
        assert_eq!(collector.post("/v1/traces", &spans(2)).await.0, 200);
        assert_eq!(collector.admin("/-/stop?seconds=20").await.0, 200);
        assert_eq!(collector.stop().await, 0);
        let traces = &collector.delivery()["traces"];
        let text = String::from_utf8_lossy(half);
        assert_eq!((&traces["received"], &traces["sent"]), (&5.into(), &5.into()), "{text}: {traces}");
        assert_eq!(span_count(&collector.lines("x.jsonl")), 5, "{text}");
    }
}

/// However long a stop may take: whoever hangs with half a request, or on a connection without one, is waited for a moment,
/// is told so where there is somebody to tell, and loses the connection. So the ports come back soon after a reload.
#[tokio::test]
async fn who_hangs_does_not_hold_a_stop() {
    let grpc = free_port();
    let protocols = "http: {endpoint: $HTTP}";
    let text = config("  batch: {timeout: 10ms}", "batch", "", "file")
        .replace(protocols, &format!("{protocols}\n      grpc: {{endpoint: \"127.0.0.1:{grpc}\"}}"));
    for signal in [Signal::SIGHUP, Signal::SIGTERM] {
        let mut collector = Collector::start(&text, &[]).await;
        let mut clients = Vec::new();
        // Of a call: nothing of its beginning, half of it, all of it (a connection that answers nothing from then on), the head.
        let calls: [&[u8]; 4] = [b"", &HALF_CALL[..10], &HALF_CALL[..33], HALF_CALL];
        for (port, halves) in [(collector.http, &HALVES[..3]), (grpc, &calls[..])] {
            for half in halves {
                let mut client = TcpStream::connect(("127.0.0.1", port)).await.expect("connects");
                client.write_all(half).await.expect("sends");
                clients.push((half, client));
            }
        }
        assert_eq!(collector.post("/v1/traces", &spans(1)).await.0, 200);
        assert_eq!(collector.admin("/-/stop?seconds=3600").await.0, 200);
        let call = half_call(grpc).await;
        collector.signal(signal);
        for (half, mut client) in clients {
            let mut answer = Vec::new();
            let read = tokio::time::timeout(Duration::from_mins(1), client.read_to_end(&mut answer)).await;
            assert!(read.is_ok(), "still open: {}", String::from_utf8_lossy(half));
            let answer = String::from_utf8_lossy(&answer);
            if *half == HALVES[2] {
                assert!(answer.starts_with("HTTP/1.1 503") && answer.contains("shutting down"), "{answer}");
            }
        }
        let status = call.await.expect("no panic");
        assert_eq!((status.code(), status.message()), (tonic::Code::Unavailable, "the collector is shutting down"));
        if signal == Signal::SIGHUP {
            collector.ready().await;
            assert_eq!(collector.post("/v1/traces", &spans(1)).await.0, 200);
            assert_eq!(collector.stop().await, 0);
            assert_eq!(span_count(&collector.lines("x.jsonl")), 2);
        } else {
            assert_eq!(collector.ended().await, 0);
        }
    }
}

/// Whoever is refused because of the head of a request has its answer, however much it sends before it reads.
#[tokio::test]
async fn who_is_refused_early_has_its_answer() {
    let text = config("  batch: {timeout: 10ms}", "batch", "", "file");
    let (before, _) = text.split_once("    metrics:").expect("pipelines");
    let mut collector = Collector::start(before, &[]).await;
    let body = vec![b'x'; MUCH];
    for (head, status) in [
        ("POST /v1/logs HTTP/1.1\r\nHost: a\r\nContent-Type: application/json", 404),
        ("POST /v1/traces HTTP/1.1\r\nHost: a\r\nContent-Type: text/plain", 415),
        ("POST /v1/traces HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\nContent-Encoding: br", 400),
        ("PUT /v1/traces HTTP/1.1\r\nHost: a\r\nContent-Type: application/json", 405),
        ("POST //v1/traces HTTP/1.1\r\nHost: a\r\nContent-Type: application/json", 307),
        ("POST /v1/traces HTTP/1.1\r\nHost: a b\r\nContent-Type: application/json", 400),
    ] {
        let mut client = TcpStream::connect(("127.0.0.1", collector.http)).await.expect("connects");
        client.write_all(format!("{head}\r\nContent-Length: {MUCH}\r\n\r\n").as_bytes()).await.expect("sends");
        client.write_all(&body).await.unwrap_or_else(|error| panic!("{head}: {error}"));
        client.shutdown().await.expect("closes");
        let answer = all(&mut client).await;
        assert!(answer.starts_with(&format!("HTTP/1.1 {status}")), "{head}: {answer}");
    }
    // Who asks first is told before it sends.
    let mut client = TcpStream::connect(("127.0.0.1", collector.http)).await.expect("connects");
    let asks = format!("POST /v1/logs HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nContent-Length: {MUCH}\r\n\r\n");
    client.write_all(asks.as_bytes()).await.expect("sends");
    let answer = all(&mut client).await;
    assert!(answer.starts_with("HTTP/1.1 404"), "{answer}");
    assert_eq!(collector.stop().await, 0);
}

/// A request that waits for an endpoint is refused at the stop, and counted once.
#[tokio::test]
async fn what_a_stop_refuses_is_counted_once() {
    let sink = Sink::start(vec![Answer::Hang]).await;
    let exporter = format!("  otlp_http: {{endpoint: \"{}\", sending_queue: {{enabled: false}}}}\n", sink.url());
    let text = config("  batch: {}", "", &exporter, "otlp_http");
    let mut collector = Collector::start(&text, &[]).await;
    let request = spans(4);
    let (status, ()) = tokio::join!(async { collector.post("/v1/traces", &request).await.0 }, async {
        sink.wait(1).await;
        assert_eq!(collector.admin("/-/stop?seconds=2").await.0, 200);
        collector.terminate();
    });
    assert_eq!(status, 503);
    assert_eq!(collector.ended().await, 0);
    let traces = &collector.delivery()["traces"];
    assert_eq!((&traces["refused"], &traces["received"]), (&4.into(), &0.into()), "{traces}");
}

/// A client may close its side behind the request: it is answered.
#[tokio::test]
async fn a_client_may_close_its_side_behind_the_request() {
    let mut collector = Collector::start(&config("  batch: {timeout: 10ms}", "batch", "", "file"), &[]).await;
    let body = spans(1).to_string();
    let head = "POST /v1/traces HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\nContent-Length:";
    let request = format!("{head} {}\r\n\r\n{body}", body.len());
    for _ in 0..20 {
        let mut client = TcpStream::connect(("127.0.0.1", collector.http)).await.expect("connects");
        client.write_all(request.as_bytes()).await.expect("sends");
        client.shutdown().await.expect("closes");
        let answer = all(&mut client).await;
        assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    }
    assert_eq!(collector.stop().await, 0);
    assert_eq!(span_count(&collector.lines("x.jsonl")), 20);
}

/// What comes until the other side closes.
async fn all(client: &mut TcpStream) -> String {
    let mut answer = String::new();
    let read = tokio::time::timeout(Duration::from_mins(1), client.read_to_string(&mut answer)).await;
    read.expect("it is closed").expect("reads");
    answer
}

/// Whoever sends nothing, or half of something, for as long as the configuration says is waited for no longer.
#[tokio::test]
async fn a_slow_client_is_not_waited_for() {
    let times = "read_header_timeout: 1s, idle_timeout: 1s, read_timeout: 1s";
    let text = config("  batch: {timeout: 10ms}", "batch", "", "file")
        .replace("{endpoint: $HTTP}", &format!("{{endpoint: $HTTP, {times}}}"))
        .replace("{endpoint: $HEALTH}", &format!("{{endpoint: $HEALTH, {times}}}"));
    let mut collector = Collector::start(&text, &[]).await;
    for port in [collector.http, collector.health] {
        for half in &HALVES[..2] {
            let mut client = TcpStream::connect(("127.0.0.1", port)).await.expect("connects");
            client.write_all(half).await.expect("sends");
            let answer = all(&mut client).await;
            assert!(answer.is_empty() || answer.starts_with("HTTP/1.1 408"), "{answer}");
        }
    }
    let mut client = TcpStream::connect(("127.0.0.1", collector.http)).await.expect("connects");
    client.write_all(HALVES[2]).await.expect("sends");
    let answer = all(&mut client).await;
    assert!(answer.starts_with("HTTP/1.1 400") && answer.contains("i/o timeout"), "{answer}");
    // One that waited between two requests.
    let mut client = TcpStream::connect(("127.0.0.1", collector.health)).await.expect("connects");
    client.write_all(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n").await.expect("sends");
    let answer = all(&mut client).await;
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    assert_eq!(collector.stop().await, 0);
}

/// It takes as many descriptors as it may: each client has one.
#[tokio::test]
async fn all_descriptors_are_its_own() {
    let (_, most) = getrlimit(Resource::RLIMIT_NOFILE).expect("a limit");
    setrlimit(Resource::RLIMIT_NOFILE, most - 1, most).expect("it may be less");
    let mut collector = Collector::start(&config("  batch: {}", "batch", "", "file"), &[]).await;
    let limits = std::fs::read_to_string(format!("/proc/{}/limits", collector.pid())).expect("it runs");
    let line = limits.lines().find(|line| line.starts_with("Max open files")).expect("a line of every kernel");
    let limits: Vec<&str> = line["Max open files".len()..].split_whitespace().take(2).collect();
    assert_eq!(limits[0], limits[1], "{line}");
    assert_eq!(collector.stop().await, 0);
}

/// Without descriptors nobody is taken, which is said; when there are some again, those who waited are.
#[tokio::test]
async fn a_lack_of_descriptors_is_said_and_passes() {
    let grpc = free_port();
    let protocols = "http: {endpoint: $HTTP}";
    let text = config("  batch: {timeout: 10ms}", "batch", "", "file")
        .replace(protocols, &format!("{protocols}\n      grpc: {{endpoint: \"127.0.0.1:{grpc}\"}}"));
    let mut collector = Collector::start(&text, &[]).await;
    assert_eq!(collector.post("/v1/traces", &spans(1)).await.0, 200);
    for port in [collector.http, grpc] {
        let before = collector.stderr().len();
        let files = std::fs::read_dir(format!("/proc/{}/fd", collector.pid())).expect("it runs").count() + 2;
        let limit = |files: usize| {
            let set = format!("--nofile={files}:");
            let done = Command::new("prlimit").args(["--pid", &collector.pid().to_string(), &set]).status();
            assert!(done.expect("prlimit is there").success());
        };
        limit(files);
        let mut clients = Vec::new();
        while !collector.stderr()[before..].contains("cannot take a connection") {
            clients.push(TcpStream::connect(("127.0.0.1", port)).await.expect("the kernel takes it"));
            assert!(clients.len() < 100, "{}", collector.stderr());
            tokio::task::yield_now().await;
        }
        let said = collector.stderr()[before..].to_owned();
        assert!(said.contains(&format!("127.0.0.1:{port}: Too many open files")), "{said}");
        limit(1024);
        assert_eq!(collector.post("/v1/traces", &spans(1)).await.0, 200);
        drop(clients);
    }
    eventually("all is written", || span_count(&collector.lines_so_far("x.jsonl")) == 3).await;
    assert_eq!(collector.stop().await, 0);
}
