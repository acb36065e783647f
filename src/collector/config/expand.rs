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

use std::cell::Cell;
use std::ffi::OsString;

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
pub fn expand(node: Node, sources: &Sources<'_>, findings: &Findings) -> Node {
    let expander = Expander { sources, findings, resolved: Cell::default(), endless: Cell::default() };
    expander.node(node, "", 0)
}

struct Expander<'a> {
    sources: &'a Sources<'a>,
    findings: &'a Findings,
    /// How many references have been replaced.
    resolved: Cell<usize>,
    /// They have no end, which has been said.
    endless: Cell<bool>,
}

impl Expander<'_> {
    /// `depth`: how many references `node` came out of, one in the other.
    fn node(&self, node: Node, path: &str, depth: usize) -> Node {
        let line = node.line;
        let expanded = self.references(node, path).and_then(|node| {
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
                let item = |(index, item)| self.node(item, &format!("{path}[{index}]"), depth);
                Value::List(items.into_iter().enumerate().map(item).collect())
            }
            Value::Map(entries) => {
                Value::Map(entries.into_iter().map(|entry| self.entry(entry, path, depth)).collect())
            }
            Value::Text(text) => Value::Text(unescape(&text)),
            other => other,
        };
        node.text = node.text.map(|text| unescape(&text));
        node
    }

    fn entry(&self, entry: Entry, path: &str, depth: usize) -> Entry {
        let Entry { key, line, node } = entry;
        let path = if path.is_empty() { key.clone() } else { format!("{path}.{key}") };
        Entry { node: self.node(node, &path, depth), key, line }
    }

    /// Replaces references until there are none.
    fn references(&self, mut node: Node, path: &str) -> Result<Node, Problem> {
        for _ in 0..MOST_ROUNDS {
            let Value::Text(text) = &node.value else { return Ok(node) };
            let Some(reference) = find(text) else { return Ok(node) };
            self.resolved.set(self.resolved.get() + 1);
            if self.resolved.get() > MOST_IN_ALL {
                break;
            }
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
        let (scheme, rest) = match inner.split_once(':') {
            Some((scheme, rest)) => (scheme, rest),
            None => ("env", inner),
        };
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
        let (name, default) = match rest.split_once(":-") {
            Some((name, default)) => (name, Some(default)),
            None => (rest, None),
        };
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::collector::config::scalar::type_plain;
    use crate::diag::Severity;

    /// A text in quotes is text, `[...]` two texts, `{...}` a map with one.
    fn parsed(text: &str) -> Node {
        let inner = |open, close| text.strip_prefix(open).and_then(|rest: &str| rest.strip_suffix(close));
        let leaf = |text: &str| Node::new(1, Value::Text(text.to_owned()));
        let value = if let Some(quoted) = inner('"', '"') {
            Value::Text(quoted.to_owned())
        } else if let Some(items) = inner('[', ']') {
            Value::List(items.split(',').map(leaf).collect())
        } else if let Some(value) = inner('{', '}') {
            Value::Map(vec![Entry { key: "k".to_owned(), line: 1, node: leaf(value) }])
        } else {
            type_plain(text)
        };
        Node::new(1, value)
    }

    fn expanded(text: &str) -> Result<Node, String> {
        let variable = |name: &str| {
            let value = match name {
                "X" => "value",
                "NUMBER" => "0123",
                "TOKEN" => "ab$$cd$$$$e",
                "PORT" => "8080",
                "EMPTY" => "",
                "NESTED" => "${env:X}",
                "SELF" => "${env:SELF}",
                "TWICE" => "${env:TWICE}${env:TWICE}",
                "QUOTED" => "\"12\"",
                "IN_A_MAP" => "{${env:IN_A_MAP}}",
                "IN_A_LIST" => "[${env:IN_A_LIST},${env:IN_A_LIST}]",
                "BY_TURNS" => "{${file:turns.yaml}}",
                _ => return None,
            };
            Some(OsString::from(value))
        };
        let parse = |text: &str| Some(parsed(text));
        let findings = Findings::new("c.yaml");
        let file = |path: &str| match path {
            "there.yaml" => Ok("0123".to_owned()),
            "turns.yaml" => Ok("[${env:BY_TURNS},${env:BY_TURNS}]".to_owned()),
            _ => Err(std::io::ErrorKind::NotFound.into()),
        };
        let sources = Sources { variable: &variable, file: &file, parse: &parse };
        let node = expand(Node::new(7, Value::Text(text.into())), &sources, &findings);
        match findings.problems.take().into_iter().find(|problem| problem.severity == Severity::Error) {
            Some(problem) => Err(format!("{} {}", problem.location, problem.message)),
            None => Ok(node),
        }
    }

    fn text(text: &str) -> String {
        expanded(text).expect("expands").as_text().expect("text").to_owned()
    }

    #[test]
    fn a_whole_reference_is_typed_and_keeps_its_text() {
        let node = expanded("${env:NUMBER}").expect("expands");
        assert_eq!((node.value.clone(), node.as_text()), (Value::Integer(83), Some("0123")));
        assert_eq!(expanded("${NUMBER}").expect("expands").value, Value::Integer(83));
        assert_eq!(expanded("${env:NOPE}").expect("expands").value, Value::Null);
        assert_eq!(expanded("${env:EMPTY:-x}").expect("expands").value, Value::Null);
        assert_eq!(expanded("${env:NOPE:-5}").expect("expands").value, Value::Integer(5));
        assert_eq!(expanded("${env:NOPE:-}").expect("expands").value, Value::Text(String::new()));
        assert_eq!(text("${env:QUOTED}"), "\"12\"");
    }

    #[test]
    fn files_and_yaml() {
        let node = expanded("${file:there.yaml}").expect("expands");
        assert_eq!((node.value.clone(), node.as_text()), (Value::Integer(83), Some("0123")));
        assert_eq!(text("x${file:there.yaml}${yaml:5}"), "x01235");
        assert_eq!(expanded("${yaml:true}").expect("expands").value, Value::Boolean(true));
    }

    #[test]
    fn inside_a_string_it_is_text() {
        assert_eq!(expanded("${env:NUMBER}${env:NOPE:-}").expect("expands").value, Value::Text("0123".into()));
        assert_eq!(text("http://${env:X}:${env:PORT}/${env:X}"), "http://value:8080/value");
        assert_eq!(text("${env:NESTED}!"), "value!");
        assert_eq!(text("open ${env:X"), "open ${env:X");
        assert_eq!(text("Bearer ${env:TOKEN}"), "Bearer ab$cd$$e");
    }

    #[test]
    fn dollars() {
        assert_eq!(text("$${1}_$${2}"), "${1}_${2}");
        assert_eq!(text("$1 $ $$"), "$1 $ $");
        assert_eq!(text("$${env:X} ${env:X}"), "$value value");
        assert_eq!(text("$$${env:X}"), "$value");
        assert_eq!(text("$$$${env:X}"), "$${env:X}");
        assert_eq!(text("^([^:]+):(.+)$$"), "^([^:]+):(.+)$");
    }

    #[test]
    fn keys_stay_as_they_are_written() {
        let findings = Findings::new("c.yaml");
        let (variable, file) = (|_: &str| Some(OsString::from("value")), |_: &str| Ok(String::new()));
        let sources = Sources { variable: &variable, file: &file, parse: &|_| None };
        for key in ["${env:X}", "a${env:X}", "$$", "${nope:x}", "${env:X"] {
            let inner = Entry { key: key.to_owned(), line: 2, node: Node::new(2, Value::Text("${env:X}".to_owned())) };
            let list = Value::List(vec![Node::new(2, Value::Map(vec![inner]))]);
            let outer = Entry { key: key.to_owned(), line: 1, node: Node::new(1, list) };
            let node = expand(Node::new(1, Value::Map(vec![outer])), &sources, &findings);
            let Value::Map(outer) = node.value else { panic!("a map") };
            let Value::List(items) = &outer[0].node.value else { panic!("a list") };
            let inner = &items[0].entries().expect("a map")[0];
            assert_eq!((outer[0].key.as_str(), inner.key.as_str(), inner.node.as_text()), (key, key, Some("value")));
        }
        assert!(findings.problems.take().is_empty());
    }

    #[test]
    fn refused_with_the_line_and_without_values() {
        for (wrong, word) in [
            ("${env:1BAD}", "1BAD"),
            ("${env:A-B}", "A-B"),
            ("${nope:x}", "nope"),
            ("${env:}", "env"),
            ("${env:$X}", "$"),
            ("${file:missing.yaml}", "missing.yaml"),
            ("${env:SELF}", "recursive"),
            ("${env:TWICE}", "recursive"),
            ("${env:IN_A_MAP}", "recursive"),
            ("${env:IN_A_LIST}", "recursive"),
            ("${env:BY_TURNS}", "recursive"),
        ] {
            let message = expanded(wrong).expect_err(wrong);
            assert!(message.starts_with("c.yaml:7 ") && message.contains(word), "{wrong}: {message}");
        }
    }
}
