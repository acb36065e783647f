//! Who has the last word on each field of `telemetry` (docs/api.md section 9, without the process's own `env` and the hook).
//!
//! `--set`, then gymrun's environment (`NEMO_GYM_OTEL_*`, then `NEMO_LENS_*`; `OTEL_SERVICE_NAME`), then the job or a
//! fragment, then the collector's `gym_*` keys, then the default. A variable that is blank counts as unset. One that makes
//! no sense does what NeMo Gym's own reader does with it, and is a warning: a switch of Gym's is off, a number of Gym's
//! has its default, and what nemo-lens reads (`TRACES_ENABLED`, `SPAN_GROUPS`, ...) switches telemetry off as a whole.

use super::fields::Fields;
use super::tables::TELEMETRY;
use super::value::{boolean, entries, is_variable, literal, num};
use crate::diag::{Location, Problem, Problems};
use crate::inputs::{COMMAND_LINE, Node, World};
use crate::plan::MemoryScope;
use crate::policy::spec::{Exporter, FieldSource, MemorySpec, OtelSpec, Sourced, TelemetrySpec};

/// Span groups and presets of NeMo Gym and nemo-lens, those of older versions included.
const SPAN_GROUPS: [&str; 20] = [
    "default",
    "per_rollout",
    "all",
    "job",
    "server",
    "http_client",
    "rollout",
    "agent",
    "model_call",
    "verify",
    "sandbox",
    "concurrency",
    "startup",
    "checkpoint",
    "evaluate",
    "model_init",
    "load_checkpoint",
    "step",
    "forward_backward",
    "optimizer",
];

struct Settle<'a> {
    fields: Fields<'a>,
    memory: Option<Node>,
    world: &'a World,
    /// A collector that switches Gym's telemetry on.
    collector: Option<&'a OtelSpec>,
    /// A variable that switches telemetry off since it makes no sense.
    broken: Option<String>,
    problems: &'a mut Problems,
}

/// What a variable's text means to its reader.
enum Reading<T> {
    Value(T),
    /// No sense: this is what the reader goes on with.
    Instead(T, String),
    /// No sense: the reader switches telemetry off.
    Broken,
}

/// The block settled. `node` is the merged block (an empty mapping if nobody wrote one).
pub fn telemetry(node: &Node, otel: &OtelSpec, job_id: &str, world: &World, problems: &mut Problems) -> TelemetrySpec {
    let fields = Fields::new(node, &TELEMETRY);
    let memory = fields.said("memory_profiling").cloned();
    let collector = (otel.enabled && otel.gym_telemetry).then_some(otel);
    let mut settle = Settle { fields, memory, world, collector, broken: None, problems };
    let spec = settle.all(job_id);
    for key in ["export_strategy", "export_rank", "instrument_aiohttp"] {
        if let Some(node) = fields.said(key) {
            settle.problems.push(
                Problem::warning("the key has no effect any more")
                    .at(format!("telemetry.{key}"))
                    .in_file(node.location.clone())
                    .hint("leave it out"),
            );
        }
    }
    spec
}

impl Settle<'_> {
    fn all(&mut self, job_id: &str) -> TelemetrySpec {
        let collector = self.collector.is_some();
        let groups = self.collector.map(|otel| otel.gym_span_groups.clone());
        let logs = self.collector.map(|otel| otel.gym_logs);
        let gym = |text: &str| flag(text).map_or_else(|| Reading::Instead(false, "false".into()), Reading::Value);
        let lens = |text: &str| flag(text).map_or(Reading::Broken, Reading::Value);
        let mut enabled = self.field("enabled", "ENABLED", boolean, gym, collector.then_some(true), false);
        let span_groups = self.field(
            "span_groups",
            "SPAN_GROUPS",
            |node| literal(node).map(str::to_owned),
            |text| if unknown_group(text).is_none() { Reading::Value(text.to_owned()) } else { Reading::Broken },
            groups,
            "default".to_owned(),
        );
        let exporter = self.field(
            "exporter",
            "EXPORTER",
            |node| literal(node).and_then(exporter),
            |text| exporter(text).map_or(Reading::Broken, Reading::Value),
            None,
            Exporter::Otlp,
        );
        let traces_enabled = self.field("traces_enabled", "TRACES_ENABLED", boolean, lens, None, true);
        let metrics_enabled = self.field("metrics_enabled", "METRICS_ENABLED", boolean, lens, None, true);
        let logs_enabled = self.field("logs_enabled", "LOGS_ENABLED", boolean, lens, logs, false);
        let service_name_per_server =
            self.field("service_name_per_server", "SERVICE_NAME_PER_SERVER", boolean, gym, None, true);
        let run_id = self.field(
            "run_id",
            "RUN_ID",
            |node| literal(node).map(str::to_owned),
            |text| Reading::Value(text.to_owned()),
            None,
            job_id.to_owned(),
        );
        let sandbox =
            |text: &str| number(text, false).map_or_else(|| Reading::Instead(10.0, "10".into()), Reading::Value);
        let sandbox_resource_sample_interval_seconds = self.field(
            "sandbox_resource_sample_interval_seconds",
            "SANDBOX_RESOURCE_SAMPLE_INTERVAL_SECONDS",
            num,
            sandbox,
            None,
            10.0,
        );
        let memory_profiling = self.memory(gym);
        let service_name = self.service_name();
        self.warn_of_groups(&span_groups);
        if let Some(variable) = self.broken.take() {
            enabled = Sourced { value: false, source: FieldSource::Variable(variable) };
        }
        TelemetrySpec {
            enabled,
            service_name,
            service_name_per_server,
            span_groups,
            exporter,
            traces_enabled,
            metrics_enabled,
            logs_enabled,
            memory_profiling,
            run_id,
            sandbox_resource_sample_interval_seconds,
            lens_compat: self.fields.bool("lens_compat"),
        }
    }

    fn memory(&mut self, gym: impl Fn(&str) -> Reading<bool>) -> MemorySpec {
        let enabled = self.field("memory_profiling.enabled", "MEMORY_PROFILING_ENABLED", boolean, gym, None, false);
        let seconds = |text: &str| number(text, true).map_or_else(|| Reading::Instead(1.0, "1".into()), Reading::Value);
        let interval_seconds = self.field(
            "memory_profiling.interval_seconds",
            "MEMORY_PROFILING_INTERVAL_SECONDS",
            num,
            seconds,
            None,
            1.0,
        );
        let said = |key: &str| self.memory.as_ref().and_then(entries).and_then(|map| map.get(key));
        let include = said("include").and_then(super::value::items).map(|items| {
            let scope = |node: &Node| match literal(node)? {
                "servers" => Some(MemoryScope::Servers),
                "services" => Some(MemoryScope::Services),
                "driver" => Some(MemoryScope::Driver),
                _ => None,
            };
            items.iter().filter_map(scope).collect()
        });
        MemorySpec {
            enabled,
            interval_seconds,
            pss_interval_seconds: said("pss_interval_seconds").and_then(num).unwrap_or(10.0),
            pss_rss_change: said("pss_rss_change").and_then(num).unwrap_or(0.2),
            include: include.unwrap_or_else(|| vec![MemoryScope::Servers, MemoryScope::Services]),
        }
    }

    /// `OTEL_SERVICE_NAME` is not one of Gym's names.
    fn service_name(&self) -> Sourced<String> {
        let said = self.fields.said("service_name").and_then(|n| Some((literal(n)?.to_owned(), source(&n.location))));
        if let Some((value, source @ FieldSource::CommandLine)) = said {
            return Sourced { value, source };
        }
        if let Some(value) = self.variable("OTEL_SERVICE_NAME") {
            return Sourced { value: value.to_owned(), source: FieldSource::Variable("OTEL_SERVICE_NAME".into()) };
        }
        match said {
            Some((value, source)) => Sourced { value, source },
            None => Sourced { value: "nemo-gym".into(), source: FieldSource::Default },
        }
    }

    /// A variable that is set and not blank.
    fn variable(&self, name: &str) -> Option<&str> {
        debug_assert!(is_variable(name));
        self.world.variable(name).map(str::trim).filter(|value| !value.is_empty())
    }

    /// One field: `path` below `telemetry`, `name` of its variables.
    fn field<T: Clone>(
        &mut self,
        path: &str,
        name: &str,
        of_node: impl Fn(&Node) -> Option<T>,
        of_text: impl Fn(&str) -> Reading<T>,
        collector: Option<T>,
        default: T,
    ) -> Sourced<T> {
        let node = match path.split_once('.') {
            Some((_, key)) => self.memory.as_ref().and_then(entries).and_then(|map| map.get(key)),
            None => self.fields.said(path),
        };
        let said = node.and_then(|node| Some(Sourced { value: of_node(node)?, source: source(&node.location) }));
        if let Some(said) = &said
            && said.source == FieldSource::CommandLine
        {
            return said.clone();
        }
        for prefix in ["NEMO_GYM_OTEL_", "NEMO_LENS_"] {
            let variable = format!("{prefix}{name}");
            let Some(text) = self.variable(&variable).map(str::to_owned) else { continue };
            match of_text(&text) {
                Reading::Value(value) => return Sourced { value, source: FieldSource::Variable(variable) },
                Reading::Instead(value, instead) => {
                    self.warn(&variable, &text, &format!("`{instead}` is used, as NeMo Gym does"));
                    return Sourced { value, source: FieldSource::Variable(variable) };
                }
                Reading::Broken => {
                    self.warn(&variable, &text, "telemetry is off (`false` is used for `enabled`), as in NeMo Gym");
                    self.broken.get_or_insert(variable);
                    break;
                }
            }
        }
        said.or_else(|| collector.map(|value| Sourced { value, source: FieldSource::Collector }))
            .unwrap_or(Sourced { value: default, source: FieldSource::Default })
    }

    fn warn(&mut self, variable: &str, text: &str, what: &str) {
        let hint = match () {
            () if variable.ends_with("SPAN_GROUPS") => format!("known: {}", SPAN_GROUPS.join(", ")),
            () if variable.ends_with("EXPORTER") => "known: otlp, console".to_owned(),
            () if variable.ends_with("SECONDS") => "a number of seconds".to_owned(),
            () => "1, true, yes, on, or 0, false, no, off".to_owned(),
        };
        self.problems.push(
            Problem::warning(format!("the variable `{variable}` is `{text}`, which makes no sense: {what}"))
                .in_file(Location::file("<environment>"))
                .hint(hint),
        );
    }

    /// Groups that the author wrote and nobody knows: a newer NeMo Gym may.
    fn warn_of_groups(&mut self, groups: &Sourced<String>) {
        if let (Some(unknown), FieldSource::Author(_) | FieldSource::CommandLine) =
            (unknown_group(&groups.value), &groups.source)
        {
            self.problems.push(
                Problem::warning(format!(
                    "the span group `{unknown}` is not known; a NeMo Gym that does not know it switches its telemetry off"
                ))
                .at("telemetry.span_groups")
                .in_file(self.fields.location("span_groups"))
                .suggest(&unknown, SPAN_GROUPS),
            );
        }
    }
}

fn source(location: &Location) -> FieldSource {
    if *location.file == *COMMAND_LINE { FieldSource::CommandLine } else { FieldSource::Author(location.clone()) }
}

/// A boolean as nemo-lens reads it.
fn flag(text: &str) -> Option<bool> {
    match text.trim().to_ascii_lowercase().as_str() {
        "1" | "true" | "yes" | "on" => Some(true),
        "0" | "false" | "no" | "off" => Some(false),
        _ => None,
    }
}

fn exporter(text: &str) -> Option<Exporter> {
    match text.trim().to_ascii_lowercase().as_str() {
        "otlp" => Some(Exporter::Otlp),
        "console" => Some(Exporter::Console),
        _ => None,
    }
}

fn number(text: &str, above: bool) -> Option<f64> {
    let number: f64 = text.parse().ok()?;
    (number.is_finite() && (number > 0.0 || !above && number == 0.0)).then_some(number)
}

/// The first name in a list of span groups that is none: case and blanks do not matter, empty items do not count.
fn unknown_group(groups: &str) -> Option<String> {
    let mut names = groups.split(',').map(|group| group.trim().to_ascii_lowercase()).filter(|group| !group.is_empty());
    names.find(|group| !SPAN_GROUPS.contains(&group.as_str()))
}
