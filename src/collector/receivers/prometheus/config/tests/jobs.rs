//! What can be set.

use super::{TargetSettings, read, read_job};
use crate::collector::receivers::prometheus::config::receiver::{FACTORY, Whole, targets};
use crate::collector::receivers::prometheus::exposition::Dialect;
use crate::collector::receivers::prometheus::record::Limits;
use crate::collector::testing::read_section;

fn header<'a>(target: &'a TargetSettings, name: &str) -> Vec<&'a str> {
    target.request.headers.get_all(name).iter().filter_map(|value| value.to_str().ok()).collect()
}

fn url(target: &TargetSettings) -> &str {
    target.url.as_ref().expect("a URL").as_str()
}

fn authorization(target: &TargetSettings) -> String {
    let header = target.request.authorization.as_ref().expect("authorized").header().expect("a header");
    header.to_str().expect("text").to_owned()
}

#[test]
fn defaults_are_those_of_prometheus() {
    let targets = read_job("");
    let target = &targets[0];
    assert_eq!(url(target), "http://h:1/metrics");
    assert_eq!((target.interval.as_secs(), target.timeout.as_secs()), (60, 10));
    assert_eq!(header(target, "accept-encoding"), ["gzip"]);
    assert_eq!(
        header(target, "accept"),
        [
            "application/openmetrics-text;version=1.0.0;escaping=allow-utf-8;q=0.6,application/openmetrics-text;version=0.0.1;\
          q=0.5,text/plain;version=1.0.0;escaping=allow-utf-8;q=0.4,text/plain;version=0.0.4;q=0.3,*/*;q=0.2"
        ]
    );
    let rules = &target.rules;
    assert_eq!((rules.target.get("job"), rules.target.get("instance")), ("j", "h:1"));
    assert!(rules.honor_timestamps && !rules.honor_labels && !rules.track_timestamps && rules.extra_report.is_none());
    assert!(target.request.client.follow_redirects && target.request.client.http2);
    assert_eq!(rules.limits, Limits::default());
}

#[test]
fn jobs_have_what_they_say_else_what_global_says() {
    let targets = read(
        "global:\n  scrape_interval: 1m30s\n  scrape_timeout: 5s\n  external_labels: {cluster: c1, n: 007}\n\
         \x20 sample_limit: 5\n  label_limit: 6\n  body_size_limit: 1KB\n  scrape_protocols: [PrometheusText0.0.4]\n\
         \x20 extra_scrape_metrics: true\n\
         scrape_configs:\n\
         - job_name: a\n  scrape_interval: 1s\n  metrics_path: /m x\n  scheme: https\n  honor_labels: true\n\
         \x20 honor_timestamps: false\n  track_timestamps_staleness: true\n  follow_redirects: false\n\
         \x20 params: {z: ['1'], 'match[]': [a b, c&d], empty: []}\n  enable_compression: false\n  enable_http2: false\n\
         \x20 scrape_protocols: [OpenMetricsText1.0.0]\n  metric_name_escaping_scheme: dots\n\
         \x20 fallback_scrape_protocol: OpenMetricsText0.0.1\n  sample_limit: 7\n  extra_scrape_metrics: false\n\
         \x20 static_configs: [{targets: ['h:1', '[::1]:2', 'h:1'], labels: {team: rl, rank: 5, empty: '', nothing: }}]\n\
         - job_name: b\n  static_configs: [{targets: ['h:1']}]\n",
    );
    let [first, second, third] = targets.as_slice() else { panic!("{targets:?}") };
    assert_eq!(url(first), "https://h:1/m%20x?match%5B%5D=a+b&match%5B%5D=c%26d&z=1");
    assert_eq!((first.interval.as_millis(), first.timeout.as_millis()), (1000, 1000));
    assert_eq!(header(first, "accept"), ["application/openmetrics-text;version=1.0.0;escaping=dots;q=0.6,*/*;q=0.5"]);
    assert_eq!(header(first, "accept-encoding"), ["identity"]);
    let rules = &first.rules;
    assert_eq!((rules.target.get("rank"), rules.target.get("team")), ("5", "rl"));
    assert!(!rules.target.has("empty") && !rules.target.has("nothing"));
    assert_eq!(*rules.external, [("cluster".to_owned(), "c1".to_owned()), ("n".to_owned(), "7".to_owned())]);
    assert!(rules.honor_labels && !rules.honor_timestamps && rules.track_timestamps && rules.extra_report.is_none());
    assert_eq!((rules.limits.samples, rules.limits.labels, rules.fallback), (7, 6, Some(Dialect::OpenMetrics)));
    assert!(!first.request.client.follow_redirects && !first.request.client.http2);
    assert_eq!(second.rules.target.get("instance"), "[::1]:2");
    assert_eq!((third.interval.as_secs(), third.timeout.as_secs()), (90, 5));
    assert_eq!((third.rules.limits.samples, third.request.body_limit), (5, Some(1024)));
    assert_eq!(header(third, "accept"), ["text/plain;version=0.0.4;q=0.6,*/*;q=0.5"]);
    assert_eq!(third.rules.extra_report.map(|timeout| timeout.as_secs()), Some(5));
}

#[test]
fn who_asks() {
    let files = tempfile::tempdir().expect("a folder");
    let file = files.path().join("secret");
    std::fs::write(&file, "from file\n").expect("writes");
    let file = file.display();
    for (keys, expected) in [
        ("    authorization: {credentials: t}\n".to_owned(), "Bearer t"),
        ("    authorization: {type: ' Token ', credentials: 5}\n".to_owned(), "Token 5"),
        (format!("    authorization: {{credentials_file: {file}}}\n"), "Bearer from file"),
        ("    authorization: {}\n".to_owned(), "Bearer"),
        ("    bearer_token: t\n".to_owned(), "Bearer t"),
        (format!("    bearer_token_file: {file}\n"), "Bearer from file"),
        ("    basic_auth: {username: u, password: p}\n".to_owned(), "Basic dTpw"),
        (format!("    basic_auth: {{username: u, password_file: {file}}}\n"), "Basic dTpmcm9tIGZpbGU="),
        (format!("    basic_auth: {{username_file: {file}}}\n"), "Basic ZnJvbSBmaWxlOg=="),
    ] {
        assert_eq!(authorization(&read_job(&keys)[0]), expected, "{keys}");
    }
    let keys = format!("    http_headers: {{X-A: {{values: [one, 2], secrets: [three], files: [{file}]}}}}\n");
    let targets = read_job(&keys);
    let own: Vec<_> =
        targets[0].request.own_headers.iter().map(|(name, value)| (name.as_str(), value.read())).collect();
    let expected = ["one", "2", "three", "from file"].map(|value| ("x-a", Ok(value.to_owned())));
    assert_eq!(own, expected);
    assert!(!format!("{targets:?}").contains("three"));
}

#[test]
fn certificates() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data/collector/tls");
    let targets = read_job(&format!(
        "    scheme: https\n    tls_config: {{ca_file: {folder}/cert.pem, cert_file: {folder}/cert.pem, \
         key_file: {folder}/key.pem, server_name: other, min_version: TLS12, insecure_skip_verify: false}}\n"
    ));
    let client = &targets[0].request.client;
    assert_eq!((client.named_host.as_deref(), client.tls.server_name.as_deref()), (Some("h"), Some("other")));
    assert!(client.tls.identity.is_some() && client.tls.authority.is_some() && !client.tls.skip_verify);
}

#[test]
fn rules_make_and_drop_targets() {
    let targets = read(
        "scrape_configs:\n- job_name: j\n  target_limit: 1\n\
         \x20 static_configs: [{targets: ['a:1', 'b:2', 'http://c'], labels: {__meta_rank: 3}}, {targets: [x]}]\n\
         \x20 relabel_configs:\n\
         \x20 - {source_labels: [__address__], regex: 'b.*', action: DROP}\n\
         \x20 - {source_labels: [__address__], regex: 'http://(.*)', target_label: __address__, replacement: '$$1:3'}\n\
         \x20 - {source_labels: [__meta_rank], target_label: rank}\n\
         \x20 metric_relabel_configs:\n  - {regex: x, action: labeldrop}\n",
    );
    let shown: Vec<_> = targets.iter().map(|target| (url(target), target.rules.target.get("rank"))).collect();
    assert_eq!(shown, [("http://a:1/metrics", "3"), ("http://c:3/metrics", "3"), ("http://x/metrics", "")]);
    assert_eq!(targets[0].rules.relabel.len(), 1);
    let failure = "the job has 3 targets, `target_limit` allows 1";
    assert!(targets.iter().all(|target| target.forced_failure.as_deref() == Some(failure)));
}

#[test]
fn the_receiver_adds_keys_of_its_own() {
    let whole = Whole { trim_suffixes: true, scrape_at_stop: true, ..Whole::default() };
    let yaml = "scrape_configs: [{job_name: j, static_configs: [{targets: ['h:1']}]}]\n";
    let targets = read_section(yaml, |config| targets(config, &whole));
    assert!(targets[0].at_stop && targets[0].rules.trim_suffixes);
    let yaml = "trim_metric_suffixes: true\nscrape_on_shutdown: true\ninitial_scrape_offset: 5s\n\
                discovery_reload_on_startup: true\napi_server: {enabled: false, server_config: {endpoint: x}}\n\
                config:\n  scrape_configs: [{job_name: j}]\n  storage: {exemplars: {max_exemplars: 5}}\n  runtime:\n  otlp:\n\
                \x20 tracing:\n";
    assert!(read_section(yaml, |section| (FACTORY.configure)(section)).is_some());
}
