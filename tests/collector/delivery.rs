//! Nothing is lost silently: ends under load, with dead endpoints, with failing ones.

use serde_json::json;

use crate::harness::{Answer, Collector, DEADLINE, Sink};
use crate::{config, span_count, spans};

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
    assert_eq!(collector.admin("/-/stop?seconds=4").await.0, 200);
    collector.terminate();
    // While it drains, it is there and not available.
    let url = format!("http://127.0.0.1:{}/", collector.health);
    loop {
        let answer = reqwest::get(&url).await.expect("answers until the end");
        if answer.status() == 503 {
            let body = answer.text().await.expect("a body");
            assert_eq!(body, r#"{"status":"Server not available","upSince":"0001-01-01T00:00:00Z","uptime":""}"#);
            break;
        }
    }
    assert_eq!(collector.admin("/-/scrape").await.0, 503);
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

/// SIGTERM in the middle of a stream: each line is whole, and what was accepted is in the file.
#[tokio::test(flavor = "multi_thread")]
async fn a_stop_under_load_tears_no_line_and_keeps_what_it_accepted() {
    let mut collector = Collector::start(&config("  batch: {}", "batch", "", "file"), &[]).await;
    let url = format!("http://127.0.0.1:{}/v1/traces", collector.http);
    let body = spans(200).to_string();
    let senders: Vec<_> = (0..4)
        .map(|_| {
            let (url, body) = (url.clone(), body.clone());
            tokio::spawn(async move {
                let client = reqwest::Client::new();
                let mut accepted = 0;
                loop {
                    let request = client.post(&url).header("content-type", "application/json").body(body.clone());
                    match request.send().await {
                        Ok(answer) if answer.status() == 200 => accepted += 200,
                        Ok(_) | Err(_) => return accepted,
                    }
                }
            })
        })
        .collect();
    let begin = std::time::Instant::now();
    while span_count_so_far(&collector) < 2000 && begin.elapsed() < DEADLINE {
        tokio::time::sleep(std::time::Duration::from_millis(10)).await;
    }
    assert_eq!(collector.stop().await, 0);
    let mut accepted = 0;
    for sender in senders {
        accepted += sender.await.expect("a sender");
    }
    let written = span_count(&collector.lines("x.jsonl"));
    let delivery = collector.delivery();
    assert!(written >= accepted && accepted >= 2000, "{written} written, {accepted} accepted");
    assert_eq!(delivery["traces"]["received"], json!(written));
    assert_eq!(delivery["traces"]["written"], json!(written));
}

fn span_count_so_far(collector: &Collector) -> usize {
    let text = std::fs::read_to_string(collector.path("x.jsonl")).unwrap_or_default();
    text.matches("\"spanId\"").count()
}
