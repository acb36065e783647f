//! Values that mean little: nothing, less than nothing, a part of one. What `validate` says of them on both sides.

use std::process::{Command, Stdio};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use super::bed::programs;

/// What both say.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Said {
    /// Taken.
    Both,
    /// An error.
    Neither,
    /// Taken there alone, as `docs/collector-differences.md` says.
    Theirs,
    /// Taken here alone; the same.
    Ours,
}
use Said::{Both, Neither, Ours, Theirs};

const VALUES: &[(&str, &str, Said)] = &[
    ("http", "max_request_body_size: 0", Both),
    ("http", "max_request_body_size: -1", Both),
    ("http", "max_request_body_size: 1.5", Theirs),
    ("http", "read_timeout: -1s", Theirs),
    ("http", "endpoint: null", Both),
    ("http", "response_headers: [{name: a, value: b}]", Both),
    ("http", "traces_url_path: /v1/logs", Theirs),
    ("grpc", "max_recv_msg_size_mib: -1", Neither),
    ("grpc", "max_recv_msg_size_mib: 0", Both),
    ("grpc", "max_concurrent_streams: -1", Neither),
    ("grpc", "read_buffer_size: -1", Neither),
    ("grpc", "write_buffer_size: -1", Neither),
    ("batch", "send_batch_size: -1", Neither),
    ("batch", "send_batch_size: 0", Both),
    ("batch", "send_batch_size: null", Both),
    ("batch", "send_batch_size: 1.5", Theirs),
    ("batch", "send_batch_size: 1e4", Both),
    ("batch", "send_batch_size: 10000.0", Both),
    ("batch", "send_batch_size: \"10000\"", Neither),
    ("batch", "send_batch_size: -1e4", Neither),
    ("batch", "send_batch_max_size: 5", Neither),
    ("batch", "timeout: -1s", Neither),
    ("batch", "timeout: null", Both),
    ("memory_limiter", "check_interval: 1s, limit_mib: 0", Neither),
    ("memory_limiter", "check_interval: 1s, limit_mib: -1", Neither),
    ("memory_limiter", "check_interval: -1s, limit_mib: 10", Neither),
    ("memory_limiter", "check_interval: null, limit_mib: 10", Neither),
    ("otlp_http", "sending_queue: {queue_size: 0}", Neither),
    ("otlp_http", "sending_queue: {queue_size: -1}", Neither),
    ("otlp_http", "sending_queue: {queue_size: null}", Ours),
    ("otlp_http", "sending_queue: {num_consumers: 0}", Neither),
    ("otlp_http", "sending_queue: {num_consumers: null}", Ours),
    ("otlp_http", "sending_queue: {batch: {min_size: -1}}", Neither),
    ("otlp_http", "sending_queue: {batch: {flush_timeout: 0s}}", Neither),
    ("otlp_http", "sending_queue: null", Both),
    ("otlp_http", "sending_queue: {enabled: false, queue_size: 0, num_consumers: -1}", Both),
    ("otlp_http", "timeout: 0s", Both),
    ("otlp_http", "timeout: 1e9", Both),
    ("otlp_http", "timeout: 1.5", Theirs),
    ("otlp_http", "timeout: -1s", Theirs),
    ("otlp_http", "retry_on_failure: {initial_interval: -1s}", Neither),
    ("otlp_http", "retry_on_failure: {multiplier: -1}", Neither),
    ("otlp_http", "retry_on_failure: {randomization_factor: 2}", Neither),
    ("otlp_http", "retry_on_failure: {max_elapsed_time: 20ms}", Neither),
    ("otlp_http", "retry_on_failure: {initial_interval: 1s, max_interval: 1s, max_elapsed_time: 1s}", Both),
    ("otlp_http", "retry_on_failure: {max_elapsed_time: 0s}", Both),
    ("otlp_http", "retry_on_failure: null", Both),
    ("otlp_http", "headers: null", Both),
    ("file", "flush_interval: 0s", Both),
    ("file", "flush_interval: -1s", Neither),
    ("file", "rotation: {max_megabytes: -1}", Theirs),
    ("file", "rotation: null", Both),
    ("debug", "sampling_initial: -1", Theirs),
    ("debug", "verbosity: null", Both),
    ("pipelines", "traces: {receivers: [otlp], exporters: [debug]}", Both),
    ("pipelines", "traces: {receivers: otlp, exporters: [debug]}", Neither),
    ("pipelines", "traces: {receivers: [otlp], exporters: debug}", Neither),
    ("pipelines", "traces: {receivers: [otlp], processors: batch, exporters: [debug]}", Neither),
    ("pipelines", "traces: {receivers: [otlp], processors: , exporters: [debug]}", Both),
    ("pipelines", "traces: {receivers: [otlp], processors: {}, exporters: [debug]}", Neither),
    ("pipelines", "traces/: {receivers: [otlp], exporters: [debug]}", Neither),
    ("pipelines", "traces/2: {receivers: [otlp], exporters: [debug]}", Both),
    ("pipelines", "traces/é-1.a: {receivers: [otlp], exporters: [debug]}", Both),
    ("pipelines", "traces/a/b: {receivers: [otlp], exporters: [debug]}", Both),
    ("pipelines", "traces/a b: {receivers: [otlp], exporters: [debug]}", Neither),
    ("pipelines", "traces/a$b: {receivers: [otlp], exporters: [debug]}", Neither),
    ("pipelines", "traces/a+b: {receivers: [otlp], exporters: [debug]}", Neither),
    ("pipelines", "traces/a€: {receivers: [otlp], exporters: [debug]}", Neither),
    ("pipelines", "traces/${env:X}: {receivers: [otlp], exporters: [debug]}", Neither),
    ("pipelines", "trace: {receivers: [otlp], exporters: [debug]}", Neither),
];

const ALL: &str =
    "traces: {receivers: [otlp], processors: [memory_limiter, batch], exporters: [otlp_http, file, debug]}";

fn config(section: &str, settings: &str) -> String {
    let of = |kind: &str, given: &str| if kind == section { format!("{given}{settings}") } else { given.to_owned() };
    format!(
        "receivers: {{otlp: {{protocols: {{http: {{{}}}, grpc: {{{}}}}}}}}}\n\
         processors: {{batch: {{{}}}, memory_limiter: {{{}}}}}\n\
         exporters: {{otlp_http: {{{}}}, file: {{{}}}, debug: {{{}}}}}\n\
         service:\n  telemetry: {{metrics: {{level: none}}}}\n\
         \x20 pipelines: {{{}}}\n",
        of("http", if settings.starts_with("endpoint") { "" } else { "endpoint: \"127.0.0.1:0\", " }),
        of("grpc", "endpoint: \"127.0.0.1:0\", "),
        of("batch", ""),
        if section == "memory_limiter" { settings } else { "check_interval: 1s, limit_mib: 1000" },
        of("otlp_http", "endpoint: \"http://127.0.0.1:1\", "),
        of("file", "path: /dev/null, "),
        of("debug", ""),
        if section == "pipelines" { settings } else { ALL },
    )
}

fn takes(program: &[String], config: &str) -> bool {
    let mut command = Command::new(&program[0]);
    command.args(&program[1..]).arg("validate").arg("--config").arg(format!("yaml:{config}"));
    command.env_clear().stdin(Stdio::null());
    command.output().expect("runs").status.success()
}

#[test]
fn what_means_little_is_taken_or_refused_alike() {
    let Some([ours, theirs]) = programs() else { return };
    let (next, wrong) = (AtomicUsize::new(0), Mutex::new(Vec::new()));
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                while let Some((section, settings, said)) = VALUES.get(next.fetch_add(1, Ordering::SeqCst)) {
                    let config = config(section, settings);
                    let found = match (takes(&ours, &config), takes(&theirs, &config)) {
                        (true, true) => Both,
                        (false, false) => Neither,
                        (true, false) => Ours,
                        (false, true) => Theirs,
                    };
                    if found != *said {
                        wrong
                            .lock()
                            .expect("lock")
                            .push(format!("{section}: {settings}: taken by {found:?}, not {said:?}"));
                    }
                }
            });
        }
    });
    let wrong = wrong.into_inner().expect("lock");
    assert!(wrong.is_empty(), "\n{}", wrong.join("\n"));
}
