//! What a process is without saying it: `process_defaults`, and what its kind brings.
//!
//! Precedence: the kind's default < `all` < the group < the process. A key that a kind does not have is skipped for that
//! kind; a table never switches on what is off by kind, and never changes when a task is ready.

use indexmap::IndexMap;

use super::kinds::Table;
use super::logs::{give_up_rotation, settle_keep, stack};
use super::value::{boolean, entries, literal};
use crate::inputs::{Node, NodeValue, merge, prune};
use crate::plan::{Kind, PortChoice, StopPolicy, StopSignal};

/// What a kind of process brings (docs/api.md section 4, "by kind").
#[derive(Clone, Copy, Debug)]
pub struct ByKind {
    /// Its port.
    pub port: Option<PortChoice>,
    /// Paths of its HTTP health check and its limit in seconds; `None`: ready once started.
    pub health: Option<(&'static [&'static str], f64)>,
    /// How it is stopped.
    pub stop: StopPolicy,
    /// Whether it has metrics.
    pub metrics: bool,
}

/// What this kind and type bring.
pub fn by_kind(kind: Kind, type_name: &str) -> ByKind {
    let term = StopPolicy { signal: StopSignal::Term, grace_seconds: 10.0 };
    match kind {
        Kind::Service if type_name == "vllm" => ByKind {
            port: Some(PortChoice::Fixed(8000)),
            health: Some((&["/health"], 1800.0)),
            stop: term,
            metrics: true,
        },
        Kind::Server => ByKind {
            port: Some(PortChoice::Auto),
            health: Some((&["/readyz", "/health", "/"], 600.0)),
            stop: StopPolicy { signal: StopSignal::Int, grace_seconds: 5.0 },
            metrics: false,
        },
        _ => ByKind { port: None, health: None, stop: term, metrics: false },
    }
}

/// `own` with what `layers` of `process_defaults` (lowest first) say below it.
pub fn apply(own: &Node, layers: &[&Node], table: &Table, kind: ByKind, is_task: bool) -> Node {
    let mut below = Node { value: NodeValue::Map(IndexMap::new()), location: own.location.clone() };
    for layer in layers {
        below = stack(below, (*layer).clone());
    }
    give_up_rotation(&mut below, own);
    settle_keep(&mut below, Some(own));
    let said = |key: &str| entries(own).and_then(|map| map.get(key));
    if let NodeValue::Map(map) = &mut below.value {
        map.retain(|key, _| table.key(key).is_some());
        // The process says itself what it runs.
        if ["command", "shell", "implementation"].iter().any(|key| said(key).is_some()) {
            for key in ["command", "shell", "implementation"] {
                map.shift_remove(key);
            }
        }
        if is_task {
            let limit =
                map.get("health_check").and_then(entries).and_then(|check| check.get("timeout_seconds")).cloned();
            let location = map.get("health_check").map(|check| check.location.clone());
            map.shift_remove("health_check");
            if let (Some(limit), Some(location)) = (limit, location) {
                let value = NodeValue::Map(IndexMap::from([("timeout_seconds".to_owned(), limit)]));
                map.insert("health_check".into(), Node { value, location });
            }
        }
        // How often and when: it does not say whether.
        let on_exit = said("on_exit").or_else(|| map.get("on_exit")).and_then(literal);
        if on_exit != Some("restart") {
            map.shift_remove("restart");
        }
        let on_by_kind = [("health_check", kind.health.is_some() || is_task), ("metrics", kind.metrics)];
        for (key, on) in on_by_kind {
            let switched_on = said(key).is_some_and(|node| boolean(node) != Some(false));
            let is_table = map.get(key).is_some_and(|node| matches!(node.value, NodeValue::Map(_)));
            if is_table && !on && !switched_on {
                map.shift_remove(key);
            }
        }
    }
    let mut own = own.clone();
    // `metrics = true` switches on what the defaults describe.
    if let NodeValue::Map(map) = &mut own.value
        && map.get("metrics").and_then(boolean) == Some(true)
        && entries(&below)
            .and_then(|below| below.get("metrics"))
            .is_some_and(|node| matches!(node.value, NodeValue::Map(_)))
    {
        map.shift_remove("metrics");
    }
    let mut merged = merge(below, own);
    prune(&mut merged);
    merged
}
