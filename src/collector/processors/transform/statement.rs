//! What parsed statements mean: the contexts, editors and paths that this collector has.

use std::cmp::Ordering;
use std::sync::Arc;

use regex::Regex;

use super::parser::{self, Comparison, Key, Path, Statement, Value};
use crate::collector::pattern;
use crate::otlp::{AnyValue, Items, Payload, Resource};

/// What a statement runs on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Context {
    /// Once for each resource.
    Resource,
    /// Once for each metric.
    Metric,
}

/// Where this collector ends.
pub(super) const SUPPORTED: &str = "supported: in context `resource` `set(resource.attributes[\"K\"], VALUE) where ...`, \
     in context `metric` `replace_pattern(metric.name, \"REGEX\", \"REPLACEMENT\")`; VALUE is \
     `resource.attributes[\"J\"]` or a literal";

/// A statement that can run.
#[derive(Clone, Debug)]
pub(super) enum Action {
    /// Sets an attribute of the resource where the condition holds.
    Set { key: String, value: Operand, condition: Option<Condition> },
    /// Replaces what matches in the name of each metric.
    Rename { pattern: Regex, replacement: String },
}

/// A value when a statement runs.
#[derive(Clone, Debug)]
pub(super) enum Operand {
    Literal(AnyValue),
    Attribute(String),
}

/// A condition on a resource.
#[derive(Clone, Debug)]
pub(super) enum Condition {
    Always(bool),
    Compare(Comparison, Operand, Operand),
    Not(Box<Condition>),
    And(Vec<Condition>),
    Or(Vec<Condition>),
}

/// Gives a statement its meaning. Without `context` the statement's own paths decide, and must name theirs.
pub(super) fn compile(text: &str, context: Option<Context>) -> Result<Action, String> {
    let Statement { editor, arguments, condition } = parser::parse(text)?;
    match editor.as_str() {
        "set" => {
            let [target, value] = arguments.as_slice() else { return Err(wrong_count("set", 2, arguments.len())) };
            let Value::Path(target) = target else { return Err("the target of `set` must be a path".to_owned()) };
            if context == Some(Context::Metric) {
                return Err(unsupported("`set` in context `metric`"));
            }
            let key = attribute(target, context)?;
            let value = operand(value, context)?;
            let condition = condition.map(|condition| self::condition(&condition, context)).transpose()?;
            Ok(Action::Set { key, value, condition })
        }
        "replace_pattern" => {
            let [target, from, to] = arguments.as_slice() else {
                return Err(wrong_count("replace_pattern", 3, arguments.len()));
            };
            let (Value::Path(target), Value::Text(from), Value::Text(to)) = (target, from, to) else {
                return Err("`replace_pattern` takes a path and two texts".to_owned());
            };
            let pattern = pattern::compile(from).map_err(|why| format!("{from:?} is no regular expression: {why}"))?;
            metric_name(target, context)?;
            if condition.is_some() {
                return Err(unsupported("`where` after `replace_pattern`"));
            }
            Ok(Action::Rename { pattern, replacement: to.clone() })
        }
        other => Err(unsupported(&format!("the editor `{other}`"))),
    }
}

fn wrong_count(editor: &str, wanted: usize, found: usize) -> String {
    format!("`{editor}` takes {wanted} arguments, found {found}")
}

fn unsupported(what: &str) -> String {
    format!("{what} is not supported by this collector")
}

/// The key of `resource.attributes["K"]`; inside a group of context `resource` also of `attributes["K"]`.
fn attribute(path: &Path, context: Option<Context>) -> Result<String, String> {
    let names: Vec<&str> = path.names.iter().map(String::as_str).collect();
    let known = match names.as_slice() {
        ["resource", "attributes"] => true,
        ["attributes"] => context == Some(Context::Resource),
        _ => false,
    };
    match path.keys.as_slice() {
        [Key::Name(key)] if known => Ok(key.clone()),
        _ => Err(unsupported(&format!("the path `{}`", path.shown()))),
    }
}

fn metric_name(path: &Path, context: Option<Context>) -> Result<(), String> {
    let names: Vec<&str> = path.names.iter().map(String::as_str).collect();
    let known = match names.as_slice() {
        ["metric", "name"] => context != Some(Context::Resource),
        ["name"] => context == Some(Context::Metric),
        _ => false,
    };
    if known && path.keys.is_empty() { Ok(()) } else { Err(unsupported(&format!("the path `{}`", path.shown()))) }
}

fn operand(value: &Value, context: Option<Context>) -> Result<Operand, String> {
    Ok(Operand::Literal(match value {
        Value::Nil => AnyValue::Empty,
        Value::Boolean(value) => (*value).into(),
        Value::Integer(value) => (*value).into(),
        Value::Double(value) => (*value).into(),
        Value::Text(text) => text.as_str().into(),
        Value::Path(path) => return Ok(Operand::Attribute(attribute(path, context)?)),
        Value::Call(name, _) => return Err(unsupported(&format!("the function `{name}`"))),
    }))
}

fn condition(parsed: &parser::Condition, context: Option<Context>) -> Result<Condition, String> {
    let all = |list: &[parser::Condition]| {
        list.iter().map(|inner| condition(inner, context)).collect::<Result<Vec<Condition>, String>>()
    };
    Ok(match parsed {
        parser::Condition::Value(Value::Boolean(value)) => Condition::Always(*value),
        parser::Condition::Value(value) => {
            operand(value, context)?;
            return Err("a condition compares values: write `... == true`".to_owned());
        }
        parser::Condition::Compare(comparison, left, right) => {
            Condition::Compare(*comparison, operand(left, context)?, operand(right, context)?)
        }
        parser::Condition::Not(inner) => Condition::Not(Box::new(condition(inner, context)?)),
        parser::Condition::And(list) => Condition::And(all(list)?),
        parser::Condition::Or(list) => Condition::Or(all(list)?),
    })
}

impl Action {
    /// Runs it on all of a payload.
    pub fn apply(&self, payload: &mut Payload) {
        match self {
            Self::Set { key, value, condition } => {
                for entry in &mut payload.resources {
                    if condition.as_ref().is_none_or(|condition| condition.holds(&entry.resource)) {
                        let value = value.of(&entry.resource).clone();
                        Arc::make_mut(&mut entry.resource).upsert(key, value);
                    }
                }
            }
            Self::Rename { pattern, replacement } => {
                let scopes = payload.resources.iter_mut().flat_map(|entry| &mut entry.scopes);
                for scope in scopes {
                    let Items::Metrics(metrics) = &mut scope.items else { continue };
                    for metric in metrics {
                        let Ok(name) = std::str::from_utf8(metric.name.as_bytes()) else { continue };
                        if pattern.is_match(name) {
                            metric.name = pattern.replace_all(name, replacement).into_owned().into();
                        }
                    }
                }
            }
        }
    }
}

impl Operand {
    fn of<'a>(&'a self, resource: &'a Resource) -> &'a AnyValue {
        match self {
            Self::Literal(value) => value,
            Self::Attribute(key) => resource.get(key).unwrap_or(&AnyValue::Empty),
        }
    }
}

impl Condition {
    fn holds(&self, resource: &Resource) -> bool {
        match self {
            Self::Always(value) => *value,
            Self::Compare(comparison, left, right) => compare(*comparison, left.of(resource), right.of(resource)),
            Self::Not(inner) => !inner.holds(resource),
            Self::And(list) => list.iter().all(|inner| inner.holds(resource)),
            Self::Or(list) => list.iter().any(|inner| inner.holds(resource)),
        }
    }
}

/// Values of different types are not equal and not ordered; whole and other numbers are compared as numbers; nil and a
/// value without content are the same.
fn compare(comparison: Comparison, left: &AnyValue, right: &AnyValue) -> bool {
    let order = match (left, right) {
        (AnyValue::Empty, AnyValue::Empty) => Some(Ordering::Equal),
        (AnyValue::String(left), AnyValue::String(right)) => Some(left.as_bytes().cmp(right.as_bytes())),
        (AnyValue::Bool(left), AnyValue::Bool(right)) => Some(left.cmp(right)),
        (AnyValue::Int(left), AnyValue::Int(right)) => Some(left.cmp(right)),
        (AnyValue::Int(left), AnyValue::Double(right)) => (*left as f64).partial_cmp(right),
        (AnyValue::Double(left), AnyValue::Int(right)) => left.partial_cmp(&(*right as f64)),
        (AnyValue::Double(left), AnyValue::Double(right)) => left.partial_cmp(right),
        (AnyValue::Bytes(left), AnyValue::Bytes(right)) => Some(left.cmp(right)),
        (AnyValue::Array(_), AnyValue::Array(_)) | (AnyValue::Map(_), AnyValue::Map(_)) if left == right => {
            Some(Ordering::Equal)
        }
        _ => None,
    };
    let is = |wanted: &[Ordering]| order.is_some_and(|order| wanted.contains(&order));
    match comparison {
        Comparison::Equal => is(&[Ordering::Equal]),
        Comparison::NotEqual => !is(&[Ordering::Equal]),
        Comparison::Less => is(&[Ordering::Less]),
        Comparison::LessOrEqual => is(&[Ordering::Less, Ordering::Equal]),
        Comparison::Greater => is(&[Ordering::Greater]),
        Comparison::GreaterOrEqual => is(&[Ordering::Greater, Ordering::Equal]),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::otlp::{Metric, ResourceItems, ScopeItems, Signal};

    fn after(statement: &str, attributes: &[(&str, AnyValue)]) -> Vec<String> {
        let resource = Resource::new(attributes.iter().map(|(key, value)| (*key, value.clone())));
        let mut payload = Payload::new(Signal::Traces);
        payload.resources.push(ResourceItems { resource: Arc::new(resource), ..ResourceItems::default() });
        compile(statement, Some(Context::Resource)).expect("compiles").apply(&mut payload);
        payload.resources[0].resource.attributes.iter().map(|a| format!("{}={:?}", a.key, a.value)).collect()
    }

    const IDENTITY: &str = r#"set(resource.attributes["o"], resource.attributes["s"]) where resource.attributes["o"] == nil and resource.attributes["s"] != nil"#;

    #[test]
    fn the_identity_is_kept_once() {
        assert_eq!(after(IDENTITY, &[("s", "shop".into())]), ["s=String(\"shop\")", "o=String(\"shop\")"]);
        assert_eq!(after(IDENTITY, &[("s", 5.into()), ("o", "x".into())]), ["s=Int(5)", "o=String(\"x\")"]);
        assert_eq!(after(IDENTITY, &[("s", "a".into()), ("o", "".into())])[1], "o=String(\"\")");
        assert_eq!(after(IDENTITY, &[("s", "a".into()), ("o", AnyValue::Empty)])[1], "o=String(\"a\")");
        assert_eq!(after(IDENTITY, &[("x", 1.into())]), ["x=Int(1)"]);
    }

    #[test]
    fn comparisons_need_equal_types_but_numbers() {
        let holds = |condition: &str| {
            let statement = format!(r#"set(attributes["hit"], true) where {condition}"#);
            after(&statement, &[("i", 1.into()), ("d", 1.0.into()), ("t", "1".into())]).len() == 4
        };
        for yes in [
            r#"attributes["i"] == 1.0"#,
            r#"attributes["i"] == attributes["d"]"#,
            r#"attributes["t"] != 1"#,
            r#"not attributes["t"] == 1 and attributes["i"] < 2"#,
            r#"attributes["nope"] == nil or false"#,
        ] {
            assert!(holds(yes), "{yes}");
        }
        for no in [r#"attributes["t"] == 1"#, r#"attributes["t"] < 2"#, "false"] {
            assert!(!holds(no), "{no}");
        }
    }

    #[test]
    fn metrics_are_renamed_at_the_first_colon() {
        let names = ["vllm:x", "a:b:c", ":lead", "trail:", "plain", "x:y\nz"];
        let metrics = names.iter().map(|name| Metric::new(*name, Vec::new())).collect();
        let scope = ScopeItems { scope: bytes::Bytes::new(), schema_url: "".into(), items: Items::Metrics(metrics) };
        let mut payload = Payload::new(Signal::Metrics);
        payload.resources.push(ResourceItems { scopes: vec![scope], ..ResourceItems::default() });
        let rename = compile(r#"replace_pattern(metric.name, "^([^:]+):(.+)$", "${1}_${2}")"#, None).expect("compiles");
        rename.apply(&mut payload);
        let Items::Metrics(metrics) = &payload.resources[0].scopes[0].items else { panic!("metrics") };
        let got: Vec<String> = metrics.iter().map(|metric| metric.name.to_string()).collect();
        assert_eq!(got, ["vllm_x", "a_b:c", ":lead", "trail:", "plain", "x:y\nz"]);
    }

    #[test]
    fn anything_else_is_refused_by_name() {
        for (statement, word) in [
            (r#"explode(resource.attributes["a"])"#, "explode"),
            (r#"set(resource.attributes["a"], Concat(["a"], ""))"#, "expected a value"),
            (r#"set(resource.attributes["a"], Upper("a"))"#, "Upper"),
            (r#"set(resource.attributes["a"])"#, "2 arguments"),
            (r"set(colour, 1)", "colour"),
            (r#"set(resource.attributes["a"]["b"], 1)"#, r#"resource.attributes["a"]["b"]"#),
            (r#"replace_pattern(metric.name, "(", "x")"#, "regular expression"),
            (r#"replace_pattern(metric.unit, "a", "x")"#, "metric.unit"),
            (r#"set(resource.attributes["a"], 1) where resource.attributes["b"]"#, "compares"),
        ] {
            let message = compile(statement, None).expect_err(statement);
            assert!(message.contains(word), "{statement}: {message}");
        }
        assert!(compile(r#"set(attributes["a"], 1)"#, None).is_err());
        assert!(compile("replace_pattern(name, \"a\", \"b\")", Some(Context::Metric)).is_ok());
    }
}
