//! `otel`: the collector (docs/api.md section 10).

use super::super::kinds::{Keys, PORT_NUMBER, SECRET, Table, Type, WORD, key, later, with};

/// `otel`.
pub const OTEL: Table = Table {
    title: "`otel`",
    parts: &[&[
        with("enabled", Type::Bool, "true", "whether there is a collector"),
        with("required", Type::Bool, "false", "undelivered telemetry fails the job"),
        key("endpoint", Type::OneOf(&[WORD, Type::Off]), "none: an error", "OTLP/HTTP base; `false`: files only"),
        key("service_name", WORD, "none: an error (`local`: `nemo-gym`)", "`service.name` of every resource"),
        key(
            "token_env",
            Type::OneOf(&[Type::Variable, Type::Off]),
            "`OTEL_TOKEN`",
            "the variable with the token; asked for only with an `endpoint`",
        ),
        with("token_scheme", WORD, "Bearer", "header `Authorization: <scheme> <token>`"),
        key(
            "tenant_attribute",
            Type::OneOf(&[WORD, Type::Off]),
            "`Authorization`",
            "resource attribute with the token, on the way to the endpoint only",
        ),
        key("headers", Type::Map(Keys::Any, &SECRET), "{}", "sent to the endpoint"),
        key("tls", Type::Table(&TLS), "{}", ""),
        with("compression", Type::Word(&["gzip", "none", "zstd", "snappy", "zlib", "deflate", "lz4"]), "gzip", ""),
        with("timeout_seconds", Type::Num(true), "30", "of one request"),
        with(
            "queue",
            Type::Word(&["memory", "disk"]),
            "memory",
            "where what cannot be sent is kept: `disk` is `otel/queue`, for `gymrun collector flush`",
        ),
        with("log_level", Type::Word(&["debug", "info", "warn", "error"]), "info", "of the collector's own log"),
        key("binary", Type::OneOf(&[Type::Path, Type::Off]), "`false`: embedded", "an otelcol"),
        later("container"),
        with("component", WORD, "gym-vllm", "first part of the name of a scraped service"),
        with(
            "gym_telemetry",
            Type::Bool,
            "true",
            "whether a collector switches Gym's telemetry on where `telemetry` leaves it open",
        ),
        with("gym_span_groups", WORD, "default,verify", "span groups in that case"),
        with("gym_logs", Type::Bool, "true", "logs in that case"),
        key(
            "gpu_metrics_port",
            Type::OneOf(&[PORT_NUMBER, Type::Off, Type::Null]),
            "9400",
            "dcgm-exporter of each node",
        ),
        key(
            "node_metrics_port",
            Type::OneOf(&[PORT_NUMBER, Type::Off, Type::Null]),
            "9100",
            "node_exporter of each node",
        ),
        with("scrape_interval_seconds", Type::Int(1, 86400), "15", ""),
        with("health_check_timeout_seconds", Type::Int(1, 86400), "300", ""),
        with("final_scrape_grace_seconds", Type::Num(false), "20", "a limit, not a wait"),
        with("shutdown_wait_seconds", Type::Num(false), "30", "a limit, not a wait"),
        key("ports", Type::Table(&PORTS), "{}", ""),
        later("bind"),
        with("protocol", Type::Word(&["http/protobuf", "grpc"]), "http/protobuf", "of `OTEL_EXPORTER_OTLP_ENDPOINT`"),
        later("drop_asgi_spans"),
    ]],
    without: &[],
};

/// `otel.tls`.
pub const TLS: Table = Table {
    title: "`otel.tls`",
    parts: &[&[
        key("ca_file", Type::Path, "", ""),
        key("cert_file", Type::Path, "", ""),
        key("key_file", Type::Path, "", ""),
        key("server_name_override", WORD, "", ""),
        with("insecure_skip_verify", Type::Bool, "false", ""),
    ]],
    without: &[],
};

/// `otel.ports`.
pub const PORTS: Table = Table {
    title: "`otel.ports`",
    parts: &[&[
        with("grpc", Type::Port, "4317-4417", ""),
        with("http", Type::Port, "4318-4418", ""),
        with("health", Type::Port, "13133-13233", ""),
    ]],
    without: &[],
};
