//! What a job with a collector leaves behind: no secrets, and telemetry up to its last moment.

mod harness;

use std::fs;
use std::path::PathBuf;

use harness::{Answer, Job, Sink, python};

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
