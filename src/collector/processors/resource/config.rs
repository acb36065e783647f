//! What the processor is told.

use std::sync::Arc;

use futures_util::future::BoxFuture;

use super::action::{Action, Source, When};
use super::convert::Target;
use crate::collector::component::{Built, Consumer, Context, EVERY_SIGNAL, Factory, Next, Processor, Refusal, Signals};
use crate::collector::node::{Node, Value};
use crate::collector::pattern;
use crate::collector::section::Section;
use crate::diag::Problem;
use crate::otlp::{AnyValue, KeyValue, Payload, Signal};

/// The kind.
pub const FACTORY: Factory<dyn Processor> =
    Factory { names: &["resource"], signals: Signals::Each(EVERY_SIGNAL), configure: read };

const ACTIONS: [&str; 5] = ["insert", "update", "upsert", "delete", "convert"];

struct Settings {
    actions: Arc<[Action]>,
}

fn read(section: &mut Section<'_>) -> Option<Box<dyn Processor>> {
    let actions = section.sections("attributes", read_action).unwrap_or_default();
    if actions.is_empty() {
        section.problem("attributes", Problem::new("`attributes` needs at least one action"));
    }
    let actions: Option<Vec<Action>> = actions.into_iter().collect();
    Some(Box::new(Settings { actions: actions?.into() }))
}

fn read_action(section: &mut Section<'_>) -> Option<Action> {
    section.unsupported(&["from_context"]);
    let key = section.text("key").filter(|key| !key.is_empty());
    let word = section.text("action").unwrap_or_default();
    let value = section.node("value");
    let from_attribute = section.text("from_attribute").filter(|key| !key.is_empty());
    let pattern = section.text("pattern").filter(|pattern| !pattern.is_empty());
    let (has_target, target) = (section.has("converted_type"), target(section));
    let action = word.to_ascii_lowercase();
    if !ACTIONS.contains(&action.as_str()) {
        let message = match action.as_str() {
            "" => "`action` is missing".to_owned(),
            "hash" | "extract" => format!("the action `{word}` is not supported by this collector"),
            _ => format!("`{word}` is no action"),
        };
        section.problem("action", Problem::new(message).suggest(&word, ACTIONS));
        return None;
    }
    let refuse = |what: &str| section.problem(what, Problem::new(format!("the action `{action}` takes no `{what}`")));
    let setting = matches!(action.as_str(), "insert" | "update" | "upsert");
    if !setting && value.is_some() {
        refuse("value");
    }
    if !setting && from_attribute.is_some() {
        refuse("from_attribute");
    }
    if action != "delete" && pattern.is_some() {
        refuse("pattern");
    }
    if action != "convert" && has_target {
        refuse("converted_type");
    }
    if action == "delete"
        && let Some(pattern) = pattern
    {
        // With both, the pattern's keys and the key itself go; the key is one more alternative here.
        let pattern = key.map_or(pattern.clone(), |key| format!("(?:{pattern})|^{}$", regex::escape(&key)));
        return match pattern::compile(&pattern) {
            Ok(pattern) => Some(Action::DeleteMatching { pattern }),
            Err(why) => {
                section.problem("pattern", Problem::new(format!("`pattern` is no regular expression: {why}")));
                None
            }
        };
    }
    let Some(key) = key else {
        section.missing("key");
        return None;
    };
    match action.as_str() {
        "delete" => Some(Action::Delete { key }),
        "convert" => {
            if !has_target {
                section.problem_here(Problem::new("`converted_type` is missing").hint("one of: int, double, string"));
            }
            target.map(|target| Action::Convert { key, target })
        }
        _ => {
            let value = source(section, value, from_attribute)?;
            let when = match action.as_str() {
                "insert" => When::Absent,
                "update" => When::Present,
                _ => When::Always,
            };
            Some(Action::Set { key, value, when })
        }
    }
}

fn target(section: &mut Section<'_>) -> Option<Target> {
    section.word("converted_type", &["int", "double", "string"]).map(|word| match word {
        "int" => Target::Integer,
        "double" => Target::Double,
        _ => Target::Text,
    })
}

fn source(section: &Section<'_>, value: Option<&Node>, from_attribute: Option<String>) -> Option<Source> {
    match (value.filter(|node| node.value != Value::Null), from_attribute) {
        (Some(_), Some(_)) => {
            section.problem("from_attribute", Problem::new("`value` and `from_attribute` cannot be given together"));
            None
        }
        (None, Some(other)) => Some(Source::Attribute(other)),
        (Some(node), None) => match any_value(node, true) {
            Ok(value) => Some(Source::Value(value)),
            Err(why) => {
                section.problem("value", Problem::new(why));
                None
            }
        },
        (None, None) => {
            let problem = match value {
                Some(node) if node.referenced => Problem::new("`value` is null: its variable is unset or empty")
                    .hint("set the variable, or give a default: `${env:NAME:-default}`"),
                Some(_) => Problem::new("`value` is null"),
                None => Problem::new("`value` or `from_attribute` is missing"),
            };
            section.problem("value", problem);
            None
        }
    }
}

/// The value as an attribute has it, with the type that YAML gave it.
fn any_value(node: &Node, whole: bool) -> Result<AnyValue, String> {
    if node.referenced && !whole && !matches!(node.value, Value::Text(_)) {
        return Err("inside a list or map a variable must be text".to_owned());
    }
    Ok(match &node.value {
        Value::Null => AnyValue::Empty,
        Value::Boolean(value) => (*value).into(),
        Value::Integer(value) => (*value).into(),
        Value::Double(value) => (*value).into(),
        Value::Text(text) => text.as_str().into(),
        Value::Untakable(what) => return Err(format!("{what} cannot be the value of an attribute")),
        Value::List(items) => {
            AnyValue::Array(items.iter().map(|item| any_value(item, false)).collect::<Result<_, _>>()?)
        }
        Value::Map(entries) => {
            let one = |entry: &crate::collector::node::Entry| {
                any_value(&entry.node, false).map(|value| KeyValue::new(entry.key.as_str(), value))
            };
            AnyValue::Map(entries.iter().map(one).collect::<Result<_, _>>()?)
        }
    })
}

impl Processor for Settings {
    fn build(&self, _context: Context, _signal: Signal, next: Next) -> Result<Built, Problem> {
        Ok(Built::stateless(Editor { actions: self.actions.clone(), next }))
    }
}

struct Editor {
    actions: Arc<[Action]>,
    next: Next,
}

impl Consumer for Editor {
    fn consume(&self, mut payload: Payload) -> BoxFuture<'_, Result<(), Refusal>> {
        for entry in &mut payload.resources {
            let resource = Arc::make_mut(&mut entry.resource);
            for action in self.actions.iter() {
                action.apply(resource);
            }
        }
        Box::pin(self.next.consume(payload))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::collector::testing::{problems_of, read_section};
    use crate::otlp::Resource;

    /// The attributes after the actions, as text.
    fn after(yaml: &str, resource: &mut Resource) -> Vec<String> {
        let mut actions = Vec::new();
        let text = format!("attributes:\n{yaml}");
        read_section(&text, |section| {
            actions = section.sections("attributes", read_action).expect("list").into_iter().flatten().collect();
        });
        for action in &actions {
            action.apply(resource);
        }
        resource.attributes.iter().map(|a| format!("{}={:?}", a.key, a.value)).collect()
    }

    #[test]
    fn actions_run_in_order_and_keep_types() {
        let mut resource = Resource::new([("keep", "me"), ("word", "old"), ("secret.x", "s")]);
        let got = after(
            "- {key: keep, value: other, action: insert}\n\
             - {key: n, value: 7, action: insert}\n\
             - {key: word, value: new, action: update}\n\
             - {key: absent, value: never, action: update}\n\
             - {key: up, value: [a, 1.5, true, {k: null}], action: UPSERT}\n\
             - {key: copy, from_attribute: n, action: upsert}\n\
             - {key: none, from_attribute: nope, action: upsert}\n\
             - {pattern: \"^secret\", action: delete}\n\
             - {key: n, action: convert, converted_type: string}\n",
            &mut resource,
        );
        assert_eq!(
            got,
            [
                "keep=String(\"me\")",
                "word=String(\"new\")",
                "n=String(\"7\")",
                "up=Array([String(\"a\"), Double(1.5), Bool(true), Map([KeyValue { key: \"k\", value: Empty }])])",
                "copy=Int(7)",
            ]
        );
    }

    #[test]
    fn a_variable_keeps_the_type_that_yaml_gives_it() {
        let mut resource = Resource::default();
        let got = after("- {key: id, value: \"${env:TEST_NUMBER}\", action: upsert}\n", &mut resource);
        assert_eq!(got, ["id=Int(123456)"]);
    }

    #[test]
    fn wrong_actions_are_refused() {
        for (action, word) in [
            ("{key: a, value: 1, action: explode}", "explode"),
            ("{key: a, action: insert}", "missing"),
            ("{key: a, value: null, action: insert}", "null"),
            ("{key: a, value: \"${env:TEST_UNSET}\", action: insert}", "unset or empty"),
            ("{key: a, value: [\"${env:TEST_NUMBER}\"], action: insert}", "must be text"),
            ("{key: a, value: 2024-01-02, action: insert}", "a date"),
            ("{key: a, action: convert, converted_type: list}", "converted_type"),
            ("{key: a, action: hash}", "not supported"),
            ("{pattern: \"(\", action: delete}", "regular expression"),
            ("{action: delete}", "`key` is missing"),
            ("{key: a, value: 1, action: delete}", "takes no `value`"),
        ] {
            let text = problems_of(&format!("attributes: [{action}]"), |section| drop(read(section)));
            assert!(text.contains(word), "{action}: {text}");
        }
        assert!(problems_of("{}", |section| drop(read(section))).contains("at least one action"));
    }
}
