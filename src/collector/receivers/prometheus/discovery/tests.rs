//! Tests of targets: labels, addresses, URLs.

use std::time::Duration;

use super::Job;
use crate::collector::receivers::prometheus::relabel::{Action, Names, Pattern, Rule};

fn job() -> Job {
    Job {
        name: "j".into(),
        scheme: "http".into(),
        path: "/metrics".into(),
        parameters: vec![("m".into(), vec!["a b".into(), "*~".into()])],
        interval: Duration::from_secs(90),
        timeout: Duration::from_secs(10),
        relabel: Vec::new(),
    }
}

fn replace(source: &str, regex: &str, target: &str, replacement: &str) -> Rule {
    let pattern = Pattern::new(regex).expect(regex);
    let action = Action::Replace { pattern, target: target.into(), replacement: replacement.into() };
    let sources = if source.is_empty() { Vec::new() } else { vec![source.to_owned()] };
    Rule { sources, separator: ";".into(), action, names: Names::Utf8 }
}

fn own(list: &[(&str, &str)]) -> Vec<(String, String)> {
    list.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
}

#[test]
fn a_target_has_the_labels_of_its_job_and_its_own() {
    let labels = own(&[("team", "rl"), ("empty", ""), ("__meta_x", "1"), ("__address__", "ignored:1")]);
    let found = job().target("h:1", &labels).expect("possible").expect("kept");
    let shown: Vec<_> = found.labels.iter().collect();
    assert_eq!(shown, [("instance", "h:1"), ("job", "j"), ("team", "rl")]);
    assert_eq!(found.url.expect("a URL").as_str(), "http://h:1/metrics?m=a+b&m=%2A~");
    assert_eq!((found.interval.as_secs(), found.timeout.as_secs()), (90, 10));
    assert_eq!(found.scheme, "http");
}

#[test]
fn own_labels_win_over_the_job() {
    let labels = own(&[("job", "mine"), ("instance", "i"), ("__scheme__", "https"), ("__metrics_path__", "a b(c)")]);
    let found = job().target("h:1", &labels).expect("possible").expect("kept");
    assert_eq!((found.labels.get("job"), found.labels.get("instance")), ("mine", "i"));
    assert_eq!(found.scheme, "https");
    assert!(found.url.expect("a URL").as_str().starts_with("https://h:1/a%20b%28c%29?"));
}

#[test]
fn rules_choose_address_path_parameters_and_times() {
    let relabel = vec![
        replace("__meta_rank", "(.*)", "rank", "$1"),
        replace("__address__", "(.*):.*", "instance", "$1"),
        replace("", ".*", "__address__", "other:2"),
        replace("", ".*", "__metrics_path__", "/m"),
        replace("", ".*", "__scheme__", "https"),
        replace("", ".*", "__param_m", "x&y"),
        replace("", ".*", "__param_new", "z"),
        replace("__scrape_interval__", "1m30s", "__scrape_interval__", "5s"),
        replace("", ".*", "__scrape_timeout__", "2s"),
    ];
    let found = Job { relabel, ..job() }.target("h:1", &own(&[("__meta_rank", "7")])).expect("possible").expect("kept");
    let shown: Vec<_> = found.labels.iter().collect();
    assert_eq!(shown, [("instance", "h"), ("job", "j"), ("rank", "7")]);
    assert_eq!(found.url.as_ref().expect("a URL").as_str(), "https://other:2/m?m=x%26y&m=%2A~&new=z");
    assert_eq!((found.interval.as_secs(), found.timeout.as_secs(), found.scheme.as_str()), (5, 2, "http"));
}

#[test]
fn rules_may_make_a_target_impossible() {
    for (target, value, word) in [
        ("__address__", "", "no address"),
        ("__address__", "http://h:1", "http://h:1"),
        ("__scrape_interval__", "0s", "zero"),
        ("__scrape_interval__", "soon", "no duration"),
        ("__scrape_timeout__", "2m", "longer"),
    ] {
        let relabel = vec![replace("", ".*", target, value)];
        let why = Job { relabel, ..job() }.target("h:1", &[]).expect_err(target);
        assert!(why.contains(word), "{why}");
    }
    let relabel = vec![replace("", ".*", "__address__", "not a host")];
    let found = Job { relabel, ..job() }.target("h:1", &[]).expect("possible").expect("kept");
    assert!(found.url.is_err_and(|why| why.contains("not a host")));
}

#[test]
fn equal_targets_are_one() {
    let found =
        |address: &str, labels: &[(&str, &str)]| job().target(address, &own(labels)).expect("possible").expect("kept");
    assert!(found("h:1", &[]).is_same(&found("h:1", &[("job", "j")])));
    assert!(!found("h:1", &[]).is_same(&found("h:2", &[])));
    assert!(!found("h:1", &[]).is_same(&found("h:1", &[("x", "1")])));
    // What is only for the discovery does not tell targets apart.
    assert!(found("h:1", &[("__meta_a", "1")]).is_same(&found("h:1", &[("__meta_a", "2")])));
}
