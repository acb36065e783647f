//! A plan as text for people.

use std::fmt::Write as _;

use crate::diag::counted;
use crate::plan::{Kind, OnExit, Plan, Readiness, ShownValue, Unit, Value, VariableValue};

/// Which part of a plan is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PlanView {
    /// Everything.
    Whole,
    /// Each process's variables with their sources.
    Environment,
    /// Who starts after whom, and who stops before whom.
    Order,
}

/// The text of a plan.
#[must_use]
pub fn plan_text(plan: &Plan, view: PlanView) -> String {
    let mut text = String::new();
    match view {
        PlanView::Whole => {
            head(&mut text, plan);
            for unit in &plan.units {
                process(&mut text, unit);
            }
        }
        PlanView::Environment => {
            for unit in &plan.units {
                let _ = writeln!(text, "{}", unit.name);
                environment(&mut text, unit);
            }
        }
        PlanView::Order => order(&mut text, plan),
    }
    text
}

fn head(text: &mut String, plan: &Plan) {
    let site: Vec<String> = plan.site.iter().map(|s| format!("{} ({})", s.name, s.file)).collect();
    let _ = writeln!(text, "job {} from {}", plan.name, plan.job_file);
    let _ = writeln!(text, "  id         {}", plan.job_id);
    let _ = writeln!(text, "  site       {}", site.join(", "));
    let _ = writeln!(text, "  directory  {}", plan.job_dir);
    match &plan.collector {
        None => text.push_str("  collector  off\n"),
        Some(collector) => {
            let which = if collector.embedded { "embedded" } else { "otelcol" };
            let to = collector.endpoint.as_deref().unwrap_or("files only");
            let _ = writeln!(text, "  collector  {which}, {to}, scrapes each {} s", collector.scrape_interval_seconds);
        }
    }
    if let Some(limit) = plan.time_limit_seconds {
        let _ = writeln!(text, "  limit      {limit} s");
    }
    for (name, value) in &plan.attributes {
        let value = serde_json::to_string(value).unwrap_or_default();
        let _ = writeln!(text, "  attribute  {name} = {value}");
    }
    for target in &plan.scrape {
        let targets: Vec<String> = target.targets.iter().map(ToString::to_string).collect();
        let _ = writeln!(text, "  scrape     {} {}", target.job_name, targets.join(" "));
    }
    for file in &plan.files {
        let _ = writeln!(text, "  file       {} {:04o}", file.path, file.mode);
    }
}

fn process(text: &mut String, unit: &Unit) {
    let _ = write!(text, "\n{} {} ({})", unit.kind, unit.name, unit.type_name);
    if !unit.location.is_unknown() {
        let _ = write!(text, " at {}", unit.location);
    }
    text.push('\n');
    let argv: Vec<String> = unit.argv.iter().map(|a| quote(&a.to_string())).collect();
    let _ = writeln!(text, "  runs       {}", argv.join(" "));
    let _ = writeln!(text, "  in         {}", unit.cwd);
    if let Some(port) = &unit.port {
        let _ = writeln!(text, "  port       {port}");
    }
    for (key, port) in &unit.ports {
        let _ = writeln!(text, "  port       {key}: {port}");
    }
    if !unit.depends_on.is_empty() {
        let _ = writeln!(text, "  after      {}", unit.depends_on.join(", "));
    }
    let ready = match &unit.readiness {
        Readiness::Started => "once started".to_owned(),
        Readiness::Exited { .. } => "when it has ended with 0".to_owned(),
        Readiness::Probe(probe) => {
            let kind = serde_json::to_value(&probe.question.kind).unwrap_or_default();
            format!("{}, at most {} s", brief(&kind), probe.timeout_seconds)
        }
    };
    if unit.kind != Kind::Driver {
        let _ = writeln!(text, "  ready      {ready}");
    }
    if let Some(liveness) = &unit.liveness {
        let kind = serde_json::to_value(&liveness.question.kind).unwrap_or_default();
        let (interval, threshold) = (liveness.interval_seconds, liveness.failure_threshold);
        let bad = counted(threshold, "bad answer", "bad answers in a row");
        let _ = writeln!(text, "  alive      {}, each {interval} s, stopped after {bad}", brief(&kind));
    }
    match unit.on_exit {
        OnExit::Restart(policy) => {
            let (limit, window) = (policy.limit, policy.window_seconds);
            let with = if policy.also_dependants { ", with those that need it" } else { "" };
            let times = counted(limit, "time", "times");
            let _ = writeln!(text, "  on exit    restart, {times} in {window} s{with}");
        }
        OnExit::Ignore if unit.kind != Kind::Collector => text.push_str("  on exit    ignore\n"),
        OnExit::Ignore | OnExit::Stop => {}
    }
    let signal = serde_json::to_value(unit.stop.signal).unwrap_or_default();
    let signal = signal.as_str().unwrap_or("TERM");
    let _ = writeln!(text, "  stop       SIG{signal}, SIGKILL after {} s", unit.stop.grace_seconds);
    if let Some(rotation) = &unit.log_rotation {
        let _ =
            writeln!(text, "  log        piped, {} bytes a file at most, {} older", rotation.max_bytes, rotation.keep);
    }
    environment(text, unit);
}

fn environment(text: &mut String, unit: &Unit) {
    for (name, variable) in &unit.env {
        let _ = write!(text, "  env        {name}=");
        let _ = match variable.shown() {
            ShownValue::Masked(mask) => text.write_str(mask),
            ShownValue::Plain(VariableValue::Unset) => text.write_str("(unset)"),
            ShownValue::Plain(VariableValue::Set(Value::Text(value))) => write!(text, "{value}"),
            ShownValue::Plain(VariableValue::Set(Value::Encoded { value, .. })) => {
                text.write_str(&serde_json::to_string(&**value).unwrap_or_default())
            }
            ShownValue::Plain(VariableValue::CollectorCopy { variable, .. }) => write!(text, "<{variable}>"),
        };
        let _ = writeln!(text, "   # {}", variable.source);
    }
}

fn order(text: &mut String, plan: &Plan) {
    text.push_str("start\n");
    for unit in &plan.units {
        let after = match unit.kind {
            Kind::Collector => String::new(),
            Kind::Driver => " after all others".to_owned(),
            _ if unit.depends_on.is_empty() => String::new(),
            _ => format!(" after {}", unit.depends_on.join(", ")),
        };
        let _ = writeln!(text, "  {}{after}", unit.name);
    }
    text.push_str("stop\n");
    for level in plan.stop_levels() {
        let _ = writeln!(text, "  {}", level.join(", "));
    }
}

fn brief(kind: &serde_json::Value) -> String {
    let name = kind["type"].as_str().unwrap_or_default();
    match kind["paths"].as_array() {
        Some(paths) => {
            let paths: Vec<&str> = paths.iter().filter_map(serde_json::Value::as_str).collect();
            format!("{name} {}", paths.join(" or "))
        }
        None => name.to_owned(),
    }
}

fn quote(word: &str) -> String {
    shlex::try_quote(word).map_or_else(|_| word.to_owned(), std::borrow::Cow::into_owned)
}
