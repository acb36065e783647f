//! The `file` exporter's forms, the `debug` exporter's words, `nop` and `forward`, as processes.

use std::collections::BTreeMap;

use jiff::civil::DateTime;
use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};

use crate::harness::{Collector, skip};
use crate::{config, log, point, span_count, spans};

/// Pipelines of all signals with these exporters.
fn to(exporters: &str, ids: &str) -> String {
    config("  memory_limiter: {check_interval: 1s, limit_mib: 4000}", "memory_limiter", exporters, ids)
}

fn names(collector: &Collector, folder: &str) -> Vec<String> {
    let entries = std::fs::read_dir(collector.path(folder)).expect("a folder");
    let mut names: Vec<String> =
        entries.map(|entry| entry.expect("an entry").file_name().to_string_lossy().into_owned()).collect();
    names.sort();
    names
}

#[tokio::test]
async fn a_file_for_each_value_of_an_attribute_and_more_values_than_may_be_open() {
    let exporter = "  file/by: {path: $OUT/by/*/x.jsonl, create_directory: true, \
                    group_by: {enabled: true, resource_attribute: service.name, max_open_files: 2}}";
    let mut collector = Collector::start(&to(exporter, "file/by"), &[]).await;
    let of = |name: Value| {
        let mut request = spans(2);
        request["resourceSpans"][0]["resource"]["attributes"][0]["value"] = name;
        request
    };
    for round in 0..3 {
        for name in ["a", "b", "c", "../../../evil"] {
            let answer = collector.post("/v1/traces", &of(json!({"stringValue": name}))).await;
            assert_eq!(answer.0, 200, "{round} {name}: {}", answer.1);
        }
    }
    // What has no text there belongs to no file.
    assert_eq!(collector.post("/v1/traces", &of(json!({"intValue": "7"}))).await.0, 200);
    assert_eq!(collector.stop().await, 0);
    assert_eq!(names(&collector, "by"), ["a", "b", "c", "evil"]);
    for name in ["a", "b", "c", "evil"] {
        let lines = collector.lines(&format!("by/{name}/x.jsonl"));
        assert_eq!((lines.len(), span_count(&lines)), (3, 6), "{name}");
    }
    let traces = &collector.delivery()["traces"];
    assert_eq!((&traces["written"], &traces["dropped"]), (&json!(24), &json!({"no_group": 2})));
}

/// As a rule without files says it, and by a name that the machine must know.
#[tokio::test]
async fn local_time_is_that_of_tz() {
    for name in ["EST5", "America/New_York"] {
        let zone = if name == "EST5" { TimeZone::posix(name) } else { TimeZone::get(name) };
        let Ok(zone) = zone else {
            skip("zoneinfo", "no time zones in /usr/share/zoneinfo");
            continue;
        };
        let exporter =
            "  file/r: {path: $OUT/r/x.jsonl, create_directory: true, rotation: {max_megabytes: 1, localtime: true}}";
        let begin = Timestamp::now() - SignedDuration::from_secs(1);
        let mut collector = Collector::start(&to(exporter, "file/r"), &[("TZ", name)]).await;
        let health = reqwest::get(format!("http://127.0.0.1:{}/", collector.health)).await.expect("answers");
        let health: Value = serde_json::from_str(&health.text().await.expect("a body")).expect("JSON");
        let offset = begin.to_zoned(zone.clone()).strftime("%:z").to_string();
        assert!(health["upSince"].as_str().is_some_and(|since| since.ends_with(&offset)), "{name}: {health}");
        // About 400 kB each.
        for _ in 0..3 {
            assert_eq!(collector.post("/v1/traces", &spans(2500)).await.0, 200);
        }
        assert_eq!(collector.stop().await, 0);
        let names = names(&collector, "r");
        let text = names.iter().find_map(|name| name.strip_prefix("x-")?.strip_suffix("-size.jsonl"));
        let time = DateTime::strptime("%Y-%m-%dT%H-%M-%S%.f", text.expect("an old file")).expect("a time");
        let time = time.to_zoned(zone).expect("there is such a time").timestamp();
        assert!(time >= begin && time <= Timestamp::now() + SignedDuration::from_secs(1), "{name}: {names:?}");
    }
}

#[tokio::test]
async fn a_file_that_grows_is_put_aside_and_only_so_many_are_kept() {
    let exporter =
        "  file/r: {path: $OUT/r/x.jsonl, create_directory: true, rotation: {max_megabytes: 1, max_backups: 2}}";
    let mut collector = Collector::start(&to(exporter, "file/r"), &[]).await;
    // About 400 kB each.
    for _ in 0..12 {
        assert_eq!(collector.post("/v1/traces", &spans(2500)).await.0, 200);
    }
    assert_eq!(collector.stop().await, 0);
    let names = names(&collector, "r");
    assert_eq!(names.len(), 3, "{names:?}");
    assert_eq!(names[2], "x.jsonl");
    let mut lines = 0;
    for name in &names {
        let path = format!("r/{name}");
        assert!(collector.path(&path).metadata().expect("is there").len() <= 1 << 20, "{name}");
        lines += collector.lines(&path).len();
    }
    assert!((4..12).contains(&lines), "{lines} lines are kept");
}

/// Frames: four bytes of length, big endian, then the message; packed each for itself.
#[tokio::test]
async fn protobuf_and_zstd_frames_hold_the_same_messages_as_the_lines() {
    let exporters = "  file/proto: {path: $OUT/x.pb, format: proto}\n\
                     \x20 file/zstd: {path: $OUT/x.zst, compression: zstd, compression_params: {level: 3}}\n\
                     \x20 file/both: {path: $OUT/x.pb.zst, format: proto, compression: zstd}";
    let mut collector = Collector::start(&to(exporters, "file, file/proto, file/zstd, file/both"), &[]).await;
    for count in [1, 3] {
        assert_eq!(collector.post("/v1/traces", &spans(count)).await.0, 200);
    }
    assert_eq!(collector.stop().await, 0);
    let lines = collector.lines("x.jsonl");
    let frames = |name: &str| {
        let bytes = std::fs::read(collector.path(name)).expect("reads");
        let (mut rest, mut frames) = (bytes.as_slice(), Vec::new());
        while let Some((length, after)) = rest.split_first_chunk::<4>() {
            let (frame, after) = after.split_at(u32::from_be_bytes(*length) as usize);
            frames.push(frame.to_vec());
            rest = after;
        }
        assert!(rest.is_empty());
        frames
    };
    let unpacked = |frame: &Vec<u8>| zstd::bulk::decompress(frame, 1 << 20).expect("zstd");
    let json_of = |bytes: &Vec<u8>| serde_json::from_slice::<Value>(bytes).expect("JSON");
    let of_proto = |bytes: &Vec<u8>| {
        let payload = gymrun::otlp::Payload::decode(gymrun::otlp::Signal::Traces, bytes.clone()).expect("OTLP");
        let mut text = Vec::new();
        payload.write_json(&mut text);
        json_of(&text)
    };
    assert_eq!(frames("x.pb").iter().map(of_proto).collect::<Vec<_>>(), lines);
    assert_eq!(frames("x.zst").iter().map(|frame| json_of(&unpacked(frame))).collect::<Vec<_>>(), lines);
    assert_eq!(frames("x.pb.zst").iter().map(|frame| of_proto(&unpacked(frame))).collect::<Vec<_>>(), lines);
}

#[tokio::test]
async fn debug_says_as_much_as_it_is_told_and_samples_what_comes_often() {
    let exporters = "  debug/basic: {}\n  debug/normal: {verbosity: Normal}\n  debug/detailed: {verbosity: detailed}\n\
                     \x20 debug/few: {sampling_initial: 1, sampling_thereafter: 0}\n  nop: {}";
    let ids = "debug/basic, debug/normal, debug/detailed, debug/few, nop";
    let mut collector = Collector::start(&to(exporters, ids), &[]).await;
    for (path, request) in [("/v1/traces", spans(2)), ("/v1/metrics", point()), ("/v1/logs", log())] {
        assert_eq!(collector.post(path, &request).await.0, 200);
    }
    assert_eq!(collector.stop().await, 0);
    let stderr = collector.stderr();
    let mut by_name: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for line in stderr.lines() {
        if let Some((name, text)) = line.split_once(" info exporters/").and_then(|(_, rest)| rest.split_once(": ")) {
            by_name.entry(name).or_default().push(text);
        }
    }
    let counts = [
        "traces: 1 resource, 2 spans",
        "metrics: 1 resource, 1 metric, 1 data point",
        "logs: 1 resource, 1 log record",
    ];
    assert_eq!(by_name["debug/basic"], counts);
    for words in ["resource service.name=shop", "scope lib ", "gauge a:b timeUnixNano=", "log  hello"] {
        assert!(by_name["debug/normal"].iter().any(|line| line.contains(words)), "{words}: {stderr}");
    }
    assert!(by_name["debug/detailed"].iter().any(|line| line.starts_with("{\"resourceSpans\":")), "{stderr}");
    // One for each second: the three requests may lie in two of them, or more on a slow machine.
    let few = by_name["debug/few"].len();
    assert!((1..=3).contains(&few), "{stderr}");
    assert!(!by_name.contains_key("nop"));
    let delivery = collector.delivery();
    assert_eq!((&delivery["traces"]["received"], &delivery["traces"]["dropped"]), (&json!(2), &json!({})));
}
