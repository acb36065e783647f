//! What the processors with statements and conditions ([`crate::collector::ottl`]) have in common in their configuration.

use std::borrow::Cow;

use crate::collector::config::node::{Node, Value};
use crate::collector::config::section::Section;
use crate::collector::ottl::{ErrorMode, Level, Wrong};
use crate::diag::{Problem, nearest};
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

/// A list of texts, or of groups with a context: the ones and the others, with their places. Both in one list are a
/// problem; `what` the texts are.
pub(super) fn flat_and_groups<'a>(
    section: &Section<'_>,
    key: &str,
    items: &'a [Node],
    what: &str,
) -> (Vec<Node>, Vec<(usize, &'a Node)>) {
    let (flat, groups): (Vec<_>, Vec<_>) = items.iter().enumerate().partition(|(_, item)| item.as_text().is_some());
    if !flat.is_empty() && !groups.is_empty() {
        section.problem(key, Problem::new(format!("{what} and groups with a context cannot stand in one list")));
    }
    (flat.into_iter().map(|(_, item)| item.clone()).collect(), groups)
}

/// What a group says of its context.
pub(super) enum Said {
    /// Nothing.
    Nothing,
    /// One of the signal's.
    Context(Level),
    /// None of them; perhaps this one is meant.
    Wrong(Option<Level>),
}

/// The context that a group names.
pub(super) fn context(section: &mut Section<'_>, signal: Signal) -> Said {
    if !section.has("context") {
        return Said::Nothing;
    }
    let name = section.text("context").unwrap_or_default();
    let levels = Level::of(signal);
    let called = |name: &str| Level::named(name).filter(|level| levels.contains(level));
    if let Some(level) = called(&name.to_ascii_lowercase()) {
        return Said::Context(level);
    }
    let names = || levels.iter().map(|level| level.name());
    let message = format!("the context `{name}` of {} is not supported by this collector", signal.name());
    section.problem("context", Problem::new(message).suggest(&name, names()));
    Said::Wrong(nearest(&name, names()).and_then(called))
}

/// Statements or conditions of a list, with where they stand.
pub(super) struct Texts<'a> {
    key: &'static str,
    nodes: Vec<&'a Node>,
    pub list: Vec<&'a str>,
}

impl<'a> Texts<'a> {
    /// The texts of a list; what else is in it is a problem.
    pub fn read(section: &Section<'_>, key: &'static str, items: &'a [Node]) -> Self {
        for item in items.iter().filter(|item| item.as_text().is_none()) {
            section.problem_at(key, item.line, Problem::new(format!("expected text, found {}", item.kind())));
        }
        let (nodes, list) = items.iter().filter_map(|item| Some((item, item.as_text()?))).unzip();
        Self { key, nodes, list }
    }

    /// Says what is wrong with one of them.
    pub fn say(&self, section: &Section<'_>, wrong: &Wrong) {
        if let (Some(node), Some(text)) = (self.nodes.get(wrong.index), self.list.get(wrong.index)) {
            let word = if wrong.condition { "condition" } else { "statement" };
            section.problem_at(self.key, node.line, wrong.fault.problem(word, text));
        }
    }
}
