//! `telemetry` (docs/api.md section 9). What a field is without being said depends on other layers: see
//! [`telemetry`](super::super::telemetry).

use super::super::kinds::{Table, Type, WORD, key, with};

/// `telemetry`.
pub const TELEMETRY: Table = Table {
    title: "`telemetry`",
    parts: &[&[
        key(
            "enabled",
            Type::Bool,
            "`false`; `true` with a collector and `otel.gym_telemetry`",
            "`NEMO_GYM_OTEL_ENABLED`",
        ),
        key("service_name", WORD, "`nemo-gym`", "the group; `OTEL_SERVICE_NAME`"),
        key(
            "service_name_per_server",
            Type::Bool,
            "`true`",
            "servers report as `<group>/<name>`; `NEMO_GYM_OTEL_SERVICE_NAME_PER_SERVER`",
        ),
        key(
            "span_groups",
            WORD,
            "`default`; `otel.gym_span_groups` with a collector",
            "which spans exist; `NEMO_GYM_OTEL_SPAN_GROUPS`",
        ),
        key("exporter", Type::Word(&["otlp", "console"]), "`otlp`", "`NEMO_GYM_OTEL_EXPORTER`"),
        key("traces_enabled", Type::Bool, "`true`", "`NEMO_GYM_OTEL_TRACES_ENABLED`"),
        key("metrics_enabled", Type::Bool, "`true`", "`NEMO_GYM_OTEL_METRICS_ENABLED`"),
        key("logs_enabled", Type::Bool, "`false`; `otel.gym_logs` with a collector", "`NEMO_GYM_OTEL_LOGS_ENABLED`"),
        key("memory_profiling", Type::Table(&MEMORY_PROFILING), "{}", ""),
        key("run_id", WORD, "the job id", "`nemo.run.id`; `NEMO_GYM_OTEL_RUN_ID`"),
        key(
            "sandbox_resource_sample_interval_seconds",
            Type::Num(false),
            "10",
            "0 is none; `NEMO_GYM_OTEL_SANDBOX_RESOURCE_SAMPLE_INTERVAL_SECONDS`",
        ),
        with(
            "lens_compat",
            Type::Bool,
            "true",
            "a compatibility module for the nemo-lens that switches Gym's telemetry off",
        ),
        key("export_strategy", Type::Tree, "", "accepted without effect, with a warning"),
        key("export_rank", Type::Tree, "", "accepted without effect, with a warning"),
        key("instrument_aiohttp", Type::Tree, "", "accepted without effect, with a warning"),
    ]],
    without: &[],
};

/// `telemetry.memory_profiling`.
pub const MEMORY_PROFILING: Table = Table {
    title: "`telemetry.memory_profiling`",
    parts: &[&[
        key(
            "enabled",
            Type::Bool,
            "`false`",
            "PSS is read and memory metrics are exported; `NEMO_GYM_OTEL_MEMORY_PROFILING_ENABLED`",
        ),
        key("interval_seconds", Type::Num(true), "1", "`NEMO_GYM_OTEL_MEMORY_PROFILING_INTERVAL_SECONDS`"),
        with("pss_interval_seconds", Type::Num(true), "10", "between two readings of PSS"),
        with(
            "pss_rss_change",
            Type::Num(false),
            "0.2",
            "PSS of a tree is read earlier when its RSS moved by more than this share (and by 16 MiB); 0: never",
        ),
        key(
            "include",
            Type::List(&Type::Word(&["servers", "services", "driver"])),
            "`[servers, services]`",
            "whose memory",
        ),
    ]],
    without: &[],
};
