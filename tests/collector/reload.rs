//! SIGHUP: the configuration is read anew, and whatever it is then, nothing that was acknowledged is lost.

use std::net::TcpListener;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use nix::sys::signal::Signal;

use crate::harness::{Answer, Collector, GOOD, Sink, eventually_async};
use crate::{config, span_count, spans};

async fn says(collector: &Collector, words: &str, times: usize) {
    let enough = async || (collector.stderr().matches(words).count() >= times).then_some(());
    eventually_async(&format!("{times} times `{words}`"), enough).await;
}

/// SIGHUP: the configuration as it is now; one that is broken changes nothing, and nothing is lost on the way.
#[tokio::test]
async fn sighup_reads_anew_and_never_ends_the_process() {
    let text = config("  batch: {timeout: 10ms}", "batch", "", "file");
    let mut collector = Collector::start(&text, &[]).await;
    let file = collector.path("collector.yaml");
    let first = std::fs::read_to_string(&file).expect("reads");
    assert_eq!(collector.post("/v1/traces", &spans(2)).await.0, 200);

    std::fs::write(&file, "receivers: {nobody: }\n").expect("writes");
    collector.signal(Signal::SIGHUP);
    eventually_async("the problem is said", async || {
        collector.stderr().contains("the one from before stays").then_some(())
    })
    .await;
    assert!(collector.stderr().contains("unknown receiver type `nobody`"), "{}", collector.stderr());
    assert_eq!(collector.post("/v1/traces", &spans(3)).await.0, 200);

    std::fs::write(&file, first.replace("file: {path:", "file: {append: true, path:")).expect("writes");
    let ready = |stderr: &str| stderr.matches("everything is ready").count();
    let before = ready(&collector.stderr());
    collector.signal(Signal::SIGHUP);
    eventually_async("it is ready again", async || (ready(&collector.stderr()) > before).then_some(())).await;
    assert_eq!(collector.post("/v1/traces", &spans(4)).await.0, 200);
    assert_eq!(collector.stop().await, 0);
    assert_eq!(span_count(&collector.lines("x.jsonl")), 9);
    assert_eq!(collector.delivery()["traces"]["written"], 9);
}

/// A configuration that cannot be read to its end, as on a file server that is gone: orders are heard all the same.
#[tokio::test]
async fn orders_are_heard_while_the_configuration_is_being_read() {
    let text = config("  batch: {timeout: 10ms}", "batch", "", "file");
    let mut collector = Collector::start(&text, &[]).await;
    let file = collector.path("collector.yaml");
    let good = std::fs::read_to_string(&file).expect("reads");
    let hang = || {
        std::fs::remove_file(&file).expect("removes");
        nix::unistd::mkfifo(&file, nix::sys::stat::Mode::S_IRWXU).expect("a pipe");
    };
    // Succeeds once the collector has opened it, which reads as long as this end is open.
    let writer = async || {
        let mut options = std::fs::File::options();
        options.write(true);
        std::os::unix::fs::OpenOptionsExt::custom_flags(&mut options, nix::libc::O_NONBLOCK);
        eventually_async("it is being read", async || options.open(&file).ok()).await
    };

    // The file changes meanwhile, and the order says so: what is there then counts.
    hang();
    collector.signal(Signal::SIGHUP);
    let pipe = writer().await;
    collector.signal(Signal::SIGHUP);
    says(&collector, "is still being read", 1).await;
    std::fs::remove_file(&file).expect("removes");
    std::fs::write(&file, good.replace("file: {path:", "file: {append: true, path:")).expect("writes");
    drop(pipe);
    says(&collector, "everything is ready", 2).await;
    assert_eq!(collector.post("/v1/traces", &spans(2)).await.0, 200);

    hang();
    collector.signal(Signal::SIGHUP);
    let _pipe = writer().await;
    assert_eq!(collector.post("/v1/traces", &spans(3)).await.0, 200);
    assert_eq!(collector.stop().await, 0);
    assert_eq!(span_count(&collector.lines("x.jsonl")), 5);
    assert!(!collector.stderr().contains("broken"), "{}", collector.stderr());
}

/// Sends requests of one span until it is told to end; counts what was tried and what was taken.
struct Load {
    end: Arc<AtomicBool>,
    tried: Arc<AtomicUsize>,
    taken: Arc<AtomicUsize>,
    task: tokio::task::JoinHandle<()>,
}

impl Load {
    fn begin(port: u16) -> Self {
        let (end, tried, taken) = <(Arc<AtomicBool>, Arc<AtomicUsize>, Arc<AtomicUsize>)>::default();
        let counts = (end.clone(), tried.clone(), taken.clone());
        let task = tokio::spawn(async move {
            let (end, tried, taken) = counts;
            let client = reqwest::Client::builder().no_proxy().tls_certs_only([]).build().expect("a client");
            let url = format!("http://127.0.0.1:{port}/v1/traces");
            while !end.load(Ordering::SeqCst) {
                let request = client.post(&url).header("content-type", "application/json").body(spans(1).to_string());
                tried.fetch_add(1, Ordering::SeqCst);
                match request.send().await {
                    Ok(answer) if answer.status() == 200 => drop(taken.fetch_add(1, Ordering::SeqCst)),
                    _ => tokio::time::sleep(std::time::Duration::from_millis(5)).await,
                }
            }
        });
        Self { end, tried, taken, task }
    }

    async fn more(&self) {
        let before = self.taken.load(Ordering::SeqCst);
        let enough = async || (self.taken.load(Ordering::SeqCst) > before + 3).then_some(());
        eventually_async("it takes spans again", enough).await;
    }

    async fn end(self) -> (usize, usize) {
        self.end.store(true, Ordering::SeqCst);
        self.task.await.expect("no panic");
        (self.taken.load(Ordering::SeqCst), self.tried.load(Ordering::SeqCst))
    }
}

/// Everything taken is in the file and at the endpoint. (Of what was under way when a port was closed nobody knows more than
/// that it was tried.)
async fn all_arrived(mut collector: Collector, load: Load, endpoint: &Sink) {
    let (taken, tried) = load.end().await;
    assert_eq!(collector.stop().await, 0, "{}", collector.stderr());
    let written = span_count(&collector.lines("x.jsonl"));
    assert!((taken..=tried).contains(&written), "{taken} taken, {written} written, {tried} tried");
    let delivery = collector.delivery();
    let traces = &delivery["traces"];
    for key in ["received", "written", "sent"] {
        assert_eq!(traces[key], written, "{delivery}\n{}", collector.stderr());
    }
    assert_eq!(traces["dropped"], serde_json::json!({}), "{delivery}");
    let messages = endpoint.seen();
    let items = |body: &Vec<u8>| {
        gymrun::otlp::Payload::decode(gymrun::otlp::Signal::Traces, body.clone()).expect("OTLP").item_count()
    };
    assert_eq!(messages.iter().map(|seen| items(&seen.body)).sum::<usize>(), written);
}

fn to_endpoint(endpoint: &Sink) -> String {
    let exporter = format!("  otlp_http: {{endpoint: \"{}\", compression: none}}\n", endpoint.url());
    config("  batch: {timeout: 10ms}", "batch", &exporter, "file, otlp_http")
}

/// What is well written and cannot start, at each step of the start.
#[tokio::test(flavor = "multi_thread")]
async fn one_that_cannot_start_is_said_and_the_former_one_goes_on() {
    let held = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let held = held.local_addr().expect("an address");
    let endpoint = Sink::start(vec![GOOD]).await;
    let collector = Collector::start(&to_endpoint(&endpoint), &[]).await;
    let file = collector.path("collector.yaml");
    let good = std::fs::read_to_string(&file).expect("reads");
    let load = Load::begin(collector.http);
    load.more().await;

    let out = collector.path("").display().to_string();
    let replaced = |from: &str, to: &str| {
        assert!(good.contains(from), "{from}: {good}");
        good.replace(from, to)
    };
    let address = |port: u16| format!("127.0.0.1:{port}");
    let held_text = held.to_string();
    let telemetry = |what: &str| replaced("service:\n", &format!("service:\n  telemetry: {what}\n"));
    let page = format!(
        "{{metrics: {{readers: [{{pull: {{exporter: {{prometheus: {{host: 127.0.0.1, port: {}}}}}}}}}]}}}}",
        held.port()
    );
    let more = format!("  otlp/more: {{protocols: {{http: {{endpoint: \"{held}\"}}}}}}\nextensions:\n");
    let cases = [
        // The log, the page, an extension, a storage, an exporter, a receiver, the second of two receivers.
        (telemetry("{logs: {output_paths: [/no/such/folder/log]}}"), "/no/such/folder/log"),
        (telemetry(&page), held_text.as_str()),
        (replaced(&address(collector.health), &held_text), &held_text),
        (
            replaced("extensions: [health_check]", "extensions: [health_check, file_storage]").replace(
                "extensions:\n",
                "extensions:\n  file_storage: {directory: /proc/q, create_directory: true}\n",
            ),
            "/proc/q",
        ),
        (replaced(&format!("{out}x.jsonl"), "/proc/x.jsonl"), "/proc/x.jsonl"),
        (replaced(&format!("{out}x.jsonl"), &format!("{out}no/such/x.jsonl")), "no/such/x.jsonl"),
        (replaced(&address(collector.http), &held_text), &held_text),
        (replaced("extensions:\n", &more).replace("receivers: [otlp]", "receivers: [otlp, otlp/more]"), &held_text),
    ];
    for (place, (text, words)) in cases.iter().enumerate() {
        std::fs::write(&file, text).expect("writes");
        let before = collector.stderr().len();
        collector.signal(Signal::SIGHUP);
        says(&collector, "the one from before is started again", place + 1).await;
        // One at the start, and one for each time that it was started again.
        says(&collector, "everything is ready", place + 2).await;
        let said = &collector.stderr()[before..];
        assert!(said.contains(words), "{words}: {said}");
        load.more().await;
    }
    // And then one that can.
    std::fs::write(&file, good.replace("timeout: 10ms", "timeout: 11ms")).expect("writes");
    collector.signal(Signal::SIGHUP);
    says(&collector, "everything is ready", cases.len() + 2).await;
    load.more().await;
    all_arrived(collector, load, &endpoint).await;
}

/// Orders that come while it starts: the last one counts, and no port stays taken by one that was told to go.
#[tokio::test(flavor = "multi_thread")]
async fn many_in_a_row_end_in_one_that_runs() {
    let endpoint = Sink::start(vec![GOOD]).await;
    let collector = Collector::start(&to_endpoint(&endpoint), &[]).await;
    let load = Load::begin(collector.http);
    load.more().await;
    for pause in [0, 1, 3, 0, 10, 2, 30, 0, 5, 1] {
        collector.signal(Signal::SIGHUP);
        tokio::time::sleep(std::time::Duration::from_millis(pause)).await;
    }
    load.more().await;
    assert!(!collector.stderr().contains("cannot"), "{}", collector.stderr());
    all_arrived(collector, load, &endpoint).await;
}

/// A collector that drains for a reload is told to stop: it does not begin anew, and the limit that was said then holds.
#[tokio::test]
async fn an_order_to_stop_is_heard_while_a_reload_drains() {
    let endpoint = Sink::start(vec![Answer::Hang]).await;
    let mut collector = Collector::start(&to_endpoint(&endpoint), &[]).await;
    assert_eq!(collector.post("/v1/traces", &spans(6)).await.0, 200);
    endpoint.wait(1).await;
    collector.signal(Signal::SIGHUP);
    says(&collector, "stopping; data may drain for", 1).await;
    assert_eq!(collector.admin("/-/stop?seconds=2").await.0, 200);
    collector.terminate();
    assert_eq!(collector.ended().await, 0, "{}", collector.stderr());
    assert_eq!(collector.stderr().matches("everything is ready").count(), 1, "{}", collector.stderr());
    assert_eq!(collector.delivery()["traces"]["dropped"], serde_json::json!({"shutdown": 6}));
}

/// While one drains for a reload, the file changes again: what it says at the last order counts, and the process lives on
/// with one that ran before where that cannot start.
#[tokio::test(flavor = "multi_thread")]
async fn of_several_orders_the_last_counts_whether_or_not_those_before_can_start() {
    let endpoint = Sink::start(vec![GOOD]).await;
    let collector = Collector::start(&to_endpoint(&endpoint), &[]).await;
    let file = collector.path("collector.yaml");
    let good = std::fs::read_to_string(&file).expect("reads");
    let bad = good.replace("x.jsonl", "no/such/x.jsonl");
    let load = Load::begin(collector.http);
    load.more().await;
    for pause in [0, 1, 2, 3, 5, 8, 13, 20] {
        for (text, pause) in [(&bad, pause), (&good, pause), (&bad, pause), (&good, 0)] {
            std::fs::write(&file, text).expect("writes");
            collector.signal(Signal::SIGHUP);
            tokio::time::sleep(std::time::Duration::from_millis(pause)).await;
        }
        load.more().await;
    }
    all_arrived(collector, load, &endpoint).await;
}
