//! What is wrong is said at its line, all of it.

use super::{problems, read_job};

/// The problems of one job with these further keys, without the job's path.
fn of_job(keys: &str) -> Vec<String> {
    let yaml = format!("config:\n  scrape_configs:\n  - job_name: j\n{keys}");
    let all = problems(&yaml);
    all.iter()
        .map(|line| line.replacen("config.scrape_configs[0].", "", 1).replacen("config.scrape_configs[0]", "", 1))
        .collect()
}

#[test]
fn every_problem_is_found_at_its_line() {
    let yaml = "config:\n  globl: {}\n  remote_write: [x]\n  scrape_configs:\n\
                \x20 - job_name: a\n    scrape_interval: 15\n    dns_sd_configs: []\n\
                \x20   static_configs: [{targets: ['http://h:1', 'a b']}]\n\
                \x20 - job_name: a\n    scrape_interval: 5s\n    scrape_timeout: 6s\n    scheme: ftp\n    nope: 1\n\
                \x20 - basic_auth: {}\n    authorization: {credentials: \"a\\nb\"}\n\
                trim: true\nreport_extra_scrape_metrics: true\ntarget_allocator: {}\napi_server: {enabled: true}\n";
    assert_eq!(
        problems(yaml),
        [
            "19 api_server.enabled: `api_server` is not supported by this collector",
            "17 report_extra_scrape_metrics: `report_extra_scrape_metrics` is no key any more",
            "3 config.remote_write: `remote_write` is not supported by this collector",
            "6 config.scrape_configs[0].scrape_interval: `scrape_interval` is no duration: it has no unit: `15`",
            "8 config.scrape_configs[0].static_configs: `http://h:1` is no address of a target: it is more than host and port",
            "8 config.scrape_configs[0].static_configs: `a b` is no address of a target: invalid international domain name",
            "7 config.scrape_configs[0].dns_sd_configs: `dns_sd_configs` is not supported by this collector",
            "9 config.scrape_configs[1].job_name: two jobs are named `a`",
            "11 config.scrape_configs[1].scrape_timeout: the scrape timeout 6s is longer than the scrape interval 5s",
            "12 config.scrape_configs[1].scheme: `ftp` is not a value of `scheme`",
            "13 config.scrape_configs[1].nope: unknown key `nope`",
            "14 config.scrape_configs[2]: `job_name` is missing",
            "15 config.scrape_configs[2].authorization: only one of `basic_auth`, `authorization` and `bearer_token` may be there",
            "2 config.globl: unknown key `globl`",
            "16 trim: unknown key `trim`",
            "18 target_allocator: `target_allocator` is not supported by this collector",
        ]
    );
    assert_eq!(problems("{}"), ["1 component: `config` is missing"]);
    assert_eq!(problems("config: {}"), ["1 config: there are no `scrape_configs`"]);
}

#[test]
fn rules_must_have_what_their_action_needs_and_no_more() {
    for (rule, problem) in [
        ("action: nope", ".action: `nope` is no action of a rule"),
        ("action: ", ".action: `` is no action of a rule"),
        ("regex: a", ": `replace` needs a `target_label`"),
        ("target_label: ''", ": `replace` needs a `target_label`"),
        ("source_labels: a, target_label: b", ".source_labels: expected a list of texts, found text"),
        ("source_labels: [''], target_label: b", ".source_labels: the empty text is no name of a label"),
        ("action: keep, regex: '('", ".regex: `regex` is no pattern: missing closing ): `(`"),
        ("action: keep, nope: 1", ".nope: unknown key `nope`"),
        ("action: hashmod, target_label: m", ": `hashmod` needs a `modulus` above 0"),
        ("action: hashmod, modulus: 2", ": `hashmod` needs a `target_label`"),
        ("action: hashmod, target_label: m, modulus: -2", ".modulus: `modulus` is -2; the least is 0"),
        ("action: labelmap, replacement: ''", ".replacement: `` makes no name of a label"),
        ("action: labeldrop, regex: a, source_labels: []", ": `labeldrop` has a `regex` only"),
        ("action: labelkeep, regex: a, target_label: b", ": `labelkeep` has a `regex` only"),
        ("action: uppercase, target_label: b, replacement: x", ".replacement: `uppercase` has no `replacement`"),
        (
            "action: keepequal, target_label: b, regex: '(.*)'",
            ": `keepequal` has `source_labels` and `target_label` only",
        ),
    ] {
        let found = of_job(&format!("    metric_relabel_configs: [{{{rule}}}]\n"));
        let expected = format!("4 metric_relabel_configs[0]{problem}");
        assert!(found.contains(&expected), "{rule}: {found:?}");
    }
    let legacy = "    metric_name_validation_scheme: legacy\n    relabel_configs: [{target_label: 'a.b'}, {target_label: '$$1-x'}, \
                  {action: labelmap, replacement: 'a.$$1'}]\n";
    assert_eq!(of_job(legacy).len(), 3);
    assert!(
        !read_job("    metric_name_validation_scheme: legacy\n    relabel_configs: [{target_label: 'a_$${1}b'}]\n")
            .is_empty()
    );
}

#[test]
fn values_of_a_job() {
    for (keys, problem) in [
        ("scrape_protocols: []", "scrape_protocols: `scrape_protocols` is empty"),
        (
            "scrape_protocols: [PrometheusProto]",
            "scrape_protocols: `PrometheusProto` is no scrape protocol of this collector",
        ),
        (
            "scrape_protocols: [PrometheusText0.0.4, PrometheusText0.0.4]",
            "scrape_protocols: a scrape protocol stands twice",
        ),
        ("fallback_scrape_protocol: x", "fallback_scrape_protocol: `x` is no scrape protocol of this collector"),
        (
            "metric_name_escaping_scheme: x",
            "metric_name_escaping_scheme: `x` is not a value of `metric_name_escaping_scheme`",
        ),
        (
            "scrape_native_histograms: true",
            "scrape_native_histograms: `scrape_native_histograms` is not supported by this collector",
        ),
        ("body_size_limit: 100", "body_size_limit: `body_size_limit` is no size: `100`"),
        ("sample_limit: -1", "sample_limit: `sample_limit` is -1; the least is 0"),
        ("params: [a]", "params: `params` is no map of lists of texts"),
        ("authorization: {type: Basic}", "authorization.type: `basic` is no type of `authorization`"),
        (
            "authorization: {credentials_file: /no/file}",
            "authorization.credentials_file: cannot read /no/file: No such file or directory (os error 2)",
        ),
        (
            "authorization: {credentials: \"a\\nb\"}",
            "authorization: the credentials have a character that no header may have",
        ),
        (
            "basic_auth: {password: a, password_file: b}",
            "basic_auth.password_file: only one of `password` and `password_file` may be there",
        ),
        ("http_headers: {Host: {values: [a]}}", "http_headers: the header `Host` may not be set"),
        ("http_headers: {'a b': {values: [a]}}", "http_headers: `a b` is no name of a header"),
        ("tls_config: {cert: a}", "tls_config: a certificate and its key must be given together"),
        (
            "tls_config: {ca_file: /no/ca}",
            "tls_config: TLS cannot be set up: cannot read /no/ca: No such file or directory (os error 2)",
        ),
        ("tls_config: {ca: nonsense}", "tls_config: TLS cannot be set up: among the authorities is no certificate"),
        (
            "tls_config: {min_version: TLS13, max_version: TLS12}",
            "tls_config.max_version: `max_version` is older than `min_version`",
        ),
        (
            "tls_config: {min_version: TLS10}",
            "tls_config.min_version: this collector does not support TLS below 1.2: that is the oldest version",
        ),
        (
            concat!(
                "tls_config: {ca_file: ",
                env!("CARGO_MANIFEST_DIR"),
                "/tests/data/collector/tls/chains/damaged-ca.pem}"
            ),
            "tls_config.ca_file: certificate 1 cannot be read and is left out",
        ),
        ("proxy_url: http://x", "proxy_url: `proxy_url` is not supported by this collector"),
    ] {
        let found = of_job(&format!("    {keys}\n"));
        assert!(found.contains(&format!("4 {problem}")), "{keys}: {found:?}");
    }
}

#[test]
fn a_target_that_rules_make_impossible_is_a_warning() {
    let keys = "    static_configs: [{targets: ['h:1', 'i:1']}]\n\
                \x20   relabel_configs: [{source_labels: [__address__], regex: 'h.*', target_label: __address__, replacement: ''}]\n";
    assert_eq!(of_job(keys), ["4 static_configs: the target `h:1` is left out: it has no address"]);
}
