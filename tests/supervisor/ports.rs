//! Ports: who holds them, and that jobs do not meet on them.

use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::os::unix::process::CommandExt as _;

use nix::errno::Errno;
use serde_json::{Value, json};

use crate::answers::{port_of, stranger, wait_until_it_is_older};
use crate::cases::Case;
use crate::harness::{free_pair, free_port, skip};
use crate::job::{Job, job};
use crate::jobs::{child, driver, server, with};
use crate::listen::{has_ipv6, listener};

pub const CASES: &[Case] = &[
    ("a_busy_port_is_named_with_its_holder", a_busy_port_is_named_with_its_holder),
    ("a_range_gives_the_lowest_free_port", a_range_gives_the_lowest_free_port),
    (
        "a_port_taken_at_the_last_moment_is_named_with_its_holder",
        a_port_taken_at_the_last_moment_is_named_with_its_holder,
    ),
    ("a_holder_at_each_address_is_in_the_way_or_named", a_holder_at_each_address_is_in_the_way_or_named),
    ("connections_that_linger_are_in_nobodys_way", connections_that_linger_are_in_nobodys_way),
    ("a_port_reserved_by_another_gymrun_is_named", a_port_reserved_by_another_gymrun_is_named),
    ("twenty_jobs_side_by_side_never_share_a_port", twenty_jobs_side_by_side_never_share_a_port),
    ("too_few_descriptors_are_not_called_busy_ports", too_few_descriptors_are_not_called_busy_ports),
];

fn a_busy_port_is_named_with_its_holder() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("loopback");
    let port = listener.local_addr().expect("bound").port();
    let ended = job(&json!({"servers": {"a": {"command": child("forever"), "port": port}}}));
    assert_eq!((ended.code, ended.class()), (Some(125), "gymrun_failed"));
    assert!(ended.all("process_started").is_empty());
    let said = format!("port {port} of `a` is busy: it is held by pid {}", std::process::id());
    assert!(ended.stderr.contains(&said), "{}", ended.stderr);
    assert!(ended.stderr.contains(&format!("which listens on 127.0.0.1:{port}")), "{}", ended.stderr);
}

fn a_range_gives_the_lowest_free_port() {
    // The first is held (in the other family only, where there is one), the second lingers after a connection.
    let port = free_pair();
    let _first =
        TcpListener::bind(("::1", port)).or_else(|_| TcpListener::bind(("127.0.0.1", port))).expect("it is free");
    let second = TcpListener::bind(("127.0.0.1", port + 1)).expect("it is free");
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

fn a_port_taken_at_the_last_moment_is_named_with_its_holder() {
    for port in [json!("auto"), json!(free_port())] {
        let victim = server("wait:@DIR/taken serve:${port:self} forever");
        let victim = with(with(victim, "port", port), "depends_on", json!(["gate"]));
        let running = Job::start(&json!({
            "services": {"gate": {"type": "task", "command": child("wait:@DIR/go")}},
            "servers": {"victim": victim},
        }));
        let port = port_of(&running, "victim");
        // Nobody can have it until the victim is spawned.
        let [up, taken] = ["up", "taken"].map(|name| running.path(name));
        let listens = format!("listen:any4:{port}:200:patient append:{}:x", taken.display());
        let mut stranger = stranger(&format!("append:{}:x {listens} forever", up.display()));
        wait_until_it_is_older(&stranger, &up);
        assert_eq!(listener("any4", u16::try_from(port).expect("a port"), &[]).err(), Some(Errno::EADDRINUSE));
        assert!(!taken.exists());
        std::fs::write(running.path("go"), "").expect("a scratch file");
        let ended = running.end();
        assert_eq!((ended.code, ended.class()), (Some(125), "start_failed"), "{}", ended.stderr);
        assert_eq!(
            ended.the("process_exited", "victim")["last_lines"][0],
            json!(format!("cannot bind {port}: Address already in use (os error 98)"))
        );
        let named = format!("its port {port} is held by pid {} (`", stranger.pid());
        let text = ended.the("process_exited", "victim")["explanation"]["text"].as_str().unwrap_or_default();
        assert!(text.contains(&named), "{text}");
        assert!(ended.stderr.contains(&named), "{}", ended.stderr);
        assert!(stranger.status().is_none());
    }
}

fn a_holder_at_each_address_is_in_the_way_or_named() {
    let v4: [(&str, bool); 3] = [("own4", true), ("any4", true), ("other4", false)];
    let v6: [(&str, bool); 4] = [("dual", true), ("mapped", true), ("own6", false), ("any6", false)];
    let places = v4.into_iter().chain(v6.into_iter().filter(|_| has_ipv6()));
    for (place, in_the_way) in places {
        let held = listener(place, 0, &[]).expect("a free port");
        let at = held.local_addr().expect("it is bound");
        let port = at.port();
        let named = format!("pid {} (`", std::process::id());
        let shown = format!("which listens on {at}");
        let fixed = with(server("serve:${port:self} forever"), "port", port);
        let ended = job(&json!({"servers": {"a": fixed}, "driver": driver("exit:0")}));
        let text = if in_the_way {
            assert_eq!((ended.code, ended.class()), (Some(125), "gymrun_failed"), "{place}: {}", ended.stderr);
            assert!(ended.all("process_started").is_empty());
            ended.stderr.clone()
        } else {
            assert_eq!(ended.code, Some(0), "{place}: {}", ended.stderr);
            let warnings = ended.warnings();
            assert_eq!((warnings.len(), &warnings[0]["process"]), (1, &json!("a")), "{place}: {warnings:?}");
            let text = warnings[0]["message"].as_str().unwrap_or_default().to_owned();
            assert_eq!(text.contains("by the name `localhost`"), place.ends_with('6'), "{place}: {text}");
            text
        };
        assert!(text.contains(&named) && text.contains(&shown), "{place}: {text}");
        // A range passes over it, wherever the holder is.
        let range = with(server("serve:${port:self} forever"), "port", format!("{port}-{}", port.saturating_add(20)));
        let ended = job(&json!({"servers": {"a": range}, "driver": driver("exit:0")}));
        assert_eq!(ended.code, Some(0), "{place}: {}", ended.stderr);
        assert!(ended.all("ports_chosen")[0]["ports"]["a"].as_u64() > Some(port.into()), "{place}");
        assert!(ended.warnings().is_empty());
    }
    if has_ipv6() {
        // Looked for elsewhere, a server has others in its way.
        for (place, code) in [("own4", 0), ("own6", 125), ("any6", 125)] {
            let held = listener(place, 0, &[]).expect("a free port");
            let port = held.local_addr().expect("it is bound").port();
            let server = json!({
                "command": child("listen:own6:${port:self} forever"),
                "port": port,
                "health_check": {"host": "::1", "timeout_seconds": 120},
            });
            let ended = job(&json!({"servers": {"a": server}, "driver": driver("exit:0")}));
            assert_eq!(ended.code, Some(code), "{place}: {}", ended.stderr);
        }
    }
}

/// A connection to a listener, both ends.
fn connection(listener: &TcpListener) -> (TcpStream, TcpStream) {
    let client = TcpStream::connect(listener.local_addr().expect("it is bound")).expect("loopback");
    (client, listener.accept().expect("somebody has connected").0)
}

fn connections_that_linger_are_in_nobodys_way() {
    let run = |port: u16| {
        let fixed = with(server("serve:${port:self} forever"), "port", port);
        job(&json!({"servers": {"a": fixed}, "driver": driver("exit:0")}))
    };
    let bound = |options: &[&str]| {
        let listener = listener("own4", 0, options).expect("a free port");
        let port = listener.local_addr().expect("it is bound").port();
        (listener, port)
    };
    // The server closed first: TIME_WAIT on its port.
    let (former, port) = bound(&[]);
    let (mut client, mut end) = connection(&former);
    end.write_all(b"x").expect("an open connection");
    drop(end);
    client.read_to_end(&mut Vec::new()).expect("an open connection");
    drop((client, former));
    let ended = run(port);
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    // A worker of a former server has a connection still open.
    let (former, port) = bound(&[]);
    let open = connection(&former);
    drop(former);
    let ended = run(port);
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    drop(open);
    // So it has, and its server did not let others have its port meanwhile: no server could listen.
    let (former, port) = bound(&["bare"]);
    let open = connection(&former);
    drop(former);
    let ended = run(port);
    assert_eq!((ended.code, ended.class()), (Some(125), "gymrun_failed"));
    assert!(ended.stderr.contains("by connections that are still open"), "{}", ended.stderr);
    drop(open);
}

fn a_port_reserved_by_another_gymrun_is_named() {
    // Not a listener yet, and none for as long as the other one runs.
    let port = free_port();
    let slow = with(json!({"command": child("append:@DIR/up:x forever")}), "port", port);
    let description = json!({"servers": {"a": slow}, "driver": driver("wait:@DIR/seen")});
    let holder = Job::start(&description);
    holder.wait_for("up");
    let elsewhere = [
        "sh",
        "-c",
        "exec unshare --mount sh -c 'mount -t tmpfs none /var/tmp && exec \"$0\" run \"$1\"' \"$0\" \"$1\"",
    ];
    let root = nix::unistd::geteuid().is_root();
    if !root {
        skip("root", "only root can be another user, or in another container");
    }
    for who in 0..if root { 3 } else { 1 } {
        let second = match who {
            0 => Job::start(&description),
            1 => Job::start_with(&description, |command| {
                let dir = command.get_args().last().expect("the job's directory").to_owned();
                std::os::unix::fs::chown(dir, Some(65534), Some(65534)).expect("root may");
                command.uid(65534).gid(65534);
            }),
            _ => Job::start_by(&description, &elsewhere),
        };
        let ended = second.end();
        assert_eq!((ended.code, ended.class()), (Some(125), "gymrun_failed"), "{who}: {}", ended.stderr);
        let said = format!("port {port} of `a` is busy: it is held by pid {} (`", holder.pid());
        assert!(ended.stderr.contains(&said) && ended.stderr.contains("which has reserved it"), "{}", ended.stderr);
    }
    std::fs::write(holder.path("seen"), "").expect("a scratch file");
    assert_eq!(holder.end().code, Some(0));
    // Given back at once.
    let again = Job::start(&description);
    std::fs::write(again.path("seen"), "").expect("a scratch file");
    assert_eq!(again.end().code, Some(0));
}

fn twenty_jobs_side_by_side_never_share_a_port() {
    const JOBS: u32 = 20;
    const EACH: usize = 4;
    // In a range of 160 most choices collide at first. As from an ssh session and from a job's step, the runtime
    // directories differ.
    let servers: serde_json::Map<String, Value> =
        (0..EACH).map(|n| (format!("s{n}"), server("serve:${port:self} forever"))).collect();
    let description = json!({"auto_ports": [30_000, 30_159], "servers": servers, "driver": driver("wait:@DIR/seen")});
    let runtime = tempfile::tempdir().expect("a scratch directory");
    let start = |n: u32| {
        let directory = runtime.path().join(n.to_string());
        std::fs::create_dir(&directory).expect("a scratch directory");
        Job::start_with(&description, |command| {
            command.env("XDG_RUNTIME_DIR", directory);
        })
    };
    let jobs: Vec<Job> = (0..JOBS).map(start).collect();
    let mut ports = Vec::new();
    for running in &jobs {
        running.wait_for_event("process_started", "driver");
        for event in running.events().iter().filter(|e| e["event"] == "ports_chosen") {
            ports.extend(event["ports"].as_object().into_iter().flatten().filter_map(|(_, port)| port.as_u64()));
        }
    }
    assert_eq!(ports.len(), JOBS as usize * EACH);
    ports.sort_unstable();
    ports.dedup();
    assert_eq!(ports.len(), JOBS as usize * EACH, "two have the same");
    for running in &jobs {
        std::fs::write(running.path("seen"), "").expect("a scratch file");
    }
    for running in jobs {
        let ended = running.end();
        assert_eq!(ended.code, Some(0), "{}", ended.stderr);
        assert!(ended.warnings().is_empty());
    }
}

#[expect(unsafe_code, reason = "a limit is set between fork and exec")]
fn too_few_descriptors_are_not_called_busy_ports() {
    let servers: serde_json::Map<String, Value> =
        (0..60).map(|n| (format!("s{n}"), server("serve:${port:self} forever"))).collect();
    let ended = Job::start_with(&json!({"servers": servers}), |command| {
        let limit = || Ok(nix::sys::resource::setrlimit(nix::sys::resource::Resource::RLIMIT_NOFILE, 64, 64)?);
        // SAFETY: one system call on plain values.
        unsafe { command.pre_exec(limit) };
    })
    .end();
    assert_eq!((ended.code, ended.class()), (Some(125), "gymrun_failed"), "{}", ended.stderr);
    assert!(ended.stderr.contains("cannot be reserved: Too many open files"), "{}", ended.stderr);
    assert!(ended.all("process_started").is_empty());
}
