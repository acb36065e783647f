//! What an action is told.

use super::action::{Action, Keys, Source, Target, When};
use crate::collector::config::node::{Node, Value};
use crate::collector::config::section::Section;
use crate::collector::text::pattern::{self, Pattern};
use crate::diag::Problem;
use crate::otlp::{AnyValue, KeyValue, Text};

const ACTIONS: [&str; 7] = ["insert", "update", "upsert", "delete", "hash", "extract", "convert"];

/// The list of actions at `key`, of which there must be one; None if something is wrong with it.
pub(in crate::collector::processors) fn read(section: &mut Section<'_>, key: &'static str) -> Option<Vec<Action>> {
    let actions = section.sections(key, read_action).unwrap_or_default();
    if actions.is_empty() {
        section.problem(key, Problem::new(format!("`{key}` needs at least one action")));
    }
    actions.into_iter().collect()
}

/// The keys of one action as they stand.
struct Draft<'a> {
    action: String,
    key: Option<String>,
    value: Option<&'a Node>,
    default: Option<&'a Node>,
    from_attribute: Option<String>,
    pattern: Option<String>,
    has_target: bool,
    target: Option<Target>,
}

fn read_action(section: &mut Section<'_>) -> Option<Action> {
    section.unsupported(&["from_context"]);
    let full = |text: Option<String>| text.filter(|text| !text.is_empty());
    let word = section.text("action").unwrap_or_default();
    let draft = Draft {
        action: word.to_ascii_lowercase(),
        key: full(section.text("key")),
        value: section.node("value"),
        default: section.node("default_value"),
        from_attribute: full(section.text("from_attribute")),
        pattern: full(section.text("pattern")),
        has_target: section.has("converted_type"),
        target: target(section),
    };
    if !ACTIONS.contains(&draft.action.as_str()) {
        let message = if word.is_empty() { "`action` is missing".to_owned() } else { format!("`{word}` is no action") };
        section.problem("action", Problem::new(message).suggest(&word, ACTIONS));
        return None;
    }
    let takes = |actions: &[&str]| actions.contains(&draft.action.as_str());
    let setting = takes(&["insert", "update", "upsert"]);
    for (key, there, taken) in [
        ("value", draft.value.is_some(), setting),
        ("default_value", draft.default.is_some(), setting),
        ("from_attribute", draft.from_attribute.is_some(), setting),
        ("pattern", draft.pattern.is_some(), takes(&["delete", "hash", "extract"])),
        ("converted_type", draft.has_target, takes(&["convert"])),
    ] {
        if there && !taken {
            section.problem(key, Problem::new(format!("the action `{}` takes no `{key}`", draft.action)));
        }
    }
    match draft.action.as_str() {
        "delete" => keys(section, &draft).map(Action::Delete),
        "hash" => keys(section, &draft).map(Action::Hash),
        "extract" => extract(section, &draft),
        "convert" => {
            if !draft.has_target {
                section.problem_here(Problem::new("`converted_type` is missing").hint("one of: int, double, string"));
            }
            Some(Action::Convert { key: key(section, &draft)?, target: draft.target? })
        }
        _ => {
            let when = match draft.action.as_str() {
                "insert" => When::Absent,
                "update" => When::Present,
                _ => When::Always,
            };
            let source = source(section, &draft);
            Some(Action::Set { key: key(section, &draft)?, source: source?, when })
        }
    }
}

fn key(section: &Section<'_>, draft: &Draft<'_>) -> Option<Text> {
    if draft.key.is_none() {
        section.missing("key");
    }
    draft.key.as_deref().map(Text::from)
}

fn keys(section: &Section<'_>, draft: &Draft<'_>) -> Option<Keys> {
    if draft.key.is_none() && draft.pattern.is_none() {
        section.problem_here(Problem::new("`key` or `pattern` is missing"));
        return None;
    }
    let pattern = match &draft.pattern {
        Some(pattern) => Some(compiled(section, pattern)?),
        None => None,
    };
    // Without a key the reference takes the empty one, beside all that match.
    Some(Keys { key: draft.key.as_deref().unwrap_or_default().into(), pattern })
}

fn extract(section: &Section<'_>, draft: &Draft<'_>) -> Option<Action> {
    let key = key(section, draft);
    let Some(pattern) = &draft.pattern else {
        section.missing("pattern");
        return None;
    };
    let pattern = compiled(section, pattern)?;
    let named = pattern.named().count();
    if named == 0 || named < pattern.groups() {
        let problem = Problem::new("every group of `pattern` needs a name, and there must be one");
        section.problem("pattern", problem.hint("write `(?P<name>...)`, and `(?:...)` for a group without a name"));
        return None;
    }
    Some(Action::Extract { key: key?, pattern })
}

fn compiled(section: &Section<'_>, pattern: &str) -> Option<Pattern> {
    match pattern::compile(pattern) {
        Ok(pattern) => Some(pattern),
        Err(why) => {
            section.problem("pattern", Problem::new(format!("`pattern` is no regular expression: {why}")));
            None
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

fn source(section: &Section<'_>, draft: &Draft<'_>) -> Option<Source> {
    let given = |node: Option<&Node>| node.is_some_and(|node| node.value != Value::Null);
    if given(draft.value) && draft.from_attribute.is_some() {
        section.problem("from_attribute", Problem::new("`value` and `from_attribute` cannot be given together"));
        return None;
    }
    if !given(draft.value) && draft.from_attribute.is_none() && !given(draft.default) {
        let problem = match draft.value {
            Some(node) if node.referenced => Problem::new("`value` is null: its variable is unset or empty")
                .hint("set the variable, or give a default: `${env:NAME:-default}`"),
            Some(_) => Problem::new("`value` is null"),
            None => Problem::new("`value` or `from_attribute` is missing"),
        };
        section.problem("value", problem);
        return None;
    }
    Some(Source {
        value: literal(section, "value", draft.value)?,
        attribute: draft.from_attribute.as_deref().map(Text::from),
        default: literal(section, "default_value", draft.default)?,
    })
}

/// The value of a key, which may be absent; None if it has no type that an attribute can have.
#[expect(clippy::option_option, reason = "wrong is not absent")]
fn literal(section: &Section<'_>, key: &str, node: Option<&Node>) -> Option<Option<AnyValue>> {
    match node.filter(|node| node.value != Value::Null).map(|node| any_value(node, true)).transpose() {
        Ok(value) => Some(value),
        Err(why) => {
            section.problem(key, Problem::new(why));
            None
        }
    }
}

/// The value as an attribute has it, with the type that YAML gave it. A part of a list or map is not `whole`.
pub(in crate::collector::processors) fn any_value(node: &Node, whole: bool) -> Result<AnyValue, String> {
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
            let one = |entry: &crate::collector::config::node::Entry| {
                any_value(&entry.node, false).map(|value| KeyValue::new(entry.key.as_str(), value))
            };
            AnyValue::Map(entries.iter().map(one).collect::<Result<_, _>>()?)
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::collector::testing::{problems_of, read_section};

    /// The attributes after the actions, as text.
    fn after(yaml: &str, attributes: &[(&str, AnyValue)]) -> Vec<String> {
        let actions = read_section(&format!("actions:\n{yaml}"), |section| read(section, "actions").expect("actions"));
        let mut list: Vec<KeyValue> =
            attributes.iter().map(|(key, value)| KeyValue::new(*key, value.clone())).collect();
        for action in &actions {
            let before = list.clone();
            action.apply(&mut list);
            let concerned = action.concerns(|key| before.iter().any(|attribute| attribute.key.as_bytes() == key));
            assert!(concerned || before == list, "{action:?}");
        }
        list.iter().map(|a| format!("{}={:?}", a.key, a.value)).collect()
    }

    #[test]
    fn actions_run_in_order_and_keep_types() {
        let got = after(
            "- {key: keep, value: other, action: insert}\n\
             - {key: n, value: 7, action: insert}\n\
             - {key: word, value: new, action: update}\n\
             - {key: absent, value: never, action: update}\n\
             - {key: up, value: [a, 1.5, true, {k: null}], action: UPSERT}\n\
             - {key: copy, from_attribute: n, action: upsert}\n\
             - {key: none, from_attribute: nope, action: upsert}\n\
             - {key: fallback, from_attribute: nope, default_value: 1.5, action: insert}\n\
             - {pattern: \"^secret\", action: delete}\n\
             - {key: n, action: convert, converted_type: string}\n",
            &[("keep", "me".into()), ("word", "old".into()), ("secret.x", "s".into())],
        );
        assert_eq!(
            got,
            [
                "keep=String(\"me\")",
                "word=String(\"new\")",
                "n=String(\"7\")",
                "up=Array([String(\"a\"), Double(1.5), Bool(true), Map([KeyValue { key: \"k\", value: Empty }])])",
                "copy=Int(7)",
                "fallback=Double(1.5)",
            ]
        );
    }

    #[test]
    fn hash_extract_and_delete() {
        let got = after(
            "- {key: mail, action: extract, pattern: \"^(?P<user>[^@]+)@(?P<host>.+)$\"}\n\
             - {key: number, action: extract, pattern: \"(?P<never>1)\"}\n\
             - {key: user, pattern: \"^ho\", action: hash}\n\
             - {key: mail, pattern: \"^x\", action: delete}\n",
            &[("mail", "a@b".into()), ("x1", 1.into()), ("number", 1.into())],
        );
        let hash = |text| format!("String({text:?})");
        let user = hash("ca978112ca1bbdcafac231b39a23dc4da786eff8147c4e72b9807785afee48bb");
        let host = hash("3e23e8160039594a33894f6564e1b1348bbd7a0088d42c4acb73eeaed59c009d");
        assert_eq!(got, [format!("host={host}"), "number=Int(1)".to_owned(), format!("user={user}")]);
    }

    #[test]
    fn a_variable_keeps_the_type_that_yaml_gives_it() {
        assert_eq!(after("- {key: id, value: \"${env:TEST_NUMBER}\", action: upsert}\n", &[]), ["id=Int(123456)"]);
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
            ("{key: a, action: convert}", "`converted_type` is missing"),
            ("{key: a, action: hash, value: 1}", "takes no `value`"),
            ("{key: a, action: extract}", "`pattern` is missing"),
            ("{key: a, action: extract, pattern: \"(.*)\"}", "needs a name"),
            ("{key: a, action: extract, pattern: \"(?P<a>.)(.)\"}", "needs a name"),
            ("{key: a, value: 1, from_attribute: b, action: insert}", "together"),
            ("{key: a, from_context: b, action: insert}", "not supported"),
            ("{pattern: \"(\", action: delete}", "regular expression"),
            ("{action: delete}", "`key` or `pattern` is missing"),
            ("{action: insert, value: 1}", "`key` is missing"),
            ("{key: a, value: 1, action: delete}", "takes no `value`"),
        ] {
            let text = problems_of(&format!("actions: [{action}]"), |section| drop(read(section, "actions")));
            assert!(text.contains(word), "{action}: {text}");
        }
        assert!(problems_of("{}", |section| drop(read(section, "actions"))).contains("at least one action"));
    }
}
