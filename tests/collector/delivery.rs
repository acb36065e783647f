//! Nothing is lost silently: ends under load, with dead endpoints, with failing ones.

use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use prost::Message as _;
use serde_json::json;

use crate::harness::{Answer, Collector, GOOD, Sink, eventually_async, free_port};
use crate::{config, eventually, log, span_count, spans};

fn to(sink: &Sink) -> String {
    let exporter = format!("  otlp_http:\n    endpoint: http://127.0.0.1:{}\n", sink.port);
    config("  batch: {timeout: 10ms}", "batch", &exporter, "file, otlp_http")
}

/// The endpoint takes connections and never answers: the stop keeps its limit, the files are whole, the rest is counted.
#[tokio::test]
async fn a_dead_endpoint_does_not_hold_the_stop() {
    let sink = Sink::start(vec![Answer::Hang]).await;
    let mut collector = Collector::start(&to(&sink), &[]).await;
    assert_eq!(collector.post("/v1/traces", &spans(6)).await.0, 200);
    sink.wait(1).await;
    assert_eq!(collector.admin("/-/stop?seconds=120").await.0, 200);
    collector.terminate();
    // While it drains, it is there and not available.
    let url = format!("http://127.0.0.1:{}/", collector.health);
    let unavailable = async || {
        let answer = reqwest::get(&url).await.expect("answers until the end");
        Some(answer).filter(|answer| answer.status() == 503)
    };
    let body = eventually_async("it is not available", unavailable).await.text().await.expect("a body");
    assert_eq!(body, r#"{"status":"Server not available","upSince":"0001-01-01T00:00:00Z","uptime":""}"#);
    assert_eq!(collector.admin("/-/scrape").await.0, 503);
    assert_eq!(collector.admin("/-/stop?seconds=4").await.0, 200);
    assert_eq!(collector.ended().await, 0);
    assert_eq!(span_count(&collector.lines("x.jsonl")), 6);
    let traces = &collector.delivery()["traces"];
    assert_eq!((&traces["sent"], &traces["dropped"]), (&json!(0), &json!({"shutdown": 6})));
    assert!(collector.stderr().contains("6 dropped"), "{}", collector.stderr());
}

/// Ready and nothing delivered: the last line says so.
#[tokio::test]
async fn an_endpoint_that_always_fails_is_in_the_last_line() {
    let sink = Sink::start(vec![Answer::Give(500, Vec::new(), b"")]).await;
    let mut collector = Collector::start(&to(&sink), &[]).await;
    assert_eq!(collector.post("/v1/traces", &spans(2)).await.0, 200);
    sink.wait(1).await;
    assert_eq!(collector.stop().await, 0);
    let stderr = collector.stderr();
    let last = stderr.lines().last().expect("a line");
    assert!(last.contains("2 dropped") && last.contains("status 500"), "{last}");
    let delivery = collector.delivery();
    assert_eq!(delivery["traces"]["dropped"], json!({"http_500": 2}));
    assert!(delivery["last_error"].as_str().is_some_and(|error| error.contains("500")), "{delivery}");
}

/// SIGTERM in the middle of a stream: each line is whole, and what was accepted is in the file, in one or in many.
#[tokio::test(flavor = "multi_thread")]
async fn a_stop_under_load_tears_no_line_and_keeps_what_it_accepted() {
    for (rotation, wanted) in [("", 2_000), (", rotation: {max_megabytes: 1, max_backups: 0}", 30_000)] {
        let text = config("  batch: {send_batch_size: 400}", "batch", "", "file");
        let text = text.replace("flush_interval: 50ms", &format!("flush_interval: 50ms{rotation}"));
        let mut collector = Collector::start(&text, &[]).await;
        let senders: Vec<_> = (0..4).map(|_| tokio::spawn(send_until_refused(collector.http))).collect();
        eventually("enough is written", || span_count_so_far(&collector) >= wanted).await;
        assert_eq!(collector.stop().await, 0);
        let mut accepted = 0;
        for sender in senders {
            accepted += sender.await.expect("a sender");
        }
        let names = outputs(&collector);
        assert_eq!(names.len() > 1, !rotation.is_empty(), "{names:?}");
        let written: usize = names.iter().map(|name| span_count(&collector.lines(name))).sum();
        let delivery = collector.delivery();
        assert!(written >= accepted && accepted >= wanted, "{written} written, {accepted} accepted");
        assert_eq!(delivery["traces"]["received"], json!(written));
        assert_eq!(delivery["traces"]["written"], json!(written));
    }
}

/// Sends requests of 200 spans for as long as they are taken; gives how many spans were.
async fn send_until_refused(port: u16) -> usize {
    let (client, body) = (reqwest::Client::new(), spans(200).to_string());
    let mut accepted = 0;
    loop {
        let request = client.post(format!("http://127.0.0.1:{port}/v1/traces"));
        match request.header("content-type", "application/json").body(body.clone()).send().await {
            Ok(answer) if answer.status() == 200 => accepted += 200,
            Ok(_) | Err(_) => return accepted,
        }
    }
}

/// The names of the output file and of those that were put aside.
fn outputs(collector: &Collector) -> Vec<String> {
    let entries = std::fs::read_dir(collector.folder.path()).expect("a folder").flatten();
    let names = entries.map(|entry| entry.file_name().to_string_lossy().into_owned());
    names.filter(|name| name.starts_with('x') && name.contains(".jsonl")).collect()
}

fn span_count_so_far(collector: &Collector) -> usize {
    let texts = outputs(collector).into_iter().map(|name| std::fs::read(collector.path(&name)).unwrap_or_default());
    texts.map(|text| String::from_utf8_lossy(&text).matches("\"spanId\"").count()).sum()
}

/// Nobody listens for a while and the queue is small: the oldest data waits and arrives, what comes to a full queue is
/// dropped and counted, and sending goes on by itself.
#[tokio::test]
async fn after_an_outage_the_queue_arrives_and_the_newest_is_what_was_dropped() {
    let port = free_port();
    let exporter = format!(
        "  otlp_http:\n    endpoint: http://127.0.0.1:{port}\n    sending_queue: {{queue_size: 3}}\n\
         \x20   retry_on_failure: {{initial_interval: 20ms, max_interval: 50ms}}\n"
    );
    let text = config("  batch: {send_batch_size: 1}", "batch", &exporter, "file, otlp_http");
    let mut collector = Collector::start(&text, &[]).await;
    // Each request has its own number of spans, so that it is known again.
    for count in 1..=8 {
        assert_eq!(collector.post("/v1/traces", &spans(count)).await.0, 200, "no client hears of it");
        // In this order: the next one comes when this one is in the file, and so in the queue or not.
        let wanted: usize = (1..=count).sum();
        eventually("it is written", || span_count_so_far(&collector) == wanted).await;
    }
    let sink = Sink::start_at(port, vec![GOOD]).await;
    sink.wait(3).await;
    // The queue has room again as soon as the answers have come.
    let mut further = 0_usize;
    eventually_async("the queue has room", async || {
        if sink.seen().len() > 3 {
            return Some(());
        }
        assert_eq!(collector.post("/v1/traces", &spans(9)).await.0, 200);
        further += 1;
        None
    })
    .await;
    assert_eq!(collector.stop().await, 0);
    let mut arrived: Vec<usize> = sink.seen().iter().map(|request| sent_spans(&request.body)).collect();
    arrived.sort_unstable();
    assert_eq!(arrived[..3], [1, 2, 3]);
    assert!(arrived[3..].iter().all(|count| *count == 9) && arrived.len() > 3, "{arrived:?}");
    let arrived: usize = arrived.iter().sum();
    let traces = &collector.delivery()["traces"];
    let all = 36 + 9 * further;
    assert_eq!((&traces["received"], &traces["written"], &traces["sent"]), (&json!(all), &json!(all), &json!(arrived)));
    assert_eq!(traces["dropped"], json!({"queue_full": all - arrived}));
    assert_eq!(span_count(&collector.lines("x.jsonl")), all);
}

/// One batch in front of several exporters: each has its own account of what it did not take, and a client that is told of it
/// loses nothing.
#[tokio::test]
async fn what_a_full_queue_refuses_is_counted_at_each_exporter() {
    let (slow, good) = (Sink::start(vec![Answer::Hang]).await, Sink::start(vec![GOOD]).await);
    let full = |name: &str| {
        format!("  otlp_http/{name}: {{endpoint: \"{}\", timeout: 0s, sending_queue: {{queue_size: 1}}}}\n", slow.url())
    };
    let exporters = format!("{}{}  otlp_http/good: {{endpoint: \"{}\"}}\n", full("one"), full("two"), good.url());
    let ids = "file, otlp_http/one, otlp_http/two, otlp_http/good";
    let text = config("  batch: {send_batch_size: 1}", "batch", &exporters, ids);
    let line = "    logs: {receivers: [otlp], processors: [batch], ";
    assert!(text.contains(line), "{text}");
    let mut collector = Collector::start(&text.replace(line, "    logs: {receivers: [otlp], "), &[]).await;
    assert_eq!(collector.post("/v1/traces", &spans(1)).await.0, 200);
    assert_eq!(collector.post("/v1/logs", &log()).await.0, 200);
    // From now on there is no room for anything else.
    slow.wait(4).await;
    assert_eq!(collector.post("/v1/logs", &log()).await.0, 503);
    for count in [2, 3] {
        assert_eq!(collector.post("/v1/traces", &spans(count)).await.0, 200, "no client hears of it");
    }
    let all = |body: &[u8]| sent_spans(body);
    let came =
        || good.seen().iter().filter(|seen| seen.path == "/v1/traces").map(|seen| all(&seen.body)).sum::<usize>();
    eventually("the good one has all", || came() == 6).await;
    assert_eq!(collector.admin("/-/stop?seconds=3").await.0, 200);
    assert_eq!(collector.stop().await, 0);
    let delivery = collector.delivery();
    let counts = |signal: &str| {
        let counts = &delivery[signal];
        (counts["received"].clone(), counts["refused"].clone(), counts["written"].clone(), counts["sent"].clone())
    };
    assert_eq!(counts("traces"), (json!(6), json!(0), json!(6), json!(6)), "{delivery}");
    assert_eq!(delivery["traces"]["dropped"], json!({"queue_full": 10, "shutdown": 2}), "{delivery}");
    // The second one went to the file and the good endpoint, and its client knows that it did not go everywhere.
    assert_eq!(counts("logs"), (json!(1), json!(1), json!(2), json!(2)), "{delivery}");
    assert_eq!(delivery["logs"]["dropped"], json!({"shutdown": 2}), "{delivery}");
    for name in ["exporters/otlp_http/one", "exporters/otlp_http/two"] {
        let of = &delivery["components"][name]["traces"];
        assert_eq!(of, &json!({"dropped": {"queue_full": 5, "shutdown": 1}}), "{delivery}");
    }
    assert!(
        delivery["components"].as_object().expect("a map").keys().all(|name| !name.contains("batch")),
        "{delivery}"
    );
    let stderr = collector.stderr();
    assert!(
        stderr.contains("exporters/otlp_http/one dropped 2 spans (queue_full), exporters/otlp_http/two dropped"),
        "{stderr}"
    );
}

fn sent_spans(body: &[u8]) -> usize {
    let request = ExportTraceServiceRequest::decode(body).expect("protobuf");
    request.resource_spans.iter().flat_map(|entry| &entry.scope_spans).map(|scope| scope.spans.len()).sum()
}

/// Whoever asked for a long drain may change his mind.
#[tokio::test]
async fn a_drain_that_is_under_way_takes_a_shorter_limit() {
    let sink = Sink::start(vec![Answer::Hang]).await;
    let mut collector = Collector::start(&to(&sink), &[]).await;
    assert_eq!(collector.post("/v1/traces", &spans(6)).await.0, 200);
    sink.wait(1).await;
    assert_eq!(collector.admin("/-/stop?seconds=3600").await.0, 200);
    collector.terminate();
    eventually("it stops", || collector.stderr().contains("stopping; data may drain for 35")).await;
    assert_eq!(collector.admin("/-/stop?seconds=7200").await.0, 400);
    assert_eq!(collector.admin("/-/stop?seconds=3600").await.0, 200, "no longer than it was");
    assert_eq!(collector.admin("/-/stop?seconds=2").await.0, 200);
    assert_eq!(collector.ended().await, 0);
    assert_eq!(collector.delivery()["traces"]["dropped"], json!({"shutdown": 6}));
}

/// A file system that does not answer: the others go on, the stop keeps its limit, and what was held is counted.
#[tokio::test(flavor = "multi_thread")]
async fn a_file_that_blocks_holds_nobody_up_and_what_it_held_is_counted() {
    for group_by in ["", ", group_by: {enabled: true, resource_attribute: service.name}"] {
        let sink = Sink::start(vec![GOOD]).await;
        let text = to(&sink).replace("flush_interval: 50ms", &format!("flush_interval: 50ms{group_by}"));
        let pipe = if group_by.is_empty() { "pipe" } else { "pipe-shop" };
        let text = text.replace("x.jsonl", if group_by.is_empty() { "pipe" } else { "pipe-*" });
        let folder = tempfile::tempdir().expect("a folder");
        let pipe = folder.path().join(pipe);
        nix::unistd::mkfifo(&pipe, nix::sys::stat::Mode::S_IRWXU).expect("a pipe");
        let text = text.replace("$OUT", &folder.path().display().to_string());
        let mut collector = Collector::spawn(&text, &[]);
        // While the exporter waits for somebody who reads, the collector is there and not ready.
        let reader = if group_by.is_empty() {
            eventually("the health check answers", || {
                std::net::TcpStream::connect(("127.0.0.1", collector.health)).is_ok()
            })
            .await;
            assert_eq!(collector.status().await, Some(503));
            std::fs::File::open(&pipe).expect("opens")
        } else {
            std::fs::OpenOptions::new().read(true).write(true).open(&pipe).expect("opens")
        };
        collector.ready().await;
        for _ in 0..20 {
            assert_eq!(collector.post("/v1/traces", &spans(200)).await.0, 200);
        }
        eventually("all is sent", || sink.seen().iter().map(|seen| sent_spans(&seen.body)).sum::<usize>() == 4000)
            .await;
        assert_eq!(collector.admin("/-/stop?seconds=3").await.0, 200);
        assert_eq!(collector.stop().await, 0, "{}", collector.stderr());
        drop(reader);
        let report = std::fs::read_to_string(collector.path("delivery.json")).expect("a report");
        let traces = &serde_json::from_str::<serde_json::Value>(&report).expect("JSON")["traces"];
        let count = |value: &serde_json::Value| value.as_u64().unwrap_or(0);
        assert_eq!((count(&traces["received"]), count(&traces["sent"])), (4000, 4000), "{report}");
        assert_eq!(count(&traces["written"]) + count(&traces["dropped"]["shutdown"]), 4000, "{report}");
        assert!(count(&traces["dropped"]["shutdown"]) > 0, "{report}");
        assert!(
            collector.stderr().lines().last().is_some_and(|line| line.contains("dropped")),
            "{}",
            collector.stderr()
        );
    }
}

/// A start that waits for a file can be told to stop.
#[tokio::test]
async fn a_start_that_blocks_can_be_stopped() {
    let folder = tempfile::tempdir().expect("a folder");
    let pipe = folder.path().join("pipe");
    nix::unistd::mkfifo(&pipe, nix::sys::stat::Mode::S_IRWXU).expect("a pipe");
    let text = config("  batch: {}", "batch", "", "file").replace("$OUT/x.jsonl", &pipe.display().to_string());
    let mut collector = Collector::spawn(&text, &[]);
    eventually("the health check answers", || std::net::TcpStream::connect(("127.0.0.1", collector.health)).is_ok())
        .await;
    assert_eq!(collector.stop().await, 0);
}
