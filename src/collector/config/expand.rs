//! `${env:X}`, `${file:PATH}` and `${yaml:TEXT}` in the configuration, as the reference collector expands them.
//!
//! - A value that is one reference as a whole is typed by YAML, but keeps the variable's text for targets that want
//!   text. A reference inside a longer string gives text.
//! - What came out is looked at again, so a variable may hold references; a thousand rounds or a megabyte are an error,
//!   and so is what refers to itself through maps and lists, which would grow for ever.
//! - Keys of maps stay as they are written.
//! - `${env:X:-default}` is for unset variables. An unset one without a default, and an empty one, is null.
//! - An odd number of further `$` before `${` protects it. At the very end each `$$` becomes one `$`. Whoever wants a
//!   variable's `$` to survive doubles it in the variable.
//!
//! Values never show up in messages: they may be secrets. Those of variables named like one are noted, so that nothing
//! that is said later shows them.

use std::cell::{Cell, RefCell};
use std::ffi::OsString;

use super::header_notes::{HeaderNotes, Part};
use super::node::{Entry, Node, Value};
use super::section::Findings;
use crate::diag::{Problem, is_secret_name};

const MOST_ROUNDS: usize = 1000;
const MOST_BYTES: usize = 1 << 20;
/// References inside of what a reference gave, one in the other, and all of a configuration together.
const DEEPEST: usize = 20;
const MOST_IN_ALL: usize = 10_000;

/// What the expansion needs from outside.
pub struct Sources<'a> {
    /// The environment.
    pub variable: &'a dyn Fn(&str) -> Option<OsString>,
    /// The content of a file.
    pub file: &'a dyn Fn(&str) -> std::io::Result<String>,
    /// Reads a text as YAML; `None` if it is none.
    pub parse: &'a dyn Fn(&str) -> Option<Node>,
}

/// Expands a whole configuration; problems carry the line of the value.
#[must_use]
pub fn expand(node: Node, sources: &Sources<'_>, findings: &Findings) -> (Node, HeaderNotes) {
    let expander = Expander::new(sources, findings);
    let node = expander.node(node, Place { path: "", part: Part::Root }, 0);
    (node, expander.notes.into_inner())
}

/// What a text comes to, as part of a longer one; `None` if it comes to nothing.
#[must_use]
pub fn expand_text(text: &str, sources: &Sources<'_>) -> Option<String> {
    let findings = Findings::new("");
    let expander = Expander::new(sources, &findings);
    let mut text = text.to_owned();
    for _ in 0..MOST_ROUNDS {
        let Some(reference) = find(&text) else { return Some(unescape(&text)) };
        let found = expander.resolve(reference, 1, "").ok()?;
        text = text.replace(reference, found.as_text());
        if text.len() > MOST_BYTES {
            break;
        }
    }
    None
}

/// The scheme of what stands between `${` and `}`, and what follows it: without one it is a variable.
pub(super) fn scheme_and_rest(inner: &str) -> (&str, &str) {
    inner.split_once(':').unwrap_or(("env", inner))
}

/// `NAME` or `NAME:-default`.
pub(super) fn name_and_default(rest: &str) -> (&str, Option<&str>) {
    rest.split_once(":-").map_or((rest, None), |(name, default)| (name, Some(default)))
}

/// Where a value stands.
#[derive(Clone, Copy)]
struct Place<'a> {
    path: &'a str,
    part: Part,
}

struct Expander<'a> {
    sources: &'a Sources<'a>,
    findings: &'a Findings,
    notes: RefCell<HeaderNotes>,
    /// How many references have been replaced.
    resolved: Cell<usize>,
    /// They have no end, which has been said.
    endless: Cell<bool>,
}

impl<'a> Expander<'a> {
    fn new(sources: &'a Sources<'a>, findings: &'a Findings) -> Self {
        let (notes, resolved, endless) = Default::default();
        Self { sources, findings, notes, resolved, endless }
    }

    /// `depth`: how many references `node` came out of, one in the other.
    fn node(&self, node: Node, place: Place<'_>, depth: usize) -> Node {
        let (line, before, Place { path, part }) = (node.line, self.resolved.get(), place);
        let expanded = self.references(node, place).and_then(|node| {
            let depth = depth + usize::from(node.referenced);
            if depth > DEEPEST || self.endless.get() { Err(endless()) } else { Ok((node, depth)) }
        });
        let (mut node, depth) = match expanded {
            Ok(expanded) => expanded,
            Err(problem) => {
                // Once is enough: what grows without end would say it without end.
                if !self.endless.get() {
                    self.findings.push(line, path, problem);
                }
                self.endless.set(self.endless.get() || depth >= DEEPEST || self.resolved.get() > MOST_IN_ALL);
                return Node::new(line, Value::Null);
            }
        };
        node.value = match node.value {
            Value::List(items) => {
                let item = |(index, item)| {
                    let path = format!("{path}[{index}]");
                    self.node(item, Place { path: &path, part: part.item() }, depth)
                };
                Value::List(items.into_iter().enumerate().map(item).collect())
            }
            Value::Map(entries) => {
                Value::Map(entries.into_iter().map(|entry| self.entry(entry, place, depth)).collect())
            }
            Value::Text(text) => Value::Text(unescape(&text)),
            other => other,
        };
        node.text = node.text.map(|text| unescape(&text));
        if depth > 0 || self.resolved.get() > before {
            self.notes.borrow_mut().value(part, path, &node);
        }
        node
    }

    fn entry(&self, entry: Entry, Place { path, part }: Place<'_>, depth: usize) -> Entry {
        let Entry { key, line, node } = entry;
        let path = if path.is_empty() { key.clone() } else { format!("{path}.{key}") };
        let place = Place { path: &path, part: part.entry(&key) };
        Entry { node: self.node(node, place, depth), key, line }
    }

    /// Replaces references until there are none.
    fn references(&self, mut node: Node, Place { path, part }: Place<'_>) -> Result<Node, Problem> {
        for _ in 0..MOST_ROUNDS {
            let Value::Text(text) = &node.value else { return Ok(node) };
            let Some(reference) = find(text) else { return Ok(node) };
            self.resolved.set(self.resolved.get() + 1);
            if self.resolved.get() > MOST_IN_ALL {
                break;
            }
            self.notes.borrow_mut().reference(part, reference);
            let found = self.resolve(reference, node.line, path)?;
            if reference == text {
                node = self.whole(found, node.line);
                continue;
            }
            let replaced = text.replace(reference, found.as_text());
            if replaced.len() > MOST_BYTES {
                break;
            }
            node = Node { referenced: node.referenced, ..Node::new(node.line, Value::Text(replaced)) };
        }
        Err(endless())
    }

    fn whole(&self, found: Found, line: u32) -> Node {
        let text = match found {
            Found::EmptyText => return Node::new(line, Value::Text(String::new())),
            Found::Text(text) => text,
        };
        let value = match (self.sources.parse)(&text) {
            Some(Node { value: Value::Text(_), .. }) | None => Value::Text(text.clone()),
            Some(mut parsed) => {
                put_at(&mut parsed, line);
                parsed.value
            }
        };
        Node { line, value, text: Some(text), referenced: true }
    }

    fn resolve(&self, reference: &str, line: u32, path: &str) -> Result<Found, Problem> {
        let inner = &reference[2..reference.len() - 1];
        if inner.contains('$') {
            return Err(Problem::new(format!("`{reference}` contains a `$`")).hint("write `$$` for a `$` in a value"));
        }
        let (scheme, rest) = scheme_and_rest(inner);
        match scheme {
            "env" => self.variable(reference, rest, line, path),
            "yaml" => Ok(Found::Text(rest.to_owned())),
            "file" => (self.sources.file)(rest)
                .map(Found::Text)
                .map_err(|error| Problem::new(format!("`{reference}`: cannot read the file `{rest}`: {error}"))),
            _ => {
                let problem = Problem::new(format!("`{reference}`: references to `{scheme}` are not supported"));
                Err(problem.hint("supported: `${env:NAME}`, `${env:NAME:-default}`, `${file:PATH}`, `${yaml:TEXT}`"))
            }
        }
    }

    /// `NAME` or `NAME:-default`.
    fn variable(&self, reference: &str, rest: &str, line: u32, path: &str) -> Result<Found, Problem> {
        let (name, default) = name_and_default(rest);
        let good_start = name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_');
        if !good_start || !name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_') {
            let problem = Problem::new(format!("`{reference}`: `{name}` is no name of a variable"));
            return Err(problem.hint("a name has letters, digits and `_`, and does not begin with a digit"));
        }
        match (self.sources.variable)(name) {
            Some(value) => match value.into_string() {
                Ok(text) => {
                    if is_secret_name(name) {
                        self.findings.secrets.borrow_mut().add(&unescape(&text));
                    }
                    Ok(Found::Text(text))
                }
                Err(_) => Err(Problem::new(format!("the value of the variable `{name}` is not UTF-8"))),
            },
            None => Ok(match default {
                Some("") => Found::EmptyText,
                Some(default) => Found::Text(default.to_owned()),
                None => {
                    let problem = Problem::warning(format!("the variable `{name}` is not set: it counts as empty"));
                    self.findings.push(line, path, problem);
                    Found::Text(String::new())
                }
            }),
        }
    }
}

fn endless() -> Problem {
    let message = "a variable or a file refers to itself: too many recursive expansions";
    Problem::new(message).hint("double the `$` of a value that shall stay as it is")
}

enum Found {
    /// A default that was written as empty: text, not null.
    EmptyText,
    Text(String),
}

impl Found {
    fn as_text(&self) -> &str {
        match self {
            Self::EmptyText => "",
            Self::Text(text) => text,
        }
    }
}

/// The first innermost reference that is not protected.
fn find(text: &str) -> Option<&str> {
    let mut from = 0;
    while let Some(close) = text[from..].find('}').map(|place| from + place) {
        if let Some(open) = text[from..=close].rfind("${").map(|place| from + place) {
            let dollars = text[from..open].bytes().rev().take_while(|byte| *byte == b'$').count();
            if dollars % 2 == 0 {
                return Some(&text[open..=close]);
            }
        }
        from = close + 1;
    }
    None
}

fn unescape(text: &str) -> String {
    text.replace("$$", "$")
}

fn put_at(node: &mut Node, line: u32) {
    node.line = line;
    match &mut node.value {
        Value::List(items) => items.iter_mut().for_each(|item| put_at(item, line)),
        Value::Map(entries) => {
            for entry in entries {
                entry.line = line;
                put_at(&mut entry.node, line);
            }
        }
        _ => {}
    }
}
