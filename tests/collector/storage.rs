//! What cannot be sent is kept on disk without the token, and sent later: once, whole, by whoever comes next.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use opentelemetry_proto::tonic::collector::logs::v1::ExportLogsServiceRequest;
use opentelemetry_proto::tonic::collector::metrics::v1::ExportMetricsServiceRequest;
use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use opentelemetry_proto::tonic::common::v1::any_value::Value as Content;
use opentelemetry_proto::tonic::resource::v1::Resource;
use prost::Message as _;
use serde_json::json;

use crate::harness::{Answer, Collector, GOOD, Running, Seen, Sink, binary, free_port};
use crate::{log, point, spans};

/// With a `$` and digits alone at the end, as tokens may be.
pub(super) const TOKEN: &str = "t0ken-th4t$must-n0t-be-seen";
/// As the launch of a job hands it to the collector.
pub(super) const LAUNCHED: [(&str, &str); 1] = [("TOKEN", "t0ken-th4t$$must-n0t-be-seen")];
pub(super) const OWN: [(&str, &str); 1] = [("TOKEN", TOKEN)];

pub(super) fn config(port: u16) -> String {
    let pipelines: Vec<String> = ["traces", "metrics", "logs"]
        .iter()
        .map(|signal| {
            format!("    {signal}: {{receivers: [otlp], processors: [resource, batch], exporters: [otlp_http]}}\n")
        })
        .collect();
    format!(
        "receivers: {{otlp: {{protocols: {{http: {{endpoint: $HTTP}}}}}}}}\n\
         extensions:\n  health_check: {{endpoint: $HEALTH}}\n  file_storage: {{directory: $OUT/queue, create_directory: true}}\n\
         processors:\n  batch: {{timeout: 10ms, send_batch_size: 1}}\n  resource:\n    attributes:\n\
         \x20     - {{key: tenant, value: \"${{env:TOKEN}}${{env:GYMRUN_EMPTY:-}}\", action: upsert}}\n\
         exporters:\n  otlp_http:\n    endpoint: http://127.0.0.1:{port}\n    headers: {{Authorization: \"Bearer ${{env:TOKEN}}\"}}\n\
         \x20   retry_on_failure: {{initial_interval: 50ms, max_interval: 200ms}}\n\
         \x20   sending_queue: {{storage: file_storage, queue_size: 3}}\n\
         service:\n  extensions: [health_check, file_storage]\n  pipelines:\n{}",
        pipelines.concat()
    )
}

/// A collector that could send nothing of what it was given, and has ended: `rounds` requests of each signal.
pub(super) async fn dead(port: u16, rounds: usize) -> Collector {
    let mut collector = Collector::start(&config(port), &LAUNCHED).await;
    for _ in 0..rounds {
        for (path, request) in [("/v1/traces", spans(2)), ("/v1/metrics", point()), ("/v1/logs", log())] {
            assert_eq!(collector.post(path, &request).await.0, 200);
        }
    }
    assert_eq!(collector.admin("/-/stop?seconds=8").await.0, 200);
    assert_eq!(collector.stop().await, 0);
    let delivery = collector.delivery();
    for (signal, items) in [("traces", 2 * rounds), ("metrics", rounds), ("logs", rounds)] {
        let counts = &delivery[signal];
        assert_eq!((&counts["received"], &counts["stored"]), (&json!(items), &json!(items)), "{delivery}");
        assert_eq!((&counts["sent"], &counts["dropped"]), (&json!(0), &json!({})), "{delivery}");
    }
    collector
}

/// A `gymrun collector flush` that runs.
pub(super) struct Flush {
    running: Running,
}

impl Flush {
    /// Starts it for the directory of a collector's configuration.
    pub(super) fn start(directory: &Path, seconds: u32, environment: &[(&str, &str)]) -> Self {
        let mut command = Command::new(binary());
        command.args(["collector", "flush", "--timeout", &seconds.to_string()]).arg(directory);
        command.env_clear().envs(environment.iter().copied()).stdin(Stdio::null());
        Self { running: Running::start(&mut command) }
    }

    /// Its end: exit code, and what it said on both outputs.
    pub(super) async fn ended(self) -> (i32, String) {
        // Endpoints of the test answer meanwhile.
        let ended = tokio::task::spawn_blocking(move || self.running.end()).await.expect("it ends");
        (ended.code.expect("a code"), ended.stdout + &ended.stderr)
    }
}

/// The stored requests.
pub(super) fn stored(folder: &Path) -> BTreeSet<PathBuf> {
    let list = |path: &Path| fs::read_dir(path).into_iter().flatten().flatten().map(|entry| entry.path());
    let is_request = |path: &PathBuf| path.extension().is_some_and(|extension| extension == "otlp");
    list(&folder.join("queue")).flat_map(|folder| list(&folder).collect::<Vec<_>>()).filter(is_request).collect()
}

pub(super) fn files_with(folder: &Path, word: &str) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).expect("a folder").flatten() {
        let path = entry.path();
        if path.is_dir() {
            found.extend(files_with(&path, word));
        } else if fs::read(&path).is_ok_and(|bytes| bytes.windows(word.len()).any(|part| part == word.as_bytes())) {
            found.push(path);
        }
    }
    found
}

/// Items of all requests: spans, points, records. Each must have the token as its header and as its attribute.
pub(super) fn received(seen: &[Seen]) -> [usize; 3] {
    let mut counts = [0; 3];
    let check = |resource: Option<&Resource>| {
        let attributes = &resource.expect("a resource").attributes;
        let tenants: Vec<_> = attributes.iter().filter(|pair| pair.key == "tenant").collect();
        let value = tenants[0].value.as_ref().and_then(|value| value.value.clone());
        assert_eq!((tenants.len(), value), (1, Some(Content::StringValue(TOKEN.into()))));
    };
    for request in seen {
        assert_eq!(request.headers["authorization"], format!("Bearer {TOKEN}"));
        let body = request.body.as_slice();
        match request.path.as_str() {
            "/v1/traces" => {
                for entry in ExportTraceServiceRequest::decode(body).expect("spans").resource_spans {
                    check(entry.resource.as_ref());
                    counts[0] += entry.scope_spans.iter().map(|scope| scope.spans.len()).sum::<usize>();
                }
            }
            "/v1/metrics" => {
                for entry in ExportMetricsServiceRequest::decode(body).expect("metrics").resource_metrics {
                    check(entry.resource.as_ref());
                    counts[1] += entry.scope_metrics.iter().map(|scope| scope.metrics.len()).sum::<usize>();
                }
            }
            _ => {
                for entry in ExportLogsServiceRequest::decode(body).expect("records").resource_logs {
                    check(entry.resource.as_ref());
                    counts[2] += entry.scope_logs.iter().map(|scope| scope.log_records.len()).sum::<usize>();
                }
            }
        }
    }
    counts
}

#[tokio::test]
async fn what_a_dead_endpoint_did_not_take_is_sent_later_once_and_the_token_is_in_no_file() {
    let port = free_port();
    let collector = dead(port, 5).await;
    let folder = collector.folder.path();
    assert_eq!(files_with(folder, TOKEN), Vec::<PathBuf>::new());
    assert_eq!(files_with(folder, "t0ken-th4t"), Vec::<PathBuf>::new());
    let before = stored(folder);
    // Still dead: nothing is lost.
    let (code, said) = Flush::start(folder, 1, &OWN).ended().await;
    assert_eq!((code, stored(folder)), (1, before.clone()), "{said}");
    assert!(said.contains(&still_stored(before.len())), "{said}");
    // Alive, and busy at first.
    let sink = Sink::start_at(port, vec![Answer::Give(503, Vec::new(), b""), GOOD]).await;
    let (code, said) = Flush::start(folder, 30, &OWN).ended().await;
    assert_eq!(code, 0, "{said}");
    assert!(said.contains("sent 20, rejected 0, dropped 0") && said.contains("0 requests are still stored"), "{said}");
    assert!(!said.contains("t0ken"), "{said}");
    let seen = sink.seen();
    assert_eq!(received(&seen[1..]), [10, 5, 5]);
    assert_eq!(stored(folder), BTreeSet::new());
    let (code, said) = Flush::start(folder, 30, &OWN).ended().await;
    assert_eq!((code, sink.seen().len()), (0, seen.len()), "{said}");
}

/// One that breaks off in the middle of its work loses nothing, and keeps nobody out.
#[tokio::test]
async fn one_sends_at_a_time_and_who_is_killed_loses_nothing() {
    let port = free_port();
    let collector = dead(port, 2).await;
    let folder = collector.folder.path();
    let before = stored(folder);
    let hanging = Sink::start_at(port, vec![Answer::Hang]).await;
    let first = Flush::start(folder, 60, &OWN);
    hanging.wait(1).await;
    let (code, said) = Flush::start(folder, 60, &OWN).ended().await;
    assert!(code == 1 && said.contains("another process uses the directory") && said.contains("queue"), "{said}");
    // Killed.
    drop(first);
    assert_eq!(stored(folder), before);
    // It takes the same port's place in the configuration.
    let sink = Sink::start(vec![GOOD]).await;
    let file = collector.path("collector.yaml");
    let text = fs::read_to_string(&file).expect("reads");
    fs::write(&file, text.replace(&format!(":{port}"), &format!(":{}", sink.port))).expect("writes");
    let (code, said) = Flush::start(folder, 60, &OWN).ended().await;
    assert_eq!((code, received(&sink.seen())), (0, [4, 2, 2]), "{said}");
}

#[tokio::test]
async fn while_the_collector_runs_nobody_else_sends() {
    let sink = Sink::start(vec![GOOD]).await;
    let mut collector = Collector::start(&config(sink.port), &LAUNCHED).await;
    let (code, said) = Flush::start(collector.folder.path(), 5, &OWN).ended().await;
    assert!(code == 1 && said.contains("another process uses the directory"), "{said}");
    assert_eq!(collector.post("/v1/traces", &spans(3)).await.0, 200);
    assert_eq!(collector.stop().await, 0);
    assert_eq!(collector.delivery()["traces"]["sent"], 3);
    let lock = fs::metadata(collector.path("queue/lock")).expect("a lock");
    assert_eq!(std::os::unix::fs::PermissionsExt::mode(&lock.permissions()) & 0o777, 0o600);
}

/// Torn, empty, overwritten, of another kind: each is named and stays, the others are sent. What was never whole goes.
#[tokio::test]
async fn files_that_cannot_be_read_are_named_and_the_rest_is_sent() {
    let port = free_port();
    let collector = dead(port, 6).await;
    let folder = collector.folder.path();
    let traces: Vec<PathBuf> =
        stored(folder).into_iter().filter(|path| path.to_string_lossy().contains("traces")).collect();
    assert!(traces.len() >= 5, "{traces:?}");
    let whole = fs::read(&traces[0]).expect("reads");
    let logs = stored(folder).into_iter().find(|path| path.to_string_lossy().contains("logs")).expect("logs");
    let damages =
        [whole[..whole.len() - 7].to_vec(), Vec::new(), vec![0xff; whole.len()], fs::read(&logs).expect("reads")];
    for (path, damage) in traces.iter().zip(&damages) {
        fs::write(path, damage).expect("writes");
    }
    let unfinished = traces[0].with_file_name(".tmpAbCdEf");
    fs::write(&unfinished, b"half").expect("writes");
    let sink = Sink::start_at(port, vec![GOOD]).await;
    let (code, said) = Flush::start(folder, 30, &OWN).ended().await;
    assert_eq!(code, 1, "{said}");
    for path in &traces[..damages.len()] {
        assert!(said.contains(&path.display().to_string()), "{} is not in {said}", path.display());
    }
    assert!(said.contains("4 requests are still stored"), "{said}");
    let [spans, points, records] = received(&sink.seen());
    assert_eq!((points, records), (6, 6));
    assert!(spans > 0 && spans < 12, "{spans}");
    assert_eq!(stored(folder), traces[..damages.len()].iter().cloned().collect());
    assert!(!unfinished.exists());
}

/// Of an exporter that has another name now, or of a signal that it does not get any more: whoever looks is told, and nobody
/// says that all is sent.
#[tokio::test]
async fn what_nobody_sends_any_more_is_named() {
    for (was, is, signals) in [
        ("otlp_http", "otlp_http/new", &["traces", "metrics", "logs"][..]),
        ("    logs: ", "    traces/x: ", &["logs"]),
    ] {
        let port = free_port();
        let former = dead(port, 1).await;
        let queue = former.path("queue");
        let text = config(port).replace("$OUT/queue", &queue.display().to_string()).replace(was, is);
        let mut collector = Collector::start(&text, &LAUNCHED).await;
        assert_eq!(collector.stop().await, 0);
        let file = former.path("collector.yaml");
        fs::write(&file, fs::read_to_string(&file).expect("reads").replace(was, is)).expect("writes");
        let sink = Sink::start_at(port, vec![GOOD]).await;
        let (code, said) = Flush::start(former.folder.path(), 30, &OWN).ended().await;
        let left = stored(former.folder.path());
        let is_left = |path: &PathBuf| signals.iter().any(|signal| path.to_string_lossy().contains(signal));
        assert!(code == 1 && !left.is_empty() && left.iter().all(is_left), "{is}: {left:?} {said}");
        assert!(said.contains(&still_stored(left.len())), "{is}: {said}");
        assert_eq!(sink.seen().is_empty(), signals.len() == 3, "{is}");
        for signal in signals {
            let folder = queue.join(format!("exporters~otlp_http~{signal}")).display().to_string();
            assert!(said.contains(&folder), "{folder} is not in {said}");
            assert!(collector.stderr().contains(&folder), "{folder} is not in {}", collector.stderr());
        }
    }
}

/// A job directory is copied from where it was made; the token has to be known there.
#[tokio::test]
async fn a_directory_that_was_moved_is_sent_from_where_it_is() {
    let port = free_port();
    let collector = dead(port, 1).await;
    let elsewhere = tempfile::tempdir().expect("a folder");
    let moved = elsewhere.path().join("job");
    fs::create_dir(&moved).expect("a folder");
    for name in ["queue", "collector.yaml"] {
        fs::rename(collector.path(name), moved.join(name)).expect("renames");
    }
    let sink = Sink::start_at(port, vec![GOOD]).await;
    let (code, said) = Flush::start(&moved, 30, &[]).ended().await;
    assert!(code == 1 && said.contains("`TOKEN`"), "{said}");
    assert_eq!(sink.seen().len(), 0);
    let (code, said) = Flush::start(&moved, 30, &[("TOKEN", &format!("{TOKEN}\n"))]).ended().await;
    assert_eq!((code, received(&sink.seen())), (0, [2, 1, 1]), "{said}");
    assert!(!collector.path("queue").exists());
    let (code, said) = Flush::start(elsewhere.path(), 30, &OWN).ended().await;
    assert!(code == 1 && said.contains("collector.yaml"), "{said}");
}

/// The token may come from a file, or from what stands for a variable that is not set.
#[tokio::test]
async fn the_token_of_a_header_may_come_from_elsewhere_than_a_variable() {
    let port = free_port();
    let secrets = tempfile::tempdir().expect("a folder");
    let file = secrets.path().join("token");
    fs::write(&file, LAUNCHED[0].1).expect("writes");
    let file = format!("${{file:{}}}${{env:NOT_SET:-}}", file.display());
    let text = config(port).replace("${env:TOKEN}", &file);
    let mut collector = Collector::start(&text, &[]).await;
    assert_eq!(collector.post("/v1/traces", &spans(2)).await.0, 200);
    assert_eq!(collector.admin("/-/stop?seconds=8").await.0, 200);
    assert_eq!(collector.stop().await, 0);
    assert_eq!(collector.delivery()["traces"]["stored"], json!(2));
    assert_eq!(files_with(collector.folder.path(), "th4t"), Vec::<PathBuf>::new());
    let sink = Sink::start_at(port, vec![GOOD]).await;
    let (code, said) = Flush::start(collector.folder.path(), 30, &[]).ended().await;
    assert_eq!((code, received(&sink.seen())), (0, [2, 0, 0]), "{said}");
}

/// A header may come by its token in a roundabout way: through a variable that refers to another one, or out of a file that
/// does, whose text may be the token itself. No file of the queue has it; a flush in the same place knows it.
#[tokio::test]
async fn the_token_of_a_header_is_known_however_it_got_there() {
    let header = "headers: {Authorization: \"Bearer ${env:TOKEN}\"}";
    let bearer = [LAUNCHED[0], ("AUTH", "Bearer ${env:TOKEN}")];
    let in_place = ("TENANT", LAUNCHED[0].1);
    for (instead, file, environment, tenant) in [
        ("headers: {Authorization: \"${env:AUTH}\"}", "", &bearer[..], "TOKEN"),
        ("headers: ${file:$FILE}", "Authorization: Bearer ${env:TOKEN}", &LAUNCHED, "TOKEN"),
        ("headers: ${file:$FILE}", "[{name: Authorization, value: 'Bearer ${env:TOKEN}'}]", &LAUNCHED, "TOKEN"),
        ("headers: ${file:$FILE}", "Authorization: Bearer t0ken-th4t$$must-n0t-be-seen", &[in_place], "TENANT"),
        ("${file:$FILE}", "EXPORTERS", &LAUNCHED, "TOKEN"),
    ] {
        let port = free_port();
        let elsewhere = tempfile::tempdir().expect("a folder");
        let path = elsewhere.path().join("part.yaml");
        let instead = instead.replace("$FILE", &path.display().to_string());
        let text = config(port).replace("${env:TOKEN}${", &format!("${{env:{tenant}}}${{"));
        let text = if file == "EXPORTERS" {
            let (begin, end) =
                (text.find("exporters:\n  otlp_http").expect("there"), text.find("service:").expect("there"));
            fs::write(&path, &text[begin + "exporters:\n".len()..end]).expect("writes");
            format!("{}exporters: {instead}\n{}", &text[..begin], &text[end..])
        } else {
            fs::write(&path, file).expect("writes");
            text.replace(header, &instead)
        };
        let mut collector = Collector::start(&text, environment).await;
        for (path, request) in [("/v1/traces", spans(2)), ("/v1/metrics", point()), ("/v1/logs", log())] {
            assert_eq!(collector.post(path, &request).await.0, 200);
        }
        assert_eq!(collector.admin("/-/stop?seconds=8").await.0, 200);
        assert_eq!(collector.stop().await, 0);
        let (folder, delivery) = (collector.folder.path(), collector.delivery());
        assert_eq!((&delivery["traces"]["stored"], stored(folder).len()), (&json!(2), 3), "{file}: {delivery}");
        assert_eq!(files_with(folder, "th4t"), Vec::<PathBuf>::new(), "{instead} {file}");
        let sink = Sink::start_at(port, vec![GOOD]).await;
        let own: Vec<(&str, &str)> = environment
            .iter()
            .map(|(name, value)| (*name, if value.contains("th4t") { TOKEN } else { value }))
            .collect();
        let (code, said) = Flush::start(folder, 30, &own).ended().await;
        assert_eq!((code, received(&sink.seen())), (0, [2, 1, 1]), "{instead} {file}: {said}");
    }
}

/// What is left with a header in it, whole or without its scheme, is not stored: that is said and counted.
#[tokio::test]
async fn data_with_a_header_in_it_is_not_stored() {
    for tenant in ["of ${env:BASIC}", "${env:PART}-${env:OTHER}!"] {
        let environment = [("PART", "p4rt"), ("OTHER", "0ther"), ("BASIC", "Basic p4rt-0ther")];
        let text = config(free_port()).replace("Bearer ${env:TOKEN}", "Basic ${env:PART}-${env:OTHER}");
        let text = text.replace("${env:TOKEN}${", &format!("{tenant}${{"));
        let mut collector = Collector::start(&text, &environment).await;
        assert_eq!(collector.post("/v1/traces", &spans(2)).await.0, 200);
        assert_eq!(collector.admin("/-/stop?seconds=8").await.0, 200);
        assert_eq!(collector.stop().await, 0);
        let delivery = collector.delivery();
        assert_eq!(delivery["traces"]["dropped"].as_object().map(serde_json::Map::len), Some(1), "{delivery}");
        assert_eq!(stored(collector.folder.path()), BTreeSet::new());
        assert!(collector.stderr().contains("it has a secret in a place"), "{}", collector.stderr());
    }
}

fn still_stored(requests: usize) -> String {
    format!("; {} still stored\n", gymrun::diag::counted(requests, "request is", "requests are"))
}
