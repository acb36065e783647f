//! The values of a section: typed, each wrong one recorded.

use std::time::Duration;

use super::Section;
use crate::collector::config::duration::parse_duration;
use crate::collector::config::node::{Node, Value};
use crate::diag::Problem;

impl Section<'_> {
    /// Text.
    pub fn text(&mut self, key: &'static str) -> Option<String> {
        let entry = self.ask_value(key)?;
        let text = entry.node.as_text().map(str::to_owned);
        if text.is_none() {
            self.wrong(entry, "text", "write the value in quotes");
        }
        text
    }

    /// Text that must be there.
    pub fn required_text(&mut self, key: &'static str) -> Option<String> {
        let had = self.problem_count();
        let text = self.text(key).filter(|text| !text.is_empty());
        if text.is_none() && self.problem_count() == had {
            self.missing(key);
        }
        text
    }

    /// One of a few words.
    pub fn word(&mut self, key: &'static str, words: &[&'static str]) -> Option<&'static str> {
        let text = self.text(key)?;
        let word = words.iter().copied().find(|word| *word == text);
        if word.is_none() {
            let problem =
                Problem::new(format!("`{text}` is not a value of `{key}`")).suggest(&text, words.iter().copied());
            self.problem(key, problem);
        }
        word
    }

    /// A boolean; the text of a reference counts as YAML types it.
    pub fn boolean(&mut self, key: &'static str) -> Option<bool> {
        let entry = self.ask_value(key)?;
        if let Value::Boolean(value) = entry.node.value {
            return Some(value);
        }
        self.wrong(entry, "a boolean", "write `true` or `false`");
        None
    }

    /// An integer from `least` upwards.
    pub fn integer(&mut self, key: &'static str, least: i64) -> Option<i64> {
        let entry = self.ask_value(key)?;
        match whole(&entry.node.value) {
            Some(value) if value >= least => return Some(value),
            Some(value) => {
                self.problem(key, Problem::new(format!("`{key}` is {value}; the least is {least}")));
            }
            None => self.wrong(entry, "an integer", "write a whole number without quotes"),
        }
        None
    }

    /// A number.
    pub fn number(&mut self, key: &'static str) -> Option<f64> {
        let entry = self.ask_value(key)?;
        match entry.node.value {
            Value::Double(value) => return Some(value),
            Value::Integer(value) => return Some(value as f64),
            _ => self.wrong(entry, "a number", "write a number without quotes"),
        }
        None
    }

    /// A duration: Go's text (`1m30s`), or an integer of nanoseconds. Negative ones are problems.
    pub fn duration(&mut self, key: &'static str) -> Option<Duration> {
        let entry = self.ask_value(key)?;
        let parsed = match whole(&entry.node.value) {
            Some(nanoseconds) => u64::try_from(nanoseconds).map(Duration::from_nanos).map_err(|_| "it is negative"),
            None => match entry.node.as_text() {
                Some(text) => parse_duration(text),
                None => Err("it is neither text nor an integer"),
            },
        };
        match parsed {
            Ok(duration) => Some(duration),
            Err(why) => {
                let written = entry.node.as_written().unwrap_or(entry.node.kind());
                let problem = Problem::new(format!("`{key}` is no duration: {why}: `{written}`"));
                self.problem(key, problem.hint("write a number with a unit, such as `500ms`, `10s` or `1m30s`"));
                None
            }
        }
    }

    /// A list of texts. A single text counts as a list of its parts between commas.
    pub fn texts(&mut self, key: &'static str) -> Option<Vec<String>> {
        let entry = self.ask_value(key)?;
        let Value::List(items) = &entry.node.value else {
            if let Some(text) = entry.node.as_text() {
                return Some(text.split(',').filter(|_| !text.is_empty()).map(str::to_owned).collect());
            }
            self.wrong(entry, "a list of texts", "write `[a, b]`");
            return None;
        };
        let mut texts = Vec::new();
        for (index, item) in items.iter().enumerate() {
            if let Some(text) = item.as_text() {
                texts.push(text.to_owned());
            } else {
                let path = format!("{}[{index}]", self.path_of(key));
                let problem = Problem::new(format!("expected text, found {}", item.kind()));
                self.findings.push(item.line, &path, problem.hint("write the value in quotes"));
            }
        }
        Some(texts)
    }

    /// A map from text to text, in the order of the file.
    pub fn text_map(&mut self, key: &'static str) -> Option<Vec<(String, String)>> {
        let entry = self.ask_value(key)?;
        let Some(entries) = entry.node.entries() else {
            self.wrong(entry, "a map of texts", "write `{key: value}`");
            return None;
        };
        let mut pairs = Vec::new();
        for inner in entries {
            if let Some(text) = inner.node.as_text() {
                pairs.push((inner.key.clone(), text.to_owned()));
            } else {
                let path = format!("{}.{}", self.path_of(key), inner.key);
                let problem = Problem::new(format!("expected text, found {}", inner.node.kind()));
                self.findings.push(inner.line, &path, problem.hint("write the value in quotes"));
            }
        }
        Some(pairs)
    }

    /// The same, also as a list of maps with a `name` and a `value`.
    pub fn text_pairs(&mut self, key: &'static str) -> Option<Vec<(String, String)>> {
        let Some(Node { value: Value::List(items), .. }) = self.node(key) else { return self.text_map(key) };
        let mut pairs = Vec::new();
        for item in items {
            let text = |key| item.get(key).and_then(Node::as_text).map(str::to_owned);
            match (text("name"), text("value")) {
                (Some(name), Some(value)) => pairs.push((name, value)),
                _ => self.problem_at(key, item.line, Problem::new("expected a map with texts at `name` and `value`")),
            }
        }
        Some(pairs)
    }

    /// A `host:port` to listen on or connect to; the port must be a number up to 65535, the host may be empty or a
    /// bracketed IPv6 address.
    pub fn endpoint(&mut self, key: &'static str) -> Option<String> {
        let text = self.text(key)?;
        self.secret_user(&text);
        match check_endpoint(&text) {
            Ok(()) => Some(text),
            Err(why) => {
                let problem = Problem::new(format!("`{text}` is no address: {why}")).hint("write `host:port`");
                self.problem(key, problem);
                None
            }
        }
    }
}

fn check_endpoint(text: &str) -> Result<(), &'static str> {
    let (host, port) = text.rsplit_once(':').ok_or(if text.is_empty() { "it is empty" } else { "it has no port" })?;
    port.parse::<u16>().map_err(|_| "the port is not between 0 and 65535")?;
    if host.contains(':') && !(host.starts_with('[') && host.ends_with(']')) {
        return Err("an IPv6 address must stand in brackets");
    }
    if host.contains('/') { Err("the host has a slash") } else { Ok(()) }
}

/// An integer, also one that is written as `1e3` or `5.0`.
#[expect(clippy::cast_possible_truncation, reason = "it is whole and in range")]
fn whole(value: &Value) -> Option<i64> {
    match *value {
        Value::Integer(value) => Some(value),
        Value::Double(value) if value.fract() == 0.0 && value.abs() < 9e15 => Some(value as i64),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::super::Findings;
    use super::*;
    use crate::collector::config::node::Entry;

    fn map(entries: &[(&str, Value)]) -> Node {
        let entry = |(index, (key, value)): (usize, &(&str, Value))| {
            let line = u32::try_from(index).expect("small") + 2;
            Entry { key: (*key).to_owned(), line, node: Node::new(line, value.clone()) }
        };
        Node::new(1, Value::Map(entries.iter().enumerate().map(entry).collect()))
    }

    fn texts(findings: &Findings) -> Vec<String> {
        let line = |p: &Problem| format!("{} {}: {}", p.location, p.path, p.message);
        findings.problems.borrow().iter().map(line).collect()
    }

    #[test]
    fn every_wrong_key_is_found_at_its_line() {
        let findings = Findings::new("c.yaml");
        let node = map(&[
            ("path", Value::Integer(5)),
            ("append", Value::Text("maybe".into())),
            ("flush_interval", Value::Text("100 parsecs".into())),
            ("pathh", Value::Null),
            ("rotation", Value::Null),
            ("endpoint", Value::Text("127.0.0.1:99999".into())),
        ]);
        Section::read(&findings, &node, "exporters.file", 1, |section| {
            section.unsupported(&["rotation"]);
            assert_eq!(section.required_text("path"), None);
            assert_eq!(section.boolean("append"), None);
            assert_eq!(section.duration("flush_interval"), None);
            assert_eq!(section.endpoint("endpoint"), None);
        });
        assert_eq!(
            texts(&findings),
            [
                "c.yaml:2 exporters.file.path: expected text, found an integer",
                "c.yaml:3 exporters.file.append: expected a boolean, found text",
                "c.yaml:4 exporters.file.flush_interval: `flush_interval` is no duration: its unit is none of ns, us, \
                 ms, s, m, h: `100 parsecs`",
                "c.yaml:7 exporters.file.endpoint: `127.0.0.1:99999` is no address: the port is not between 0 and 65535",
                "c.yaml:5 exporters.file.pathh: unknown key `pathh`",
                "c.yaml:6 exporters.file.rotation: `rotation` is not supported by this collector",
            ]
        );
    }

    #[test]
    fn a_duration_may_be_a_whole_number_in_any_form() {
        let findings = Findings::new("c.yaml");
        let node = map(&[("a", Value::Integer(5)), ("b", Value::Double(1e9)), ("c", Value::Double(1.5))]);
        let read = Section::read(&findings, &node, "", 1, |section| ["a", "b", "c"].map(|key| section.duration(key)));
        assert_eq!(read, Some([Some(Duration::from_nanos(5)), Some(Duration::from_secs(1)), None]));
        assert_eq!(texts(&findings).len(), 1, "{:?}", texts(&findings));
    }

    #[test]
    fn a_referenced_number_is_text_where_text_is_wanted() {
        let mut node = map(&[("path", Value::Integer(83))]);
        if let Value::Map(entries) = &mut node.value {
            entries[0].node.text = Some("0123".into());
            entries[0].node.referenced = true;
        }
        let findings = Findings::new("c.yaml");
        let path = Section::read(&findings, &node, "", 1, |section| section.text("path"));
        assert_eq!(path, Some(Some("0123".to_owned())));
        assert!(findings.problems.borrow().is_empty());
    }
}
