//! What the `otlp_http` exporter sends, and what it makes of the answers.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use futures_util::FutureExt as _;
use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use prost::Message as _;
use serde_json::json;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

use crate::harness::{Answer, Collector, GOOD, Sink};
use crate::{config, eventually, point, span_count, spans};

/// Files and an endpoint; `more` are further keys of the exporter.
fn to(sink: &Sink, more: &str) -> String {
    let exporter = format!(
        "  otlp_http/managed:\n    endpoint: http://127.0.0.1:{}/base\n    headers: {{Authorization: \"Bearer ${{env:TOKEN}}\"}}\n{more}",
        sink.port
    );
    config("  batch: {timeout: 10ms}", "batch", &exporter, "file, otlp_http/managed")
}

/// Gymrun doubles each `$` of the token in the collector's copy; what is sent is the token.
#[tokio::test]
async fn spans_go_out_as_gzipped_protobuf_with_the_token_exactly() {
    let sink = Sink::start(vec![GOOD]).await;
    let mut collector = Collector::start(&to(&sink, ""), &[("TOKEN", "ab$$cd$$$$e")]).await;
    assert_eq!(collector.post("/v1/traces", &spans(5)).await.0, 200);
    let seen = sink.wait(1).await;
    assert_eq!(collector.stop().await, 0);
    assert_eq!(seen[0].path, "/base/v1/traces");
    assert_eq!(seen[0].headers["authorization"], "Bearer ab$cd$$e");
    assert_eq!(seen[0].headers["content-type"], "application/x-protobuf");
    assert_eq!(seen[0].headers["content-encoding"], "gzip");
    let request = ExportTraceServiceRequest::decode(seen[0].body.as_slice()).expect("protobuf");
    let names: Vec<&str> =
        request.resource_spans[0].scope_spans[0].spans.iter().map(|span| span.name.as_str()).collect();
    assert_eq!(names, ["s0", "s1", "s2", "s3", "s4"]);
    assert_eq!(span_count(&collector.lines("x.jsonl")), 5);
    assert_eq!(collector.delivery()["traces"]["sent"], 5);
    assert!(!collector.stderr().contains("cd$"), "{}", collector.stderr());
}

#[tokio::test]
async fn busy_endpoints_are_obeyed_and_everything_arrives_once() {
    let slow = Answer::Give(429, vec![("retry-after", "1")], b"");
    let sink = Sink::start(vec![slow, Answer::Give(503, Vec::new(), b""), GOOD]).await;
    let retry = "    retry_on_failure: {initial_interval: 10ms, max_interval: 50ms}";
    let mut collector = Collector::start(&to(&sink, retry), &[("TOKEN", "t")]).await;
    assert_eq!(collector.post("/v1/traces", &spans(2)).await.0, 200);
    let seen = sink.wait(3).await;
    assert!(seen[1].at - seen[0].at >= Duration::from_millis(950), "came before the endpoint asked for it");
    assert_eq!(seen[0].body, seen[2].body);
    assert_eq!(collector.stop().await, 0);
    assert_eq!(sink.seen().len(), 3);
    let traces = &collector.delivery()["traces"];
    assert_eq!((&traces["sent"], &traces["dropped"], &traces["refused"]), (&json!(2), &json!({}), &json!(0)));
}

#[tokio::test]
async fn permanent_errors_are_not_retried_and_said_with_their_body() {
    for status in [400, 401, 413] {
        let sink = Sink::start(vec![Answer::Give(status, Vec::new(), b"tenant unknown")]).await;
        let mut collector = Collector::start(&to(&sink, ""), &[("TOKEN", "t")]).await;
        assert_eq!(collector.post("/v1/traces", &spans(4)).await.0, 200);
        sink.wait(1).await;
        assert_eq!(collector.stop().await, 0);
        assert_eq!(sink.seen().len(), 1);
        let stderr = collector.stderr();
        assert!(stderr.contains(&format!("status {status}: tenant unknown")), "{stderr}");
        assert_eq!(collector.delivery()["traces"]["dropped"], json!({format!("http_{status}"): 4}));
        assert_eq!(span_count(&collector.lines("x.jsonl")), 4);
    }
}

#[tokio::test]
async fn partial_success_is_counted_and_not_sent_again() {
    let protobuf = vec![("content-type", "application/x-protobuf")];
    let some = Answer::Give(200, protobuf.clone(), &[10, 7, 8, 3, 18, 3, b'b', b'a', b'd']);
    let none = Answer::Give(200, protobuf, &[10, 7, 18, 5, b'h', b'e', b'l', b'l', b'o']);
    let sink = Sink::start(vec![some, none]).await;
    let mut collector = Collector::start(&to(&sink, ""), &[("TOKEN", "t")]).await;
    for _ in 0..2 {
        let before = sink.seen().len();
        assert_eq!(collector.post("/v1/traces", &spans(5)).await.0, 200);
        sink.wait(before + 1).await;
    }
    assert_eq!(collector.stop().await, 0);
    assert_eq!(sink.seen().len(), 2);
    let stderr = collector.stderr();
    assert!(stderr.contains("3 spans rejected: bad") && stderr.contains("hello"), "{stderr}");
    let traces = &collector.delivery()["traces"];
    assert_eq!((&traces["sent"], &traces["rejected"]), (&json!(7), &json!(3)));
}

/// However long the answer is, the status says that the data was taken.
#[tokio::test]
async fn an_answer_of_any_length_is_a_success() {
    for kind in ["application/x-protobuf", "application/json", "text/plain"] {
        let sink = Sink::start(vec![Answer::Give(200, vec![("content-type", kind)], vec![b'x'; 70_000].leak())]).await;
        let mut collector = Collector::start(&to(&sink, ""), &[("TOKEN", "t")]).await;
        assert_eq!(collector.post("/v1/traces", &spans(5)).await.0, 200);
        sink.wait(1).await;
        assert_eq!(collector.stop().await, 0);
        let traces = &collector.delivery()["traces"];
        assert_eq!((sink.seen().len(), json!([traces["sent"], traces["dropped"]])), (1, json!([5, {}])), "{kind}");
    }
}

/// What was taken is not sent again, also if the answer breaks off or never ends.
#[tokio::test]
async fn an_answer_that_does_not_come_to_its_end_is_what_its_status_says() {
    for (status, is_kept_open) in [(200, false), (200, true), (400, false), (400, true)] {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let port = listener.local_addr().expect("an address").port();
        let taken = Arc::new(AtomicUsize::new(0));
        let counter = taken.clone();
        tokio::spawn(async move {
            let mut open = Vec::new();
            loop {
                let mut stream = listener.accept().await.expect("a connection").0;
                let mut request = vec![0; 16 << 10];
                // The request is short: it comes at once.
                let _ = stream.read(&mut request).await;
                counter.fetch_add(1, Ordering::SeqCst);
                let answer = format!("HTTP/1.1 {status} X\r\nContent-Length: 100\r\n\r\nno");
                stream.write_all(answer.as_bytes()).await.expect("writes");
                open.extend(is_kept_open.then_some(stream));
            }
        });
        // Only what is kept open runs into it.
        let limit = if is_kept_open { "5s" } else { "1m" };
        let exporter = format!(
            "  otlp_http:\n    endpoint: http://127.0.0.1:{port}\n    timeout: {limit}\n\
             \x20   retry_on_failure: {{initial_interval: 10ms}}"
        );
        let text = config("  batch: {timeout: 10ms}", "batch", &exporter, "otlp_http");
        let mut collector = Collector::start(&text, &[]).await;
        assert_eq!(collector.post("/v1/traces", &spans(5)).await.0, 200);
        eventually("it comes", || taken.load(Ordering::SeqCst) > 0).await;
        assert_eq!(collector.stop().await, 0);
        assert_eq!(taken.load(Ordering::SeqCst), 1, "{status} {is_kept_open}");
        let traces = &collector.delivery()["traces"];
        let wanted = if status == 200 { json!([5, {}]) } else { json!([0, {"http_400": 5}]) };
        assert_eq!(json!([traces["sent"], traces["dropped"]]), wanted, "{status} {is_kept_open}");
    }
}

/// A proxy is asked for the endpoint that is configured, whatever its certificate is called, and never for this machine.
#[tokio::test]
async fn proxies_are_asked_for_endpoints_elsewhere_alone() {
    let here = Sink::start(vec![GOOD]).await;
    let proxy = Sink::start(vec![GOOD]).await;
    let url = proxy.url();
    let exporter = |more: &str| {
        format!("  otlp_http:\n    retry_on_failure: {{enabled: false}}\n    sending_queue: {{enabled: false}}\n{more}")
    };
    let text = |more: &str| config("  batch: {timeout: 10ms}", "batch", &exporter(more), "otlp_http");
    let two = format!("    traces_endpoint: {}/here\n    metrics_endpoint: http://else.test/there\n", here.url());
    let two = format!("{two}    logs_endpoint: http://else.test/there\n");
    let mut collector = Collector::start(&text(&two), &[("HTTP_PROXY", &url)]).await;
    assert_eq!(collector.post("/v1/traces", &spans(1)).await.0, 200);
    assert_eq!(collector.post("/v1/metrics", &point()).await.0, 200);
    assert_eq!(collector.stop().await, 0);
    let paths = |sink: &Sink| sink.seen().into_iter().map(|seen| seen.path).collect::<Vec<_>>();
    assert_eq!((paths(&here), paths(&proxy)), (vec!["/here".to_owned()], vec!["/there".to_owned()]));
    assert_eq!(proxy.seen()[0].headers["host"], "else.test");

    let named = "    endpoint: https://real.test:4318\n    tls: {server_name_override: other.test}\n";
    for (no_proxy, asked) in [("other.test", Some("CONNECT real.test:4318 HTTP/1.1")), ("real.test", None)] {
        let proxy = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let url = format!("http://{}", proxy.local_addr().expect("an address"));
        let environment = [("HTTPS_PROXY", url.as_str()), ("NO_PROXY", no_proxy)];
        let mut collector = Collector::start(&text(named), &environment).await;
        assert_eq!(collector.post("/v1/traces", &spans(1)).await.0, 200);
        if let Some(wanted) = asked {
            let mut stream = proxy.accept().await.expect("a connection").0;
            let mut request = vec![0; 4096];
            let length = stream.read(&mut request).await.expect("reads");
            let request = String::from_utf8_lossy(&request[..length]).into_owned();
            assert_eq!(request.lines().next(), Some(wanted));
        }
        assert_eq!(collector.stop().await, 0);
        let came = proxy.accept().now_or_never();
        assert!(came.is_none(), "{no_proxy}: {came:?}");
        assert_eq!(collector.stderr().contains("is not told `other.test`"), asked.is_some(), "{}", collector.stderr());
    }
}

/// 307 and 308 send the request on as it is, within the host; to another one goes neither data nor token. The others would
/// make it a GET: nothing would be delivered.
#[tokio::test]
async fn redirects_are_followed_within_the_host_alone() {
    let redirect = |status, to: String| Answer::Give(status, vec![("location", to.leak())], b"");
    let other = Sink::start(vec![GOOD]).await;
    for (status, place, is_followed) in [
        (307, "/there?x=1".to_owned(), true),
        (308, format!("{}/there", other.url()), true),
        (307, format!("http://localhost:{}/there", other.port), false),
        (308, "https://".to_owned(), false),
        (301, "/there".to_owned(), false),
        (302, "/there".to_owned(), false),
        (303, "/there".to_owned(), false),
    ] {
        let sink = Sink::start(vec![redirect(status, place.clone()), GOOD]).await;
        let before = other.seen().len();
        let mut collector = Collector::start(&to(&sink, ""), &[("TOKEN", "s3cr3t")]).await;
        assert_eq!(collector.post("/v1/traces", &spans(5)).await.0, 200);
        sink.wait(1).await;
        assert_eq!(collector.stop().await, 0);
        let seen = [sink.seen(), other.seen()[before..].to_vec()].concat();
        assert_eq!(seen.len(), 1 + usize::from(is_followed), "{status} {place}");
        let traces = &collector.delivery()["traces"];
        if is_followed {
            assert_eq!((seen[1].path.as_str(), &seen[1].body), ("/there", &seen[0].body), "{status} {place}");
            assert_eq!(seen[1].headers["authorization"], "Bearer s3cr3t");
            assert_eq!(json!([traces["sent"], traces["dropped"]]), json!([5, {}]), "{status} {place}");
        } else {
            assert_eq!(json!([traces["sent"], traces["dropped"]]), json!([0, {format!("http_{status}"): 5}]));
        }
    }
    let sink = Sink::start(vec![redirect(307, "/base/v1/traces".into())]).await;
    let mut collector = Collector::start(&to(&sink, ""), &[("TOKEN", "t")]).await;
    assert_eq!(collector.post("/v1/traces", &spans(5)).await.0, 200);
    sink.wait(10).await;
    assert_eq!(collector.stop().await, 0);
    assert_eq!((sink.seen().len(), &collector.delivery()["traces"]["dropped"]), (10, &json!({"redirects": 5})));
}

/// What an endpoint quotes of the request is in no line and in no report, not even in part.
#[tokio::test]
async fn an_endpoint_that_quotes_the_token_is_not_quoted() {
    let token = "t0ken-th4t-must-n0t-be-seen";
    for status in [401, 503] {
        let sink = Sink::start(vec![Answer::Quote(status)]).await;
        let retry = "    retry_on_failure: {initial_interval: 10ms, max_interval: 10ms, max_elapsed_time: 20ms}";
        let mut collector = Collector::start(&to(&sink, retry), &[("TOKEN", token)]).await;
        assert_eq!(collector.post("/v1/traces", &spans(4)).await.0, 200);
        sink.wait(1).await;
        assert_eq!(collector.stop().await, 0);
        let (stderr, delivery) = (collector.stderr(), collector.delivery().to_string());
        for text in [&stderr, &delivery] {
            assert!(text.contains(&format!("status {status}: invalid credentials: ***")), "{text}");
            assert!(!text.contains("t0ken") && !text.contains("Bearer"), "{text}");
        }
    }
}

/// A password in a URL goes out as a header; what is quoted of it is as secret. Problems of the start keep values of
/// secret variables too.
#[tokio::test]
async fn passwords_of_urls_and_values_of_secret_variables_stay_unseen() {
    let sink = Sink::start(vec![Answer::Quote(401)]).await;
    let exporter = format!("  otlp_http:\n    endpoint: http://someone:${{env:MY_PASSWORD}}@127.0.0.1:{}", sink.port);
    let yaml = config("  batch: {timeout: 10ms}", "batch", &exporter, "file, otlp_http");
    let mut collector = Collector::start(&yaml, &[("MY_PASSWORD", "pass-word")]).await;
    assert_eq!(collector.post("/v1/traces", &spans(4)).await.0, 200);
    let seen = sink.wait(1).await;
    assert_eq!(seen[0].headers["authorization"], "Basic c29tZW9uZTpwYXNzLXdvcmQ=");
    assert_eq!(collector.stop().await, 0);
    let stderr = collector.stderr();
    assert!(stderr.contains("invalid credentials: ***") && !stderr.contains("c29tZ"), "{stderr}");

    let exporter = "  otlp_http: {endpoint: http://x:1, encoding: \"${env:MY_KEY}\", timeout: \"${env:MY_KEY}\"}";
    let mut collector =
        Collector::spawn(&config("  batch: {}", "batch", exporter, "file, otlp_http"), &[("MY_KEY", "k3y-value")]);
    assert_eq!(collector.ended().await, 1);
    let stderr = collector.stderr();
    assert!(stderr.contains("`***` is not a value of `encoding`") && !stderr.contains("k3y"), "{stderr}");
}

/// A pause longer than the clock goes is no reason to break down.
#[tokio::test]
async fn an_endpoint_that_asks_for_ages_is_given_up_and_counted() {
    let ages = Answer::Give(429, vec![("retry-after", "18446744073709551615")], b"");
    let sink = Sink::start(vec![ages]).await;
    let mut collector = Collector::start(&to(&sink, ""), &[("TOKEN", "t")]).await;
    assert_eq!(collector.post("/v1/traces", &spans(3)).await.0, 200);
    sink.wait(1).await;
    assert_eq!(collector.stop().await, 0);
    assert_eq!(collector.delivery()["traces"]["dropped"], json!({"http_429": 3}));
}
