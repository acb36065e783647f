//! Health checks: what counts as ready, what is said when nothing does, and that a check disturbs nobody.

use std::net::TcpListener;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use serde_json::{Value, json};

use crate::cases::Case;
use crate::job::{Job, job};
use crate::jobs::{child, driver, server, side_by_side, with};
use crate::listen::answer;

pub const CASES: &[Case] = &[
    ("what_counts_as_an_answer", what_counts_as_an_answer),
    ("the_last_answer_is_said", the_last_answer_is_said),
    ("a_limit_is_the_authors", a_limit_is_the_authors),
    ("no_proxy_is_asked", no_proxy_is_asked),
    ("a_check_does_not_watch_a_server_that_is_not_ready_yet", a_check_does_not_watch_a_server_that_is_not_ready_yet),
    ("a_failed_start_ends_everything_in_order", a_failed_start_ends_everything_in_order),
    ("an_end_is_noticed_though_a_daemon_keeps_the_pipe", an_end_is_noticed_though_a_daemon_keeps_the_pipe),
];

fn checked(steps: &str, check: impl Into<Value>) -> Value {
    with(json!({"command": child(steps), "port": "auto"}), "health_check", check)
}

fn what_counts_as_an_answer() {
    let app = "listen:own4:${port:self}:/openapi.json=200 forever";
    let ended = job(&json!({
        "servers": {
            "no_content": checked("listen:own4:${port:self}:204 forever", json!({})),
            "path": checked(app, json!({"path": "/openapi.json"})),
            "paths": checked(app, json!({"path": ["/health", "/", "/openapi.json"]})),
            "tcp": checked(app, json!({"type": "tcp"})),
            "any": checked(app, json!({"path": "/", "statuses": "any"})),
            "only4": checked(app, json!({"path": "/openapi.json", "host": "localhost"})),
        },
        "driver": driver("exit:0"),
    }));
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
}

fn the_last_answer_is_said() {
    let app = "listen:own4:${port:self}:/openapi.json=200 forever";
    let cases = [
        (app, json!({"path": "/"}), "404 at /"),
        (app, json!({"path": ["/a", "/b"]}), "404 at /b"),
        ("listen:own4:${port:self}:503 forever", json!({}), "503 at /health"),
        ("listen:own4:${port:self}:429 forever", json!({}), "429 at /health"),
        ("listen:own4:${port:self}:mute forever", json!({"request_timeout_seconds": 0.1}), "no answer within 0.1 s"),
        ("forever", json!({}), "connection refused"),
        ("forever", json!({"type": "tcp", "host": "localhost"}), "connection refused"),
        ("forever", json!({"type": "exec", "command": ["sh", "-c", "exit 3"]}), "exited 3"),
    ];
    side_by_side(cases, |(steps, check, answer)| {
        // A busy machine may take its time until the server listens.
        let check = with(check, "timeout_seconds", 5);
        let ended = job(&json!({"servers": {"a": checked(steps, check)}, "driver": driver("append:@DIR/ran:x")}));
        assert_eq!((ended.code, ended.class()), (Some(125), "start_failed"), "{steps}");
        assert_eq!(ended.the("process_not_ready", "a")["answer"], answer, "{steps}");
        let said = format!("was not ready after 5 s, last answer: {answer}");
        assert!(ended.stderr.contains(&said), "{}", ended.stderr);
        assert!(ended.all("process_waiting").len() <= 1);
        assert!(ended.file("ran").is_empty());
    });
}

fn a_limit_is_the_authors() {
    // Ready when it is told: once the first limit is over, and within the second.
    for (limit, code) in [(0.2, 125), (60.0, 0)] {
        let slow = checked("wait:@DIR/go serve:${port:self} forever", json!({"timeout_seconds": limit}));
        let running = Job::start(&json!({"servers": {"a": slow}, "driver": driver("exit:0")}));
        if code == 0 {
            // It has been waited for for longer than the first limit.
            running.wait_for_event("process_waiting", "a");
            std::fs::write(running.path("go"), "").expect("a scratch file");
        }
        let ended = running.end();
        assert_eq!(ended.code, Some(code), "{}", ended.stderr);
    }
}

fn no_proxy_is_asked() {
    // A proxy that says yes to everything.
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let proxy = format!("http://{}", listener.local_addr().expect("it is bound"));
    let asked = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&asked);
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            count.fetch_add(1, Ordering::SeqCst);
            answer(stream, "200");
        }
    });
    let check = |host: &str| json!({"host": host, "timeout_seconds": 120});
    let steps = "until:${port:self}:@DIR/loaded forever";
    let running = Job::start_with(
        &json!({
            "servers": {"a": checked(steps, check("127.0.0.1")), "b": checked(steps, check("localhost"))},
            "driver": driver("append:@DIR/ran:x"),
        }),
        |command| {
            for name in ["http_proxy", "https_proxy", "all_proxy"] {
                command.env(name, &proxy).env(name.to_uppercase(), &proxy);
            }
            command.env_remove("no_proxy").env_remove("NO_PROXY");
        },
    );
    for process in ["a", "b"] {
        assert_eq!(running.wait_for_event("process_waiting", process)["answer"], "503 at /health");
    }
    assert!(!running.path("ran").exists());
    std::fs::write(running.path("loaded"), "").expect("a scratch file");
    let ended = running.end();
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    // One line for a wait.
    assert_eq!(ended.all("process_waiting").len(), 2);
    assert_eq!(asked.load(Ordering::SeqCst), 0);
}

fn a_check_does_not_watch_a_server_that_is_not_ready_yet() {
    let slow = checked("until:${port:self}:@DIR/loaded forever", json!({"timeout_seconds": 120}));
    let running = Job::start(&json!({
        "servers": {"a": with(slow, "liveness", json!({"interval_seconds": 0.01}))},
        "driver": driver("exit:0"),
    }));
    // By now it has answered badly much more often than a liveness check would bear.
    running.wait_for_event("process_waiting", "a");
    std::fs::write(running.path("loaded"), "").expect("a scratch file");
    let ended = running.end();
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    assert!(ended.all("process_hung").is_empty());
}

fn a_failed_start_ends_everything_in_order() {
    let log = |name: &str| format!("trap:TERM:@DIR/stops:{name}:0:0 serve:${{port:self}} forever");
    let ended = job(&json!({
        "otel": {
            "command": child("collector:${port:self.health}:@DIR/asked trap:TERM:@DIR/stops:collector:0:0 forever"),
            "health_check": {"path": "/"},
        },
        "servers": {
            "first": server(&log("first")),
            "second": with(server(&log("second")), "depends_on", json!(["first"])),
            "late": with(checked("forever", json!({"timeout_seconds": 0.5})), "depends_on", json!(["second"])),
            "never": with(server("append:@DIR/ran:x forever"), "depends_on", json!(["late"])),
        },
        "driver": driver("append:@DIR/ran:x"),
    }));
    assert_eq!((ended.code, ended.class()), (Some(125), "start_failed"), "{}", ended.stderr);
    let stops = ["second", "second gone", "first", "first gone", "collector", "collector gone"];
    assert_eq!(ended.lines("stops"), stops);
    assert!(ended.file("ran").is_empty());
    for skipped in ["never", "driver"] {
        assert_eq!(ended.the("process_skipped", skipped)["because"], "late");
    }
}

fn an_end_is_noticed_though_a_daemon_keeps_the_pipe() {
    // Before and after it was ready, with its output in a pipe that somebody else has open for ever.
    for steps in ["daemon { forever } exit:3", "daemon { forever } serve:${port:self} wait:@DIR/driving exit:3"] {
        let ended = job(&json!({
            "servers": {"a": with(server(steps), "log", "pipe")},
            "driver": driver("append:@DIR/driving:x forever"),
        }));
        assert_eq!(ended.code, Some(125), "{}", ended.stderr);
        assert_eq!(ended.the("process_exited", "a")["code"], json!(3));
    }
}
