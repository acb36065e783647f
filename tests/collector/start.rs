//! What is refused at the start, and what the rendered configuration does.

use serde_json::json;

use crate::harness::{Collector, GOOD, Program, Sink, binary, eventually, free_port};
use crate::{config, log, point, span_count, spans};

#[tokio::test]
async fn every_problem_is_said_at_once_with_its_line_and_the_nearest_name() {
    let text = "receivers:\n  otlp:\n    protocols:\n      http: {endpoint: 127.0.0.1:99999}\n\
                processors:\n  bach: {}\n\
                exporters:\n  file: {pathh: x}\n\
                service:\n  pipelines:\n    spans: {receivers: [otlp], exporters: [file]}\n\
                \x20   traces: {receivers: [otlp/two], processors: [bach], exporters: [file]}\n";
    let mut collector = Collector::spawn(text, &[]);
    assert_eq!(collector.ended().await, 1);
    let stderr = collector.stderr();
    for words in [
        "`127.0.0.1:99999` is no address",
        "unknown processor type `bach`",
        "did you mean `batch`?",
        "unknown key `pathh`",
        "did you mean `path`?",
        "`spans` is no signal of a pipeline",
        "the receiver `otlp/two` is not declared",
    ] {
        assert!(stderr.contains(words), "{words}: {stderr}");
    }
    for line in [4, 6, 8, 11, 12] {
        assert!(stderr.contains(&format!("collector.yaml:{line}\n")), "line {line}: {stderr}");
    }
    assert!(!collector.path("delivery.json").exists());
}

#[tokio::test]
async fn a_file_that_cannot_be_opened_is_named() {
    for path in ["$OUT/no/such/x.jsonl", "/proc/x.jsonl"] {
        let text = config("  batch: {}", "batch", "", "file").replace("$OUT/x.jsonl", path);
        let mut collector = Collector::spawn(&text, &[]);
        assert_eq!(collector.ended().await, 1);
        let name = path.trim_start_matches("$OUT");
        assert!(collector.stderr().contains(name), "{}", collector.stderr());
    }
    let text =
        config("  batch: {}", "batch", "", "file").replace("x.jsonl,", "made/here/x.jsonl, create_directory: true,");
    let mut collector = Collector::start(&text, &[]).await;
    assert_eq!(collector.post("/v1/traces", &spans(1)).await.0, 200);
    assert_eq!(collector.stop().await, 0);
    assert_eq!(span_count(&collector.lines("made/here/x.jsonl")), 1);
}

#[tokio::test]
async fn a_taken_port_is_named() {
    let text = config("  batch: {}", "batch", "", "file");
    let first = Collector::start(&text, &[]).await;
    let second = text.replace("$HTTP", &format!("127.0.0.1:{}", first.http));
    let mut second = Collector::spawn(&second, &[]);
    assert_eq!(second.ended().await, 1);
    assert!(second.stderr().contains(&format!("127.0.0.1:{}", first.http)), "{}", second.stderr());
}

/// A job id of digits alone stays text on all signals.
#[tokio::test]
async fn a_numeric_job_id_stays_text() {
    let stamp = "  resource:\n    attributes:\n\
                 \x20   - {key: slurm_job_id, value: \"${env:SLURM_JOB_ID}\", action: upsert}\n\
                 \x20   - {key: slurm_job_id, action: convert, converted_type: string}\n\
                 \x20   - {key: octal, value: \"${env:OCTAL}${env:GYMRUN_EMPTY:-}\", action: upsert}";
    let environment = [("SLURM_JOB_ID", "123456"), ("OCTAL", "007")];
    let mut collector = Collector::start(&config(stamp, "resource", "", "file"), &environment).await;
    for (path, request) in [("/v1/traces", spans(1)), ("/v1/metrics", point()), ("/v1/logs", log())] {
        assert_eq!(collector.post(path, &request).await.0, 200);
    }
    assert_eq!(collector.stop().await, 0);
    let lines = collector.lines("x.jsonl");
    assert_eq!(lines.len(), 3);
    for line in lines {
        let entries = line.as_object().expect("an object").values().next().expect("a list");
        let attributes = entries[0]["resource"]["attributes"].as_array().expect("attributes");
        assert!(attributes.contains(&json!({"key": "slurm_job_id", "value": {"stringValue": "123456"}})), "{line}");
        assert!(attributes.contains(&json!({"key": "octal", "value": {"stringValue": "007"}})), "{line}");
    }
}

/// The configuration that the shipped policy renders: two pipelines for each signal, the token on one side only.
#[tokio::test]
async fn the_rendered_configuration_runs() {
    let sink = Sink::start(vec![GOOD]).await;
    let rendered = include_str!("../data/collector/rendered.json")
        .replace("0.0.0.0:13133", "$HEALTH")
        .replace("0.0.0.0:4317", &format!("127.0.0.1:{}", free_port()))
        .replace("0.0.0.0:4318", "$HTTP")
        .replace("https://ingest.example/otlp", &format!("http://127.0.0.1:{}/otlp", sink.port))
        .replace("/lustre/out/gym-job-20260101_000000/arith/otel/", "$OUT/");
    let environment = [("OTEL_TOKEN", "s3cr3t"), ("SLURM_JOB_ID", "42")];
    let mut collector = Collector::start(&rendered, &environment).await;
    for (path, request) in [("/v1/traces", spans(3)), ("/v1/metrics", point()), ("/v1/logs", log())] {
        assert_eq!(collector.post(path, &request).await.0, 200);
    }
    assert_eq!(collector.stop().await, 0);

    assert_eq!(span_count(&collector.lines("traces.jsonl")), 3);
    let metrics = serde_json::to_string(&collector.lines("metrics.jsonl")).expect("JSON");
    for words in ["\"a_b\"", "\"service.name.override\"", "traces.span.metrics.calls", "\"evals\""] {
        assert!(metrics.contains(words), "{words}: {metrics}");
    }
    for name in ["traces.jsonl", "metrics.jsonl", "logs.jsonl", "stderr.txt", "delivery.json"] {
        let text = std::fs::read_to_string(collector.path(name)).expect("reads");
        assert!(!text.contains("s3cr3t"), "the token is in {name}");
    }
    let seen = sink.seen();
    let paths: std::collections::BTreeSet<&str> = seen.iter().map(|request| request.path.as_str()).collect();
    assert_eq!(paths.into_iter().collect::<Vec<_>>(), ["/otlp/v1/logs", "/otlp/v1/metrics", "/otlp/v1/traces"]);
    for request in &seen {
        assert_eq!(request.headers["authorization"], "Bearer s3cr3t");
        assert!(request.body.windows(6).any(|window| window == b"s3cr3t"), "the tenant attribute is on the wire");
    }
    let delivery = collector.delivery();
    assert_eq!(delivery["traces"]["received"], 3);
    assert_eq!((&delivery["traces"]["written"], &delivery["traces"]["sent"]), (&json!(3), &json!(3)));
}

#[tokio::test]
async fn health_and_admin_calls() {
    let text = config("  batch: {}", "batch", "", "file");
    let mut collector = Collector::start(&text, &[]).await;
    let answer = reqwest::get(format!("http://127.0.0.1:{}/any?x=1", collector.health)).await.expect("answers");
    assert_eq!(answer.headers()["content-type"], "application/json");
    let body = answer.text().await.expect("a body");
    assert!(body.starts_with(r#"{"status":"Server available","upSince":"2"#), "{body}");
    for (query, status) in [
        ("", 200),
        ("?last=false", 200),
        ("?last=true", 200),
        ("?last=bogus", 400),
        ("?last=", 400),
        ("?lsat=true", 400),
        ("?last=true&last=false", 400),
    ] {
        assert_eq!(collector.admin(&format!("/-/scrape{query}")).await.0, status, "{query}");
    }
    assert_eq!(collector.admin("/-/stop?seconds=5").await.0, 200);
    assert_eq!(collector.admin("/-/stop?seconds=-1").await.0, 400);
    assert_eq!(collector.admin("/-/nope").await.0, 404);
    assert_eq!(collector.stop().await, 0);
}

/// What the process has open has no folder: the report is in the working directory.
#[test]
fn the_report_of_a_configuration_that_is_no_file_is_where_it_runs() {
    let text = format!(
        "exporters: {{nop: }}\nreceivers: {{otlp: {{protocols: {{http: {{endpoint: '127.0.0.1:{}'}}}}}}}}\n\
                        service: {{pipelines: {{logs: {{receivers: [otlp], exporters: [nop]}}}}}}\n",
        free_port()
    );
    let folder = tempfile::tempdir().expect("a folder");
    let (here, elsewhere) = (folder.path().join("here"), folder.path().join("elsewhere"));
    for path in [&here, &elsewhere] {
        std::fs::create_dir(path).expect("a folder");
    }
    let file = elsewhere.join("collector.yaml");
    std::fs::write(&file, &text).expect("writes");
    let file = file.to_str().expect("text");
    for (configuration, folder) in [
        ("/dev/stdin", &here),
        ("/dev/fd/0", &here),
        ("/proc/self/fd/0", &here),
        ("<(cat -)", &here),
        (file, &elsewhere),
    ] {
        let mut bash = std::process::Command::new("bash");
        let script = format!("exec {} collector --config {configuration}", binary());
        bash.args(["-c", &script]).current_dir(&here).stdin(std::fs::File::open(file).expect("opens"));
        let log = here.join("log");
        bash.stderr(std::fs::File::create(&log).expect("creates"));
        let mut collector = Program::start(&mut bash);
        let is_ready = || std::fs::read_to_string(&log).expect("reads").contains("everything is ready").then_some(());
        eventually("the collector", is_ready);
        collector.signal(nix::sys::signal::Signal::SIGTERM);
        let status = eventually("its end", || collector.status());
        assert!(status.success(), "{configuration}");
        std::fs::remove_file(folder.join("delivery.json")).expect(configuration);
    }
}

/// On a shared node others may see that it is healthy, and tell it nothing; nor may a page in somebody's browser.
#[tokio::test]
async fn other_users_tell_it_nothing() {
    let mut collector = Collector::start(&config("  batch: {}", "batch", "", "file"), &[]).await;
    let ask = |user: Option<u32>, method: &str, path: &str, header: &str| {
        let request = format!("{method} {path} HTTP/1.1\\r\\nHost: a\\r\\n{header}Connection: close\\r\\n\\r\\n");
        let script = format!("exec 3<>/dev/tcp/127.0.0.1/{}; printf '{request}' >&3; cat <&3", collector.health);
        let mut bash = std::process::Command::new("bash");
        bash.args(["-c", &script]);
        if let Some(user) = user {
            std::os::unix::process::CommandExt::uid(&mut bash, user);
        }
        let output = bash.output().expect("bash is there");
        String::from_utf8_lossy(&output.stdout).get(9..12).unwrap_or_default().to_owned()
    };
    for path in ["/-/scrape?last=true", "/-/stop?seconds=0"] {
        assert_eq!(ask(None, "POST", path, "Origin: http://a.test\\r\\n"), "403", "{path}");
        if nix::unistd::geteuid().is_root() {
            assert_eq!(ask(Some(65534), "POST", path, ""), "403", "{path}");
            assert_eq!(ask(Some(65534), "GET", "/", ""), "200");
        }
    }
    assert_eq!(ask(None, "POST", "/-/stop?seconds=5", ""), "200");
    assert_eq!(collector.stop().await, 0);
    assert!(collector.stderr().contains("may drain for 4"), "{}", collector.stderr());
}

/// Two pipelines get the same request and change it each for itself; a connector leads into a third; two exporters have
/// one file.
#[tokio::test]
async fn pipelines_share_and_their_changes_stay_apart() {
    let stamp =
        |name: &str| format!("  resource/{name}: {{attributes: [{{key: seen, value: {name}, action: insert}}]}}\n");
    let text = format!(
        "receivers: {{otlp: {{protocols: {{http: {{endpoint: $HTTP}}}}}}}}\nextensions: {{health_check: {{endpoint: $HEALTH}}}}\n\
         processors:\n{}{}connectors: {{forward: }}\n\
         exporters: {{file/a: {{path: $OUT/a.jsonl}}, file/b: {{path: $OUT/b.jsonl}}, file/c: {{path: $OUT/both.jsonl}}, \
         file/d: {{path: $OUT/both.jsonl}}}}\n\
         service:\n  extensions: [health_check]\n  pipelines:\n\
         \x20   traces/a: {{receivers: [otlp], processors: [resource/a], exporters: [file/a, forward]}}\n\
         \x20   traces/b: {{receivers: [otlp], processors: [resource/b], exporters: [file/b, forward]}}\n\
         \x20   traces/c: {{receivers: [forward], exporters: [file/c]}}\n\
         \x20   logs: {{receivers: [otlp], exporters: [file/c, file/d]}}\n",
        stamp("a"),
        stamp("b")
    );
    let mut collector = Collector::start(&text, &[]).await;
    assert_eq!(collector.post("/v1/traces", &spans(2)).await.0, 200);
    assert_eq!(collector.post("/v1/logs", &log()).await.0, 200);
    assert_eq!(collector.post("/v1/metrics", &point()).await.0, 404);
    assert_eq!(collector.stop().await, 0);
    let seen = |line: &serde_json::Value| line["resourceSpans"][0]["resource"]["attributes"][1]["value"].clone();
    for name in ["a", "b"] {
        let lines = collector.lines(&format!("{name}.jsonl"));
        assert_eq!(lines.len(), 1);
        assert_eq!(seen(&lines[0]), json!({"stringValue": name}));
    }
    let both = collector.lines("both.jsonl");
    assert_eq!((both.len(), span_count(&both)), (4, 4));
    let delivery = collector.delivery();
    assert_eq!((&delivery["traces"]["received"], &delivery["traces"]["written"]), (&json!(6), &json!(8)));
    assert_eq!(delivery["components"]["exporters/file/d"], json!({"logs": {"written": 1}}));
}

#[tokio::test]
async fn the_health_check_has_a_path_bodies_and_headers_of_its_own() {
    let health = "health_check: {endpoint: $HEALTH, path: /up, response_body: {healthy: fine, unhealthy: ill}, \
                  response_headers: {X-Who: gymrun}}";
    let text = config("  batch: {}", "batch", "", "file").replace("health_check: {endpoint: $HEALTH}", health);
    let mut collector = Collector::spawn(&text, &[]);
    let url = |path: &str| format!("http://127.0.0.1:{}{path}", collector.health);
    let (up, other) = (url("/up"), url("/"));
    let ready = async || reqwest::get(&up).await.ok().filter(|answer| answer.status() == 200);
    let answer = crate::harness::eventually_async("the collector is ready", ready).await;
    assert_eq!(answer.headers()["x-who"], "gymrun");
    assert_eq!(answer.text().await.expect("a body"), "fine");
    assert_eq!(reqwest::get(&other).await.expect("answers").status(), 404);
    assert_eq!(collector.stop().await, 0);
}
