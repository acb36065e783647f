//! CPU time: that of trees, as the events tell it, and that of gymrun's own samples.

use serde_json::{Value, json};

use crate::cases::Case;
use crate::harness::eventually;
use crate::job::Job;
use crate::jobs::{driver, server, with};
use crate::memory::trees;

pub const CASES: &[Case] = &[
    ("cpu_time_is_neither_lost_nor_counted_twice", cpu_time_is_neither_lost_nor_counted_twice),
    ("cpu_time_is_whole_up_to_the_end_of_a_process", cpu_time_is_whole_up_to_the_end_of_a_process),
    ("a_sample_of_many_processes_is_cheap", a_sample_of_many_processes_is_cheap),
];

fn cpu_time_is_neither_lost_nor_counted_twice() {
    let job = json!({
        "servers": {
            "waits": server("serve:${port:self} wait:@DIR/go run { run { burn:0.6 } burn:0.4 } append:@DIR/done:x forever"),
            "ignores": server("ignore:CHLD serve:${port:self} wait:@DIR/go fork { burn:1 append:@DIR/done:x wait:@DIR/read } forever"),
            "daemons": server("serve:${port:self} wait:@DIR/go daemon { burn:1 append:@DIR/done:x wait:@DIR/read } forever"),
        },
        "interval_seconds": 0.05,
        "driver": driver("wait:@DIR/seen"),
    });
    let running = Job::start(&job);
    let cpu = |name: &str| trees(&running.events(), name).last().and_then(|t| t["cpu_seconds"].as_f64()).unwrap_or(0.0);
    eventually("a first sample", || {
        (cpu("waits") >= 0.0 && !trees(&running.events(), "waits").is_empty()).then_some(())
    });
    let before = ["waits", "ignores", "daemons"].map(cpu);
    std::fs::write(running.path("go"), "").expect("a scratch file");
    let processes = |name: &str| trees(&running.events(), name).last().map(|tree| tree["processes"].clone());
    eventually("all have burnt", || {
        (std::fs::read_to_string(running.path("done")).unwrap_or_default().lines().count() == 3).then_some(())
    });
    // Those for whom nobody waits are looked at once more before they end.
    let looks = trees(&running.events(), "daemons").len();
    eventually("another look", || (trees(&running.events(), "daemons").len() > looks + 1).then_some(()));
    std::fs::write(running.path("read"), "").expect("a scratch file");
    eventually("all have ended", || {
        (["waits", "ignores", "daemons"].iter().all(|name| processes(name) == Some(json!(1)))).then_some(())
    });
    let after = ["waits", "ignores", "daemons"].map(cpu);
    std::fs::write(running.path("seen"), "").expect("a scratch file");
    let ended = running.end();
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    for (name, (before, after)) in ["waits", "ignores", "daemons"].into_iter().zip(before.into_iter().zip(after)) {
        // Twice would be 2.
        assert!((0.98..1.7).contains(&(after - before)), "{name}: {before} to {after}");
        let told: Vec<f64> = trees(&ended.events, name).iter().filter_map(|t| t["cpu_seconds"].as_f64()).collect();
        assert!(told.is_sorted(), "{name}: {told:?}");
    }
}

fn cpu_time_is_whole_up_to_the_end_of_a_process() {
    // One sample at the beginning and one at the end: between them all happens.
    let burns = "run { burn:0.3 } burn:0.3";
    let running = Job::start(&json!({
        "interval_seconds": 3600,
        "servers": {
            "ends": with(server(&format!("serve:${{port:self}} wait:@DIR/go {burns} exit:0")), "on_exit", "ignore"),
            "killed": with(server(&format!("serve:${{port:self}} wait:@DIR/go {burns} raise:KILL")), "on_exit", "ignore"),
            "again": with(
                server(&format!("once:@DIR/first {{ serve:${{port:self}} wait:@DIR/go {burns} exit:1 }} serve:${{port:self}} burn:0.2 forever")),
                "on_exit",
                "restart",
            ),
            // What it leaves is the tree's for as long as it lives.
            "leaves": with(server(&format!("daemon {{ forever }} serve:${{port:self}} wait:@DIR/go {burns} exit:0")), "on_exit", "ignore"),
        },
        "driver": driver("wait:@DIR/end"),
    }));
    eventually("a first sample", || (trees(&running.events(), "ends").len() == 1).then_some(()));
    std::fs::write(running.path("go"), "").expect("a scratch file");
    eventually("all have ended", || {
        let events = running.events();
        let count = |kind: &str| events.iter().filter(|event| event["event"] == kind).count();
        (count("process_exited") == 4 && count("process_ready") == 6).then_some(())
    });
    std::fs::write(running.path("end"), "").expect("a scratch file");
    let ended = running.end();
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    let last = ended.all("memory_sampled").pop().expect("a sample").clone();
    let told = |name: &str| {
        let trees = last["trees"].as_array().expect("a list").iter().filter(|tree| tree["process"] == name);
        trees
            .map(|tree| (tree["processes"].as_u64(), tree["cpu_seconds"].as_f64().expect("seconds")))
            .collect::<Vec<_>>()
    };
    let whole = |seconds: f64| (0.58..1.2).contains(&seconds);
    for (name, processes) in [("ends", 0), ("killed", 0), ("leaves", 1)] {
        let [(found, seconds)] = told(name)[..] else { panic!("{name}: {last}") };
        assert!(found == Some(processes) && whole(seconds), "{name}: {last}");
    }
    // The former life first, then the one that runs.
    let [former, now] = told("again")[..] else { panic!("{last}") };
    assert!(former.0 == Some(0) && whole(former.1) && now.0 == Some(1) && now.1 < 0.58, "{last}");
}

/// Nine servers of thirty processes each, and nothing else to do for gymrun: what it takes is what its samples cost.
fn a_sample_of_many_processes_is_cheap() {
    let servers: serde_json::Map<String, Value> = (0..9)
        .map(|number| {
            let forks = "fork { forever } ".repeat(29);
            (format!("s{number}"), server(&format!("{forks} serve:${{port:self}} forever")))
        })
        .collect();
    // The proportions of the default schedule: each fifth sample is an exact one.
    let running = Job::start(&json!({
        "pss": true, "interval_seconds": 1, "pss_interval_seconds": 5, "pss_rss_change": 0.0,
        "servers": servers, "driver": driver("wait:@DIR/seen"),
    }));
    let samples = || {
        let events = running.events();
        let samples = events.iter().filter(|event| event["event"] == "memory_sampled");
        samples.filter(|s| s["trees"].as_array().is_some_and(|t| t.iter().all(|t| t["processes"] == 30))).count()
    };
    let after = |count: usize| eventually("more samples", || Some(samples()).filter(|now| *now >= count));
    let first = after(1);
    let before = cpu_of(running.pid());
    let last = after(first + 10);
    let taken = cpu_of(running.pid()) - before;
    std::fs::write(running.path("seen"), "").expect("a scratch file");
    assert_eq!(running.end().code, Some(0));
    let each = taken / (last - first) as f64;
    // One sample a second: this is 5 % of one core.
    assert!(each < 0.05, "{each} s of CPU time a sample");
}

/// The CPU time of a process without that of its children, in seconds.
fn cpu_of(pid: u32) -> f64 {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).expect("it runs");
    let rest = stat.rsplit_once(") ").expect("a name in parentheses").1;
    let ticks = rest.split(' ').skip(11).take(2).map(|field| field.parse::<f64>().expect("a number")).sum::<f64>();
    let each = nix::unistd::sysconf(nix::unistd::SysconfVar::CLK_TCK).expect("it is known").expect("it is set");
    ticks / each as f64
}
