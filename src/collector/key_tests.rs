//! Every key that the reference (v0.161.0) documents for a component is taken, or refused with its line and what is
//! supported instead, or said to have no effect. Unknown keys are refused, or a warning where the reference takes them.

use std::fmt::Write as _;

use super::config::Config;
use super::load::read_text;
use super::section::Findings;
use crate::diag::{Problem, Severity};

/// One component: its section and type, the keys that it cannot do without, and rows of YAML.
struct Table {
    section: &'static str,
    kind: &'static str,
    base: &'static str,
    /// Taken without a word.
    good: &'static [&'static str],
    /// An error at the row's line that says what is not supported.
    refused: &'static [&'static str],
    /// What it does with a key that nobody knows.
    unknown: Severity,
}

/// The problems of a component with this row, which stands in line 3.
fn problems(table: &Table, row: &str) -> Vec<Problem> {
    let mut yaml = format!("{}:\n  {}:\n    {row}\n", table.section, table.kind);
    let key = row.split(':').next().unwrap_or_default();
    for line in table.base.lines().filter(|line| line.split(':').next() != Some(key)) {
        writeln!(yaml, "    {line}").expect("writes");
    }
    let findings = Findings::new("c.yaml");
    let root = read_text(&yaml, &|_| None, &findings).unwrap_or_else(|problems| panic!("{yaml}: {problems}"));
    let path = format!("{}.{}", table.section, table.kind);
    let (Err(problems) | Ok(Config { warnings: problems, .. })) = Config::from_node(&root, findings);
    problems.into_iter().filter(|problem| problem.path.starts_with(&path)).collect()
}

const TABLES: &[Table] = &[
    Table {
        section: "receivers",
        kind: "otlp",
        base: "protocols: {http: }",
        good: &[
            "protocols: {grpc: , http: }",
            "protocols: {grpc: {endpoint: 'x:1', transport: tcp, max_recv_msg_size_mib: 5, max_concurrent_streams: 5, read_buffer_size: 1, write_buffer_size: 1, include_metadata: true}}",
            "protocols: {grpc: {keepalive: {server_parameters: {max_connection_idle: 1s, max_connection_age: 1s, max_connection_age_grace: 1s, time: 1s, timeout: 1s}, enforcement_policy: {min_time: 1s, permit_without_stream: true}}}}",
            "protocols: {http: {endpoint: 'x:1', transport: tcp, traces_url_path: /t, metrics_url_path: /m, logs_url_path: /l, max_request_body_size: 5, include_metadata: true, response_headers: {a: b}, compression_algorithms: [gzip]}}",
            "protocols: {http: {read_timeout: 1s, read_header_timeout: 1s, write_timeout: 1s, idle_timeout: 1s, keep_alives_enabled: true, keepalive: {enabled: true, idle_timeout: 1s}}}",
        ],
        refused: &[
            "protocols: {grpc: {tls: {cert_file: a, key_file: b}}}",
            "protocols: {grpc: {auth: {authenticator: x}}}",
            "protocols: {grpc: {dialer: {timeout: 1s}}}",
            "protocols: {grpc: {middlewares: [{id: x}]}}",
            "protocols: {http: {tls: {cert_file: a, key_file: b}}}",
            "protocols: {http: {cors: {allowed_origins: ['*']}}}",
            "protocols: {http: {auth: {authenticator: x}}}",
            "protocols: {http: {dialer: {timeout: 1s}}}",
            "protocols: {http: {middlewares: [{id: x}]}}",
        ],
        unknown: Severity::Error,
    },
    Table {
        section: "receivers",
        kind: "prometheus",
        base: "config: {scrape_configs: [{job_name: j, static_configs: [{targets: ['x:1']}]}]}",
        good: &[
            "trim_metric_suffixes: true",
            "discovery_reload_on_startup: true",
            "initial_scrape_offset: 1s",
            "scrape_on_shutdown: true",
            "api_server: {enabled: false}",
            "config: {global: {scrape_interval: 1s, scrape_timeout: 1s, scrape_protocols: [PrometheusText0.0.4], evaluation_interval: 1s, rule_query_offset: 1s, query_log_file: x, scrape_failure_log_file: x, external_labels: {a: b}, body_size_limit: 1MB, sample_limit: 1, target_limit: 1, label_limit: 1, label_name_length_limit: 1, label_value_length_limit: 1, keep_dropped_targets: 1, metric_name_validation_scheme: utf8, metric_name_escaping_scheme: allow-utf-8, scrape_native_histograms: false, convert_classic_histograms_to_nhcb: false, always_scrape_classic_histograms: true, extra_scrape_metrics: true}, scrape_configs: [{job_name: j}]}",
            "config: {scrape_configs: [{job_name: j, honor_labels: true, honor_timestamps: false, track_timestamps_staleness: true, params: {a: [b]}, scrape_interval: 1s, scrape_timeout: 1s, scrape_protocols: [OpenMetricsText1.0.0], fallback_scrape_protocol: PrometheusText0.0.4, always_scrape_classic_histograms: true, scrape_failure_log_file: x, metrics_path: /m, scheme: http, enable_compression: false, body_size_limit: 1MB, sample_limit: 1, target_limit: 1, label_limit: 1, label_name_length_limit: 1, label_value_length_limit: 1, native_histogram_bucket_limit: 1, native_histogram_min_bucket_factor: 1.1, keep_dropped_targets: 1, metric_name_validation_scheme: legacy, metric_name_escaping_scheme: underscores, extra_scrape_metrics: true, follow_redirects: false, enable_http2: false, http_headers: {X-A: {values: [b], secrets: [c]}}, basic_auth: {username: a, password: b}}]}",
            "config: {scrape_configs: [{job_name: j, authorization: {type: Bearer, credentials: x}, tls_config: {insecure_skip_verify: true, server_name: x, min_version: TLS12, max_version: TLS13}, relabel_configs: [{source_labels: [a], separator: ';', regex: b, modulus: 5, target_label: c, replacement: d, action: replace}], metric_relabel_configs: [{regex: x, action: labeldrop}], static_configs: [{targets: ['x:1'], labels: {a: b}}]}]}",
            "config: {runtime: {gogc: 5}, storage: {}, tracing: {}, otlp: {}, alerting: {}, rule_files: [], remote_write: [], remote_read: [], scrape_config_files: [], scrape_configs: [{job_name: j}]}",
        ],
        refused: &[
            "target_allocator: {endpoint: 'http://x'}",
            "api_server: {enabled: true}",
            "config: {scrape_configs: [{job_name: j, file_sd_configs: [{files: [x.json]}]}]}",
            "config: {scrape_configs: [{job_name: j, http_sd_configs: [{url: 'http://x'}]}]}",
            "config: {scrape_configs: [{job_name: j, proxy_url: 'http://x'}]}",
            "config: {scrape_configs: [{job_name: j, proxy_from_environment: true}]}",
            "config: {scrape_configs: [{job_name: j, oauth2: {client_id: x}}]}",
            "config: {scrape_configs: [{job_name: j, scrape_native_histograms: true}]}",
            "config: {scrape_configs: [{job_name: j, convert_classic_histograms_to_nhcb: true}]}",
            "config: {scrape_config_files: [x], scrape_configs: [{job_name: j}]}",
            "config: {remote_write: [{url: 'http://x'}], scrape_configs: [{job_name: j}]}",
            "config: {remote_read: [{url: 'http://x'}], scrape_configs: [{job_name: j}]}",
            "config: {rule_files: [x], scrape_configs: [{job_name: j}]}",
            "config: {alerting: {alertmanagers: [{scheme: http}]}, scrape_configs: [{job_name: j}]}",
        ],
        unknown: Severity::Error,
    },
    Table {
        section: "processors",
        kind: "batch",
        base: "",
        good: &[
            "timeout: 1s",
            "timeout: 1000",
            "send_batch_size: 5",
            "send_batch_max_size: 9000",
            "metadata_keys: []",
            "metadata_cardinality_limit: 5",
        ],
        refused: &["metadata_keys: [a]"],
        unknown: Severity::Error,
    },
    Table {
        section: "processors",
        kind: "memory_limiter",
        base: "check_interval: 1s\nlimit_mib: 500",
        good: &[
            "check_interval: 2s",
            "limit_mib: 5",
            "limit_percentage: 50",
            "spike_limit_mib: 5",
            "spike_limit_percentage: 5",
            "min_gc_interval_when_soft_limited: 1s",
            "min_gc_interval_when_hard_limited: 1s",
            "max_gc_interval_when_soft_limited: 40s",
            "max_gc_interval_when_hard_limited: 10s",
        ],
        refused: &[],
        unknown: Severity::Error,
    },
    Table {
        section: "processors",
        kind: "resource",
        base: "attributes: [{key: a, value: 1, action: insert}]",
        good: &[
            "attributes: [{key: a, value: [1, {b: c}], action: insert}, {key: a, from_attribute: b, default_value: 1, action: upsert}]",
            "attributes: [{key: a, pattern: '(?P<x>.)', action: extract}, {key: a, converted_type: int, action: convert}]",
            "attributes: [{key: a, action: hash}, {key: a, action: update, value: x}, {pattern: x, action: delete}]",
        ],
        refused: &["attributes: [{key: a, from_context: client.address, action: insert}]"],
        unknown: Severity::Error,
    },
    Table {
        section: "processors",
        kind: "attributes",
        base: "actions: [{key: a, value: 1, action: insert}]",
        good: &[
            "include: {match_type: strict, services: [a], span_names: [b], span_kinds: [SPAN_KIND_SERVER], attributes: [{key: a, value: 1}], resources: [{key: a}], libraries: [{name: a, version: b}]}",
            "exclude: {match_type: regexp, regexp: {cacheenabled: true, cachemaxnumentries: 5}, log_bodies: [a], log_severity_texts: [b], log_severity_number: {min: 5, match_undefined: true}, resources: [{key: a, value: b}]}",
            "include: {match_type: strict, metric_names: [a], resources: [{key: a}]}",
        ],
        refused: &["actions: [{key: a, from_context: metadata.x, action: insert}]"],
        unknown: Severity::Error,
    },
    Table {
        section: "processors",
        kind: "filter",
        base: "",
        good: &[
            "error_mode: silent",
            "traces: {resource: ['true'], span: ['true'], spanevent: ['true']}",
            "metrics: {resource: ['true'], metric: ['true'], datapoint: ['true']}",
            "logs: {resource: ['true'], log_record: ['true']}",
            "spans: {include: {match_type: strict, services: [a]}, exclude: {match_type: regexp, span_names: [a]}}",
            "metrics: {include: {match_type: strict, metric_names: [a], resource_attributes: [{key: a, value: b}]}, exclude: {match_type: regexp, regexp: {cacheenabled: true}, metric_names: [a]}}",
            "logs: {include: {match_type: strict, resource_attributes: [{key: a, value: b}], record_attributes: [{key: a, value: b}], severity_texts: [a], severity_number: {min: INFO, match_undefined: true}, bodies: [a]}}",
            "trace_conditions: ['span.name == \"a\"']",
            "metric_conditions: ['metric.name == \"a\"']",
            "log_conditions: [{context: log, conditions: ['true']}]",
        ],
        refused: &[
            "profiles: {profile: ['true']}",
            "profile_conditions: ['true']",
            "metrics: {include: {match_type: expr, expressions: ['true']}}",
        ],
        unknown: Severity::Error,
    },
    Table {
        section: "processors",
        kind: "transform",
        base: "",
        good: &[
            "error_mode: propagate",
            "flatten_data: false",
            "trace_statements: ['set(span.name, \"a\")']",
            "metric_statements: [{context: datapoint, conditions: ['true'], error_mode: ignore, statements: ['set(attributes[\"a\"], 1)']}]",
            "log_statements: [{context: log, shared_cache: false, statements: ['set(body, \"a\")']}]",
        ],
        refused: &["flatten_data: true", "profile_statements: ['set(profile.x, 1)']"],
        unknown: Severity::Error,
    },
    Table {
        section: "connectors",
        kind: "span_metrics",
        base: "",
        good: &[
            "histogram: {disable: false, unit: s, explicit: {buckets: [1ms, 2s]}, dimensions: [{name: a, default: b}, {glob: 'x.*'}]}",
            "histogram: {exponential: {max_size: 5}}",
            "dimensions: [{name: a, default: b}, {name: c}, {glob: 'http.*'}]",
            "calls_dimensions: [{name: a}]",
            "exclude_dimensions: [status.code]",
            "dimensions_cache_size: 5",
            "resource_metrics_cache_size: 5",
            "resource_metrics_key_attributes: [a]",
            "add_resource_attributes: true",
            "aggregation_temporality: AGGREGATION_TEMPORALITY_DELTA",
            "aggregation_cardinality_limit: 5",
            "metric_timestamp_cache_size: 5",
            "metrics_flush_interval: 5s",
            "metrics_expiration: 5s",
            "series_expiration: 5s",
            "namespace: x",
            "exemplars: {enabled: true, max_per_data_point: 5}",
            "events: {enabled: true, dimensions: [{name: a}]}",
            "include_instrumentation_scope: [a]",
            "enable_metrics_sampling_method: true",
        ],
        refused: &[],
        unknown: Severity::Error,
    },
    Table {
        section: "exporters",
        kind: "otlp_http",
        base: "endpoint: http://x:1",
        good: &[
            "endpoint: https://x/y",
            "traces_endpoint: http://x:1/t",
            "metrics_endpoint: http://x:1/m",
            "logs_endpoint: http://x:1/l",
            "encoding: json",
            "timeout: 5s",
            "read_buffer_size: 5",
            "write_buffer_size: 5",
            "headers: {a: b}",
            "headers: [{name: a, value: b}]",
            "compression: zstd",
            "compression_params: {level: 3}",
            "max_idle_conns: 5",
            "max_idle_conns_per_host: 5",
            "max_conns_per_host: 5",
            "idle_conn_timeout: 5s",
            "disable_keep_alives: true",
            "force_attempt_http2: true",
            "http2_read_idle_timeout: 5s",
            "http2_ping_timeout: 5s",
            "keepalive: {enabled: true, idle_conn_timeout: 1s, max_idle_conns: 5}",
            "tls: {ca_file: a, cert_file: b, key_file: c, server_name_override: d, insecure_skip_verify: true, include_system_ca_certs_pool: true, insecure: true}",
            "sending_queue: {enabled: true, num_consumers: 1, queue_size: 5, sizer: items, block_on_overflow: true, wait_for_result: true}",
            "sending_queue: {storage: file_storage}",
            "sending_queue: {queue_size: 9000, sizer: items, batch: {flush_timeout: 1s, min_size: 5, max_size: 9, sizer: items}}",
            "retry_on_failure: {enabled: true, initial_interval: 1s, randomization_factor: 0.1, multiplier: 2, max_interval: 5s, max_elapsed_time: 9s}",
        ],
        refused: &[
            "auth: {authenticator: x}",
            "proxy_url: http://x",
            "middlewares: [{id: x}]",
            "cookies: {enabled: true}",
            "profiles_endpoint: http://x",
            "tls: {ca_pem: x}",
            "tls: {min_version: '1.3'}",
            "tls: {cipher_suites: [a]}",
            "tls: {reload_interval: 1s}",
            "sending_queue: {batch: {partition: {metadata_keys: [a]}}}",
        ],
        unknown: Severity::Warning,
    },
    Table {
        section: "exporters",
        kind: "otlp_grpc",
        base: "endpoint: x:1",
        good: &[
            "endpoint: 'http://x:1'",
            "compression: gzip",
            "tls: {insecure: true}",
            "keepalive: {time: 10s, timeout: 5s, permit_without_stream: true}",
            "read_buffer_size: 5",
            "write_buffer_size: 5",
            "wait_for_ready: true",
            "headers: {a: b}",
            "balancer_name: pick_first",
            "authority: x",
            "user_agent: x",
            "timeout: 5s",
            "sending_queue: {enabled: false}",
            "retry_on_failure: {enabled: false}",
        ],
        refused: &["auth: {authenticator: x}", "middlewares: [{id: x}]", "tls: {insecure_skip_verify: true}"],
        unknown: Severity::Error,
    },
    Table {
        section: "exporters",
        kind: "file",
        base: "path: /x",
        good: &[
            "path: /y",
            "append: true",
            "rotation: {max_megabytes: 1, max_days: 1, max_backups: 1, localtime: true}",
            "format: proto",
            "compression: zstd",
            "compression_params: {level: 3}",
            "flush_interval: 2s",
            "create_directory: true",
        ],
        refused: &["encoding: otlp_encoding"],
        unknown: Severity::Error,
    },
    Table {
        section: "exporters",
        kind: "file",
        base: "path: /x/*.json\ncreate_directory: true",
        good: &[
            "group_by: {enabled: true, resource_attribute: a, max_open_files: 5}",
            "directory_permissions: \"0700\"",
        ],
        refused: &[],
        unknown: Severity::Error,
    },
    Table {
        section: "exporters",
        kind: "debug",
        base: "",
        good: &[
            "verbosity: detailed",
            "sampling_initial: 5",
            "sampling_thereafter: 500",
            "use_internal_logger: true",
            "output_paths: []",
            "sending_queue: {enabled: true}",
        ],
        refused: &[],
        unknown: Severity::Error,
    },
    Table { section: "exporters", kind: "nop", base: "", good: &[], refused: &[], unknown: Severity::Error },
    Table { section: "connectors", kind: "forward", base: "", good: &[], refused: &[], unknown: Severity::Error },
    Table {
        section: "extensions",
        kind: "health_check",
        base: "",
        good: &[
            "endpoint: x:1",
            "transport: tcp",
            "path: /p",
            "response_body: {healthy: a, unhealthy: b}",
            "check_collector_pipeline: {enabled: false, interval: 5m, exporter_failure_threshold: 5}",
            "response_headers: {a: b}",
            "max_request_body_size: 5",
            "include_metadata: true",
            "compression_algorithms: [gzip]",
            "read_timeout: 1s",
            "read_header_timeout: 1s",
            "write_timeout: 1s",
            "idle_timeout: 1s",
            "keep_alives_enabled: true",
            "keepalive: {enabled: true}",
            "use_v2: false",
        ],
        refused: &[
            "tls: {cert_file: a}",
            "cors: {allowed_origins: [a]}",
            "auth: {authenticator: a}",
            "middlewares: [{id: x}]",
            "dialer: {timeout: 1s}",
            "use_v2: true",
            "http: {endpoint: 'x:1'}",
            "grpc: {endpoint: 'x:1'}",
            "component_health: {include_permanent_errors: true}",
        ],
        unknown: Severity::Error,
    },
    Table {
        section: "extensions",
        kind: "file_storage",
        base: "directory: /x",
        good: &[
            "timeout: 1s",
            "fsync: true",
            "create_directory: true",
            "directory_permissions: \"0700\"",
            "compaction: {on_start: true}",
            "recreate: true",
        ],
        refused: &[],
        unknown: Severity::Error,
    },
];

#[test]
fn every_key_of_the_reference_is_taken_or_refused_at_its_line() {
    let mut wrong = Vec::new();
    for table in TABLES {
        for row in table.good {
            let found = problems(table, row);
            if !found.is_empty() {
                wrong.push(format!("{}: {row}: {}", table.kind, found[0]));
            }
        }
        for row in table.refused {
            let found = problems(table, row);
            let at_its_line = |problem: &&Problem| problem.location.line == Some(3);
            let errors = found.iter().filter(at_its_line).filter(|problem| problem.severity == Severity::Error);
            let mut texts = errors.map(|problem| problem.message.as_str());
            if !texts.any(|text| ["support", "is no value", "is not a value"].iter().any(|word| text.contains(word))) {
                let texts: Vec<String> = found.iter().map(ToString::to_string).collect();
                wrong.push(format!("{}: {row}: not refused as not supported: {texts:?}", table.kind));
            }
        }
        let found = problems(table, "nobody_knows_this: 1");
        let [problem] = found.as_slice() else {
            wrong.push(format!("{}: {} problems for an unknown key", table.kind, found.len()));
            continue;
        };
        if problem.severity != table.unknown || !problem.message.contains("`nobody_knows_this`") {
            wrong.push(format!("{}: an unknown key: {problem}", table.kind));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Older spellings are the same kinds, with a name after a slash too.
#[test]
fn old_and_named_types_are_known() {
    let yaml = "receivers: {otlp/2: {protocols: {http: }}}\n\
                connectors: {spanmetrics: , spanmetrics/a: , span_metrics/b: }\n\
                exporters: {otlphttp: {endpoint: 'http://x:1'}, otlphttp/a: {endpoint: 'http://x:1'}, otlp: {endpoint: 'x:1'}, otlp/2: {endpoint: 'x:1'}, nop: }\n\
                service: {pipelines: {traces: {receivers: [otlp/2], exporters: [otlphttp, otlphttp/a, otlp, otlp/2, spanmetrics]}, metrics/x: {receivers: [spanmetrics], exporters: [nop]}}}\n";
    let findings = Findings::new("c.yaml");
    let root = read_text(yaml, &|_| None, &findings).expect("YAML");
    if let Err(problems) = Config::from_node(&root, findings) {
        panic!("{problems}");
    }
}
