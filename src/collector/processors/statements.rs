//! What the processors with statements and conditions ([`crate::collector::ottl`]) have in common in their configuration.

use std::borrow::Cow;

use crate::collector::config::node::{Node, Value};
use crate::collector::config::section::Section;
use crate::collector::ottl::{ErrorMode, Level};
use crate::diag::Problem;
use crate::otlp::Signal;

/// `error_mode`, if it is there and right.
pub(super) fn error_mode(section: &mut Section<'_>) -> Option<ErrorMode> {
    if section.node("error_mode").is_some_and(|node| node.value == Value::Null) {
        let problem = Problem::new("`error_mode` is empty");
        section.problem("error_mode", problem.suggest("", ErrorMode::NAMES));
    }
    let text = section.text("error_mode")?;
    let mode = ErrorMode::named(&text);
    if mode.is_none() {
        let problem = Problem::new(format!("`{text}` is not a value of `error_mode`"));
        section.problem("error_mode", problem.suggest(&text, ErrorMode::NAMES));
    }
    mode
}

/// The list at a key, if it is one.
pub(super) fn list<'a>(section: &mut Section<'a>, key: &'static str) -> Option<&'a [Node]> {
    let node = section.node(key)?;
    if let Value::List(items) = &node.value {
        return Some(items);
    }
    section.problem(key, Problem::new(format!("expected a list, found {}", node.kind())));
    None
}

/// The list at a key inside a group or a block: null counts as absent, one text as a list of its parts between commas.
pub(super) fn inner_list<'a>(section: &mut Section<'a>, key: &'static str) -> Option<Cow<'a, [Node]>> {
    let node = section.node(key)?;
    match node.as_text() {
        _ if node.value == Value::Null => None,
        Some("") => Some(Cow::default()),
        Some(text) => Some(text.split(',').map(|part| Node::new(node.line, Value::Text(part.to_owned()))).collect()),
        None => list(section, key).map(Cow::Borrowed),
    }
}

/// The context that a group names, if it is one of the signal.
pub(super) fn context(section: &mut Section<'_>, signal: Signal) -> Result<Option<Level>, ()> {
    if !section.has("context") {
        return Ok(None);
    }
    let name = section.text("context").unwrap_or_default();
    let levels = Level::of(signal);
    let found = levels.iter().copied().find(|level| level.name() == name.to_ascii_lowercase());
    if found.is_none() {
        let message = format!("the context `{name}` of {} is not supported by this collector", signal.name());
        let problem = Problem::new(message).suggest(&name, levels.iter().map(|level| level.name()));
        section.problem("context", problem);
        return Err(());
    }
    Ok(found)
}

/// The texts of a list; None if something else is in it.
pub(super) fn texts<'a>(section: &Section<'_>, key: &str, items: &'a [Node]) -> Option<Vec<&'a str>> {
    let text = |item: &'a Node| {
        let text = item.as_text();
        if text.is_none() {
            section.problem_at(key, item.line, Problem::new(format!("expected text, found {}", item.kind())));
        }
        text
    };
    let texts: Vec<Option<&str>> = items.iter().map(text).collect();
    texts.into_iter().collect()
}
