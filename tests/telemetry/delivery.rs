//! What a job with a collector leaves behind: no secrets, and telemetry up to its last moment.

use std::fs;
use std::path::PathBuf;

use crate::harness::{Answer, GOOD, Job, Running, Sink, free_port, gymrun, python};

const TOKEN: &str = "t0ken-th4t-must-n0t-be-seen";

#[test]
fn an_endpoint_that_quotes_the_token_puts_it_nowhere() {
    // `MY_PASS` is not named like a secret: the header it stands in makes it one.
    for variable in ["MY_TOKEN", "MY_PASS"] {
        let sink = Sink::start_alone(vec![Answer::Quote(401)]);
        let job = Job::new(
            "job.yaml",
            &format!(
                "name: t\notel: {{endpoint: {}, token_env: {variable}, compression: none, service_name: evals}}\n\
                 driver: {{command: [\"true\"]}}\n",
                sink.url()
            ),
        );
        let job = job.variable(variable, TOKEN);
        let ended = job.run(&[]);
        assert_eq!(ended.code, Some(0), "{}", ended.stderr);
        let directory = job.directory();
        let delivery = directory.json("otel/delivery.json");
        assert!(delivery["traces"]["dropped"]["http_401"].as_u64() > Some(0), "{delivery}");
        assert!(
            delivery["last_error"].as_str().is_some_and(|text| text.contains("invalid credentials: ***")),
            "{delivery}"
        );
        assert_eq!(directory.files_with(TOKEN), Vec::<PathBuf>::new());
        assert!(!ended.stdout.contains(TOKEN) && !ended.stderr.contains(TOKEN), "{}", ended.stderr);
    }
}

const PAGE: &str = r#"
import http.server, os
class Page(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200)
        self.send_header("Content-Type", "text/plain; version=0.0.4")
        self.end_headers()
        self.wfile.write(b"n 1\n")
    def log_message(self, *_):
        pass
http.server.HTTPServer(("127.0.0.1", int(os.environ["GYMRUN_PORT"])), Page).serve_forever()
"#;

/// While the job stops, its servers go one after another; nobody looks at them any more.
#[test]
fn the_last_that_is_said_of_a_target_is_that_it_is_up() {
    if python().is_none() {
        return;
    }
    let job = Job::new(
        "job.yaml",
        "name: t\notel: {endpoint: false, scrape_interval_seconds: 1}\n\
         services:\n\
         \x20 page: {command: [python3, page.py], port: auto, metrics: true, health_check: {path: /}}\n\
         \x20 slow: {shell: 'trap \"sleep 3; exit 0\" TERM; sleep 300 & wait', grace_seconds: 10}\n\
         driver: {command: [sleep, \"2\"]}\n",
    );
    fs::write(job.folder().join("page.py"), PAGE).expect("a program");
    let ended = job.run(&[]);
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    let telemetry = job.directory().telemetry();
    for name in ["up", "n"] {
        let points = telemetry.metrics_named(name).into_iter().flat_map(|metric| metric.points);
        let points: Vec<_> = points.map(|point| (point["asDouble"].as_f64(), point["flags"].as_u64())).collect();
        assert_eq!(points.last(), Some(&(Some(1.0), None)), "{name}: {points:?}");
    }
}

/// The endpoint is dead for the whole job: the job ends well and says so, its directory has the data without the token, and
/// later everything is sent with it.
#[tokio::test(flavor = "multi_thread")]
async fn what_a_job_could_not_send_is_sent_from_its_directory_later() {
    let port = free_port();
    let job = Job::new(
        "job.yaml",
        &format!(
            "name: t\notel: {{endpoint: 'http://127.0.0.1:{port}', token_env: MY_PASS, compression: none, service_name: evals, queue: disk}}\n\
             driver: {{command: [\"true\"]}}\n"
        ),
    );
    let job = job.variable("MY_PASS", TOKEN);
    let ended = job.run(&[]);
    ended.assert_code(0);
    let directory = job.directory();
    let delivery = directory.json("otel/delivery.json");
    let stored: u64 =
        ["traces", "metrics", "logs"].iter().filter_map(|signal| delivery[*signal]["stored"].as_u64()).sum();
    assert!(stored > 0, "{delivery}");
    for signal in ["traces", "metrics"] {
        assert_eq!(delivery[signal]["stored"], delivery[signal]["received"], "{delivery}");
        assert_eq!(delivery[signal]["dropped"], serde_json::json!({}), "{delivery}");
    }
    assert!(
        ended.stderr.contains(&format!("{stored} of them are stored: `gymrun collector flush`")),
        "{}",
        ended.stderr
    );
    assert_eq!(directory.files_with(TOKEN), Vec::<PathBuf>::new());

    let sink = Sink::start_at(port, vec![GOOD]).await;
    let flush = || {
        let mut command = gymrun(&["collector", "flush"]);
        Running::start(command.arg(directory.path("")).env("MY_PASS", TOKEN)).end()
    };
    let flushed = flush();
    flushed.assert_code(0);
    assert!(flushed.stdout.contains(&format!("sent {stored}, rejected 0, dropped 0")), "{}", flushed.stdout);
    assert!(!(flushed.stdout + &flushed.stderr).contains(TOKEN));
    let requests = sink.seen();
    assert!(!requests.is_empty());
    for request in &requests {
        assert_eq!(request.header("authorization"), Some(format!("Bearer {TOKEN}").as_str()));
        for resource in request.resource_attributes() {
            assert!(resource.contains(&("Authorization".to_owned(), TOKEN.to_owned())), "{resource:?}");
        }
    }
    flush().assert_code(0);
    assert_eq!(sink.seen().len(), requests.len(), "once");
}
