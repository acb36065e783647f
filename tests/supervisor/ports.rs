//! Ports: who holds them, and that jobs do not meet on them.

use serde_json::{Value, json};

use crate::cases::Case;
use crate::harness::free_port;
use crate::job::{Job, job};
use crate::jobs::{child, driver, server, with};

pub const CASES: &[Case] = &[
    ("a_busy_port_is_named_with_its_holder", a_busy_port_is_named_with_its_holder),
    ("a_range_gives_the_lowest_free_port", a_range_gives_the_lowest_free_port),
    ("a_stranger_on_the_port_does_not_answer_for_a_server", a_stranger_on_the_port_does_not_answer_for_a_server),
    ("jobs_side_by_side_never_share_a_port", jobs_side_by_side_never_share_a_port),
];

fn a_busy_port_is_named_with_its_holder() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("loopback");
    let port = listener.local_addr().expect("bound").port();
    let ended = job(&json!({"servers": {"a": {"command": child("forever"), "port": port}}}));
    assert_eq!((ended.code, ended.class()), (Some(125), "gymrun_failed"));
    assert!(ended.all("process_started").is_empty());
    let said = format!("port {port} of `a` is busy: it is held by pid {}", std::process::id());
    assert!(ended.stderr.contains(&said), "{}", ended.stderr);
}

fn a_range_gives_the_lowest_free_port() {
    // The first is held (in the other family only, where there is one), the second lingers after a connection.
    let pair = (0..100).find_map(|_| {
        let first = std::net::TcpListener::bind("[::1]:0").or_else(|_| std::net::TcpListener::bind("127.0.0.1:0"));
        let first = first.expect("loopback");
        let port = first.local_addr().expect("bound").port();
        let second = std::net::TcpListener::bind(("127.0.0.1", port.checked_add(1)?)).ok()?;
        (port < 65_000).then_some((first, second, port))
    });
    let (_first, second, port) = pair.expect("two free ports side by side");
    let client = std::net::TcpStream::connect(("127.0.0.1", port + 1)).expect("loopback");
    drop(second.accept());
    drop(client);
    drop(second);
    let ended = job(&json!({
        "servers": {"a": with(server("serve:${port:self} forever"), "port", format!("{port}-{}", port + 9))},
        "driver": driver("exit:0"),
    }));
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    assert_eq!(ended.all("ports_chosen")[0]["ports"]["a"], json!(port + 1));
}

fn a_stranger_on_the_port_does_not_answer_for_a_server() {
    for port in [json!("auto"), json!(free_port())] {
        stranger_on(&port);
    }
}

fn stranger_on(port: &Value) {
    // Two units of one job, the first of which listens on the other's port.
    let ended = job(&json!({
        "servers": {
            "thief": with(server("serve:${port:victim} serve:${port:self} forever"), "depends_on", json!([])),
            "victim": {
                "command": child("forever"), "port": port, "depends_on": ["thief"], "health_check": {"timeout_seconds": 1},
            },
        },
    }));
    assert_eq!(ended.code, Some(125));
    let answer = ended.the("process_not_ready", "victim")["answer"].as_str().unwrap_or_default().to_owned();
    assert!(answer.contains("not by this process"), "{answer}");
}

fn jobs_side_by_side_never_share_a_port() {
    // Six jobs of four servers in a range of 26: most choices collide at first.
    let servers: serde_json::Map<String, Value> =
        (0..4).map(|n| (format!("s{n}"), server("serve:${port:self} forever"))).collect();
    let description = json!({"auto_ports": [21_000, 21_025], "servers": servers, "driver": driver("wait:@DIR/seen")});
    // As from an ssh session and from a job's step: their runtime directories differ.
    let runtime = tempfile::tempdir().expect("a scratch directory");
    let start = |n: u32| {
        let directory = runtime.path().join(n.to_string());
        std::fs::create_dir(&directory).expect("a scratch directory");
        Job::start_with(&description, |command| {
            command.env("XDG_RUNTIME_DIR", directory);
        })
    };
    let jobs: Vec<Job> = (0..6).map(start).collect();
    let mut ports = std::collections::BTreeSet::new();
    for running in &jobs {
        running.wait_for_event("process_started", "driver");
        for event in running.events().iter().filter(|e| e["event"] == "ports_chosen") {
            ports.extend(event["ports"].as_object().into_iter().flatten().filter_map(|(_, port)| port.as_u64()));
        }
    }
    assert_eq!(ports.len(), 24);
    for running in jobs {
        std::fs::write(running.path("seen"), "").expect("a scratch file");
        assert_eq!(running.end().code, Some(0));
    }
}
