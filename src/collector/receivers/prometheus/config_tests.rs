//! Tests of the receiver's section.

use std::cell::RefCell;

use super::{Section, TargetSettings, configure, global, job_targets};
use crate::collector::node::{Entry, Node, Value};
use crate::collector::section::Findings;

/// A map as the configuration has it, from JSON; every value stands at line 7.
fn node(json: &serde_json::Value) -> Node {
    let value = match json {
        serde_json::Value::Null => Value::Null,
        serde_json::Value::Bool(value) => Value::Boolean(*value),
        serde_json::Value::Number(value) => Value::Integer(value.as_i64().unwrap_or_default()),
        serde_json::Value::String(text) => Value::Text(text.clone()),
        serde_json::Value::Array(items) => Value::List(items.iter().map(node).collect()),
        serde_json::Value::Object(map) => {
            let entry =
                |(key, value): (&String, &serde_json::Value)| Entry { key: key.clone(), line: 7, node: node(value) };
            Value::Map(map.iter().map(entry).collect())
        }
    };
    let mut node = Node::new(7, value);
    if let serde_json::Value::Number(number) = json {
        node.text = Some(number.to_string());
    }
    node
}

fn read(config: &serde_json::Value) -> (Vec<TargetSettings>, Vec<String>) {
    let findings = Findings::new("c.yaml");
    let targets = RefCell::new(Vec::new());
    let whole = serde_json::json!({ "config": config });
    Section::read(&findings, &node(&whole), "receivers.prometheus", 1, configure);
    // The targets themselves, read again: the receiver keeps them to itself.
    let ignored = Findings::new("c.yaml");
    Section::read(&ignored, &node(config), "config", 1, |section| {
        let global = section.section("global", global).unwrap_or_default();
        let mut names = Vec::new();
        let jobs = section.sections("scrape_configs", |job| job_targets(job, &global, &mut names));
        targets.borrow_mut().extend(jobs.unwrap_or_default().into_iter().flatten());
    });
    let problems =
        findings.problems.borrow().iter().map(|p| format!("{} {}: {}", p.location, p.path, p.message)).collect();
    (targets.into_inner(), problems)
}

fn header<'a>(target: &'a TargetSettings, name: &str) -> Vec<&'a str> {
    target.headers.get_all(name).iter().filter_map(|value| value.to_str().ok()).collect()
}

#[test]
fn defaults_are_those_of_prometheus() {
    let (targets, problems) = read(&serde_json::json!({
        "scrape_configs": [{ "job_name": "node", "static_configs": [{ "targets": ["localhost:9100"] }] }]
    }));
    assert!(problems.is_empty(), "{problems:?}");
    let target = &targets[0];
    assert_eq!(target.url.as_str(), "http://localhost:9100/metrics");
    assert_eq!((target.interval.as_secs(), target.timeout.as_secs()), (60, 10));
    assert_eq!(header(target, "accept-encoding"), ["gzip"]);
    assert_eq!(header(target, "x-prometheus-scrape-timeout-seconds"), ["10"]);
    assert_eq!(
        header(target, "accept"),
        [
            "application/openmetrics-text;version=1.0.0;escaping=allow-utf-8;q=0.6,application/openmetrics-text;version=0.0.1;\
          q=0.5,text/plain;version=1.0.0;escaping=allow-utf-8;q=0.4,text/plain;version=0.0.4;q=0.3,*/*;q=0.2"
        ]
    );
    let rules = &target.rules;
    assert_eq!((rules.target.get("job"), rules.target.get("instance")), ("node", "localhost:9100"));
    assert!(rules.honor_timestamps && !rules.honor_labels && target.follow_redirects);
}

#[test]
fn what_can_be_set() {
    let (targets, problems) = read(&serde_json::json!({
        "global": { "scrape_interval": "1m30s", "scrape_timeout": "5s", "external_labels": { "cluster": "c1" } },
        "scrape_configs": [{
            "job_name": "a", "scrape_interval": "1s", "metrics_path": "/m x", "scheme": "https", "honor_labels": true,
            "params": { "z": ["1"], "match[]": ["a b", "c&d"] }, "enable_compression": false,
            "scrape_protocols": ["PrometheusText0.0.4"], "authorization": { "credentials": "t" },
            "http_headers": { "X-Extra": { "values": ["one", "two"] } },
            "static_configs": [{ "targets": ["h:1", "[::1]:2"], "labels": { "team": "rl", "rank": 5, "empty": "" } }]
        }, { "job_name": "b", "basic_auth": { "username": "u", "password": "p" }, "static_configs": [{ "targets": ["h:1"] }] }]
    }));
    assert!(problems.is_empty(), "{problems:?}");
    let [first, second, third] = targets.as_slice() else { panic!("{targets:?}") };
    assert_eq!(first.url.as_str(), "https://h:1/m%20x?match%5B%5D=a+b&match%5B%5D=c%26d&z=1");
    assert_eq!((first.interval.as_millis(), first.timeout.as_millis()), (1000, 1000));
    assert_eq!(header(first, "accept"), ["text/plain;version=0.0.4;q=0.6,*/*;q=0.5"]);
    assert_eq!(header(first, "authorization"), ["Bearer t"]);
    assert_eq!(header(first, "x-extra"), ["one", "two"]);
    assert_eq!(header(first, "accept-encoding"), ["identity"]);
    assert_eq!((first.rules.target.get("rank"), first.rules.target.get("team")), ("5", "rl"));
    assert!(!first.rules.target.has("empty"));
    assert_eq!(first.rules.external, [("cluster".to_owned(), "c1".to_owned())]);
    assert_eq!(second.rules.target.get("instance"), "[::1]:2");
    assert_eq!((third.interval.as_secs(), third.timeout.as_secs()), (90, 5));
    assert_eq!(header(third, "authorization"), ["Basic dTpw"]);
}

#[test]
fn every_problem_is_found_at_its_line() {
    let (_, problems) = read(&serde_json::json!({
        "globl": {}, "remote_write": [],
        "scrape_configs": [
            { "job_name": "a", "scrape_interval": "15", "relabel_configs": [], "static_configs": [{ "targets": ["http://h:1"] }] },
            { "job_name": "a", "scrape_interval": "5s", "scrape_timeout": "6s", "scheme": "ftp", "nope": 1 },
            { "scrape_interval": "5s", "basic_auth": {}, "authorization": { "credentials": "a\nb" } }
        ]
    }));
    let expected = [
        "scrape_configs[0].scrape_interval: `scrape_interval` is no duration: it has no unit: `15`",
        "scrape_configs[0].static_configs: `http://h:1` is no address of a target: it is more than host and port",
        "scrape_configs[0].relabel_configs: `relabel_configs` is not supported by this collector",
        "scrape_configs[1].job_name: two jobs are named `a`",
        "scrape_configs[1].scrape_timeout: the scrape timeout 6s is longer than the scrape interval 5s",
        "scrape_configs[1].scheme: `ftp` is not a value of `scheme`",
        "scrape_configs[1].nope: unknown key `nope`",
        "scrape_configs[2]: `job_name` is missing",
        "scrape_configs[2].authorization: `basic_auth` and `authorization` exclude each other",
        "globl: unknown key `globl`",
        "remote_write: `remote_write` is not supported by this collector",
    ];
    let expected: Vec<String> =
        expected.iter().map(|line| format!("c.yaml:7 receivers.prometheus.config.{line}")).collect();
    assert_eq!(problems, expected);
}
