//! Telemetry of whole jobs: who sends what where, with gymrun's own collector and with the real one, and what the end says.
//!
//! The processes of the jobs are this program again: as [`process`] it does what its variables say.

mod child;
mod delivery;
#[path = "../harness/mod.rs"]
mod harness;

use std::collections::BTreeSet;
use std::fs;

use harness::processes::descendants_of;
use harness::{Answer, GOOD, Job, JobDirectory, Sink, component, eventually};
use serde_json::Value;

/// Names what the child does; without it, it does nothing.
const ROLE: &str = "TELEMETRY_TEST_ROLE";

/// A process of a job: sends one item of each signal where its environment says (`send`), sends one span when it is told
/// to stop (`farewell`), or shows the counter that stands in a file (`page`).
#[test]
fn process() {
    match std::env::var(ROLE).as_deref() {
        Ok("send") => child::send_all(),
        Ok("farewell") => child::send_span("farewell"),
        Ok("page") => child::show_counter(),
        _ => {}
    }
}

/// The command of a child, in YAML.
fn command() -> String {
    let program = std::env::current_exe().expect("a path");
    format!("[{}, process, --exact, --nocapture]", program.display())
}

/// gymrun's own collector, and the real one where it is.
fn collectors() -> Vec<String> {
    let real = component("otelcol", "GYMRUN_TEST_OTELCOL").map(|path| format!("binary: {}", path.display()));
    std::iter::once("binary: false".to_owned()).chain(real).collect()
}

/// The attributes of the resources that a file has.
fn attributes(directory: &JobDirectory, signal: &str) -> Vec<Vec<Value>> {
    let key = match signal {
        "traces" => "resourceSpans",
        "metrics" => "resourceMetrics",
        _ => "resourceLogs",
    };
    let items = |value: &Value| value.as_array().cloned().unwrap_or_default();
    let lines = directory.json_lines(&format!("otel/{signal}.jsonl"));
    let entries = lines.into_iter().flat_map(|line| items(&line[key]));
    entries.map(|entry| items(&entry["resource"]["attributes"])).collect()
}

/// Whether a file of whole lines has the word.
fn has_word(directory: &JobDirectory, signal: &str, word: &str) -> bool {
    directory.json_lines(&format!("otel/{signal}.jsonl")).iter().any(|line| line.to_string().contains(word))
}

/// A server of a job that sends one item of each signal, and a driver that leaves it the time.
fn sending(otel: &str, env: &str) -> String {
    format!(
        "name: t\notel: {{{otel}, final_scrape_grace_seconds: 0}}\n\
         services:\n  child: {{command: {}, on_exit: ignore, env: {{{ROLE}: send{env}}}}}\n\
         driver: {{shell: 'until grep -q \"test result\" \"$GYMRUN_JOB_DIR/logs/child.log\"; do sleep 0.1; done'}}\n",
        command()
    )
}

#[test]
fn a_job_id_of_digits_is_text_on_every_signal_and_logs_go_by_grpc() {
    for collector in collectors() {
        let job = Job::new("job.yaml", &sending(&format!("endpoint: false, service_name: s, {collector}"), ""));
        let job = job.variable("SLURM_JOB_ID", "123456");
        let ended = job.run(&[]);
        ended.assert_code(0);
        let directory = job.directory();
        let wanted = serde_json::json!({"key": "slurm_job_id", "value": {"stringValue": "123456"}});
        for (signal, word) in [("traces", "of the child"), ("metrics", "of_the_child"), ("logs", "of the child")] {
            assert!(has_word(&directory, signal, word), "{collector}: {signal}: {}", ended.stderr);
            for attributes in attributes(&directory, signal) {
                assert!(attributes.contains(&wanted), "{collector}, {signal}: {attributes:?}");
            }
        }
    }
}

#[test]
fn an_endpoint_in_the_environment_of_a_process_wins() {
    let own = Sink::start_alone(vec![GOOD]);
    let env = format!(", OTEL_EXPORTER_OTLP_ENDPOINT: '{}'", own.url());
    let job = Job::new("job.yaml", &sending("endpoint: false, service_name: s", &env));
    let ended = job.run(&[]);
    ended.assert_code(0);
    let paths: BTreeSet<String> = own.seen().into_iter().map(|request| request.path).collect();
    assert_eq!(paths, ["/v1/metrics", "/v1/traces"].map(str::to_owned).into());
    let directory = job.directory();
    assert!(!has_word(&directory, "traces", "of the child") && !has_word(&directory, "metrics", "of_the_child"));
    assert!(has_word(&directory, "logs", "of the child"), "these have a variable of their own");
}

#[test]
fn a_token_reaches_the_endpoint_as_it_is_but_for_the_end_of_a_line() {
    for collector in collectors() {
        for (token, header) in [("ab$cd$$e", "Bearer ab$cd$$e"), ("abc\n", "Bearer abc"), ("0123", "Bearer 0123")] {
            let endpoint = Sink::start_alone(vec![GOOD]);
            let otel = format!("endpoint: '{}', token_env: T, service_name: s, {collector}", endpoint.url());
            let job = Job::new("job.yaml", &sending(&otel, "")).variable("T", token);
            job.run(&[]).assert_code(0);
            let seen = endpoint.seen();
            let headers: BTreeSet<Option<&str>> = seen.iter().map(|request| request.header("authorization")).collect();
            assert_eq!(headers, [Some(header)].into(), "{collector}, {token:?}");
            let paths: BTreeSet<&str> = seen.iter().map(|request| request.path.as_str()).collect();
            assert_eq!(paths.len(), 3, "{paths:?}");
        }
    }
}

/// An endpoint that takes connections and never answers: gymrun ends with the driver's code in the time that the collector
/// has, and says what it did not deliver.
#[test]
fn a_black_hole_changes_neither_the_code_nor_the_files() {
    let endpoint = Sink::start_alone(vec![Answer::Hang]);
    let otel = format!("endpoint: '{}', token_env: false, service_name: s, shutdown_wait_seconds: 4", endpoint.url());
    let text = sending(&otel, "").replace("sleep 0.1; done'", "sleep 0.1; done; exit 5'");
    let job = Job::new("job.yaml", &text);
    let ended = job.run(&[]);
    ended.assert_code(5);
    let directory = job.directory();
    let delivery = directory.json("otel/delivery.json");
    for (signal, word) in [("traces", "of the child"), ("metrics", "of_the_child"), ("logs", "of the child")] {
        assert!(has_word(&directory, signal, word));
        let counts = &delivery[signal];
        assert_eq!(counts["received"], counts["written"], "{delivery}");
        assert_eq!(counts["received"], counts["dropped"]["shutdown"], "{delivery}");
    }
    let result = directory.json("result.json");
    assert_eq!(result["processes"]["otel_collector"]["exit"]["code"], 0, "{result}");
    assert!(ended.stderr.contains("telemetry NOT delivered"), "{}", ended.stderr);
}

/// Ready from the first to the last moment, and nothing arrived.
#[test]
fn an_endpoint_that_always_fails_is_in_the_last_line_and_fails_the_job_if_it_matters() {
    for (required, code) in [(false, 0), (true, 125)] {
        let endpoint = Sink::start_alone(vec![Answer::Give(500, Vec::new(), b"")]);
        let otel = format!("endpoint: '{}', token_env: false, service_name: s, required: {required}", endpoint.url());
        let job = Job::new("job.yaml", &sending(&otel, ""));
        let ended = job.run(&[]);
        ended.assert_code(code);
        assert!(ended.stderr.contains("telemetry NOT delivered: "), "{}", ended.stderr);
        let mut lines = ended.stderr.lines();
        // With `required` the reason of the exit code comes after it.
        let told = if required { lines.find(|line| line.contains("NOT delivered")) } else { lines.next_back() };
        let line = told.expect("a line");
        let items =
            line.split_once("telemetry NOT delivered: ").and_then(|(_, rest)| rest.split(' ').next()?.parse().ok());
        assert!(items.is_some_and(|items: u64| items > 0), "{line}");
        assert!(line.contains("status 500"), "{line}");
        assert_eq!(required, ended.stderr.contains("otel.required"), "{}", ended.stderr);
    }
}

/// What a server has counted when the driver ends is in the files, however long the interval is.
#[test]
fn the_last_value_of_a_counter_is_scraped_before_its_server_stops() {
    let text = format!(
        "name: t\notel: {{endpoint: false, service_name: s, scrape_interval_seconds: 600}}\n\
         services:\n  page: {{command: {}, port: auto, metrics: true, health_check: {{path: /}}, env: {{{ROLE}: page, COUNTER: '${{job:dir}}/counter'}}}}\n\
         driver: {{shell: 'sleep 2; echo 1000 > \"$GYMRUN_JOB_DIR/counter\"'}}\n",
        command()
    );
    let job = Job::new("job.yaml", &text);
    let ended = job.run(&[]);
    ended.assert_code(0);
    let directory = job.directory();
    let points = directory.telemetry().metrics_named("done_total").into_iter().flat_map(|metric| metric.points);
    let last = points.max_by_key(|point| point["timeUnixNano"].as_str().and_then(|time| time.parse::<u64>().ok()));
    let last = last.expect("a point");
    assert!(last["asDouble"] == 1000.0 || last["asDouble"] == 1000, "{last}");
    assert_eq!(directory.events("last_scrape")[0]["forced"], true);
}

#[test]
fn a_span_that_a_server_sends_while_it_stops_is_kept() {
    for collector in collectors() {
        let program = std::env::current_exe().expect("a path");
        let text = format!(
            "name: t\notel: {{endpoint: false, service_name: s, {collector}, final_scrape_grace_seconds: 0}}\n\
             services:\n  child:\n    shell: |\n      trap '{ROLE}=farewell {} process --exact; exit 0' TERM\n      touch \"$GYMRUN_JOB_DIR/trapped\"; sleep 300 & wait\n    grace_seconds: 30\n\
             driver: {{shell: 'until test -e \"$GYMRUN_JOB_DIR/trapped\"; do sleep 0.1; done'}}\n",
            program.display()
        );
        let job = Job::new("job.yaml", &text);
        let ended = job.run(&[]);
        ended.assert_code(0);
        assert!(has_word(&job.directory(), "traces", "farewell"), "{collector}: {}", ended.stderr);
    }
}

#[test]
fn a_collector_that_is_killed_does_not_touch_the_driver() {
    for collector in collectors() {
        for (required, code) in [(false, 0), (true, 125)] {
            let text = format!(
                "name: t\notel: {{endpoint: false, service_name: s, {collector}, required: {required}}}\n\
                 driver: {{shell: 'echo running; until test -e \"$GYMRUN_JOB_DIR/go\"; do sleep 0.1; done; echo whole'}}\n"
            );
            let job = Job::new("job.yaml", &text);
            let running = job.start(&[]);
            running.wait_for_stdout("running");
            let is_collector = |pid: u32| {
                let line = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
                String::from_utf8_lossy(&line).contains("collector.yaml")
            };
            let of_job = descendants_of(running.pid());
            let victim = of_job.iter().find(|process| is_collector(process.pid)).expect("a collector");
            let pid = nix::unistd::Pid::from_raw(i32::try_from(victim.pid).expect("a pid"));
            nix::sys::signal::kill(pid, nix::sys::signal::Signal::SIGKILL).expect("it runs");
            eventually("its end", || victim.is_gone().then_some(()));
            running.wait_for_stderr("the collector died");
            fs::write(job.directory().path("go"), "").expect("writes");
            let ended = running.end();
            ended.assert_code(code);
            assert!(ended.stdout.contains("whole"), "{}", ended.stdout);
            let result = job.directory().json("result.json");
            assert!(result.to_string().contains("the collector died"), "{result}");
            assert_eq!(result["processes"]["otel_collector"]["exit"]["signal"], 9, "{result}");
        }
    }
}

/// Nothing is started when there is no place for the files.
#[test]
fn where_nothing_can_be_written_nothing_is_started() {
    let job = Job::new(
        "job.yaml",
        "name: t\notel: {endpoint: false, service_name: s}\n\
         services: {one: {shell: 'echo started > \"$PROBE\"; sleep 300'}}\ndriver: {command: [\"true\"]}\n",
    );
    let probe = job.folder().join("probe");
    let job = job.variable("PROBE", &probe.display().to_string());
    fs::write(job.output(), "in the way").expect("writes");
    let ended = job.run(&[]);
    ended.assert_code(125);
    assert!(ended.stderr.contains(&job.output().display().to_string()), "{}", ended.stderr);
    assert!(!probe.exists());
}
