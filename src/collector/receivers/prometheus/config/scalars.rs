//! Scalars as Prometheus reads them: where it wants text, it takes any scalar, but numbers as they are after typing.
//!
//! The reference types the whole configuration, writes it anew and has Prometheus read that: `007` has become `7`,
//! `1.50` is `1.5`, a date has a time.

use std::time::Duration;

use super::super::exposition::canonical;
use super::duration::parse_duration;
use crate::collector::config::node::{Node, Value};
use crate::collector::config::section::Section;
use crate::diag::Problem;

/// The text of a scalar; null is the empty text. `None` for a list or a map.
pub fn text_of(node: &Node) -> Option<String> {
    Some(match &node.value {
        Value::Null => String::new(),
        Value::Boolean(value) => value.to_string(),
        Value::Integer(value) => value.to_string(),
        Value::Double(value) if value.is_nan() => ".nan".into(),
        Value::Double(value) if value.is_infinite() => if *value > 0.0 { ".inf" } else { "-.inf" }.into(),
        Value::Double(value) if value.to_bits() == (-0.0_f64).to_bits() => "-0.0".into(),
        Value::Double(value) => canonical(*value),
        Value::Text(text) => text.clone(),
        Value::Untakable(_) => date_and_time(node.text.as_deref()?),
        Value::List(_) | Value::Map(_) => return None,
    })
}

/// A date has a time of day; what is none stays.
fn date_and_time(text: &str) -> String {
    match (text.len(), text.as_bytes()) {
        (10, [.., b'-', _, _]) => format!("{text}T00:00:00Z"),
        (19, bytes) if bytes[10] == b' ' => format!("{}T{}Z", &text[..10], &text[11..]),
        _ => text.to_owned(),
    }
}

/// Text at a key; `None` if it is absent, null or no scalar.
pub fn text(section: &mut Section<'_>, key: &'static str) -> Option<String> {
    let node = section.node(key).filter(|node| node.value != Value::Null)?;
    let text = text_of(node);
    if text.is_none() {
        section.problem(key, Problem::new(format!("expected text, found {}", node.kind())));
    }
    text
}

/// Text that says something.
pub fn filled(section: &mut Section<'_>, key: &'static str) -> Option<String> {
    text(section, key).filter(|text| !text.is_empty())
}

/// One of a few words.
pub fn word(section: &mut Section<'_>, key: &'static str, words: &[&'static str]) -> Option<&'static str> {
    let text = filled(section, key)?;
    let word = words.iter().copied().find(|word| *word == text);
    if word.is_none() {
        let problem = Problem::new(format!("`{text}` is not a value of `{key}`"));
        section.problem(key, problem.suggest(&text, words.iter().copied()));
    }
    word
}

/// A list of texts; a single text is none.
pub fn texts(section: &mut Section<'_>, key: &'static str) -> Option<Vec<String>> {
    let node = section.node(key).filter(|node| node.value != Value::Null)?;
    let Value::List(items) = &node.value else {
        let problem = Problem::new(format!("expected a list of texts, found {}", node.kind()));
        section.problem(key, problem.hint("write `[a, b]`"));
        return None;
    };
    let texts: Option<Vec<String>> = items.iter().map(text_of).collect();
    if texts.is_none() {
        section.problem(key, Problem::new("expected a list of texts, found a list or map in it"));
    }
    texts
}

/// A map of labels, in the order of the file.
pub fn labels(section: &mut Section<'_>, key: &'static str) -> Vec<(String, String)> {
    let Some(node) = section.node(key) else { return Vec::new() };
    let Some(entries) = node.entries() else {
        let problem = Problem::new(format!("expected a map of texts, found {}", node.kind()));
        section.problem(key, problem.hint("write `{name: value}`"));
        return Vec::new();
    };
    let mut pairs = Vec::new();
    for entry in entries {
        match text_of(&entry.node) {
            Some(_) if entry.key.is_empty() => {
                section.problem_at(key, entry.line, Problem::new("the empty text is no name of a label"));
            }
            Some(text) => pairs.push((entry.key.clone(), text)),
            None => section.problem(key, Problem::new(format!("the value of `{}` is no text", entry.key))),
        }
    }
    pairs
}

/// A whole number that is not negative; zero counts as absent.
pub fn count(section: &mut Section<'_>, key: &'static str) -> Option<usize> {
    section.integer(key, 0).and_then(|number| usize::try_from(number).ok()).filter(|number| *number > 0)
}

/// A duration of Prometheus; zero counts as absent.
pub fn duration(section: &mut Section<'_>, key: &'static str) -> Option<Duration> {
    let text = text(section, key)?;
    match parse_duration(&text) {
        Ok(duration) => Some(duration).filter(|duration| !duration.is_zero()),
        Err(why) => {
            let problem = Problem::new(format!("`{key}` is no duration: {why}: `{text}`"));
            section.problem(key, problem.hint("write whole numbers with units, such as `500ms`, `15s` or `1m30s`"));
            None
        }
    }
}

#[cfg(test)]
mod tests {
    use super::text_of;
    use crate::collector::testing::read_section;

    #[test]
    fn scalars_are_written_as_they_are_typed() {
        for (yaml, text) in [
            ("007", "7"),
            ("0o17", "15"),
            ("1_000", "1000"),
            ("1.50", "1.5"),
            ("1e3", "1000.0"),
            ("1e21", "1e+21"),
            ("123456789.5", "1.234567895e+08"),
            ("-0.0", "-0.0"),
            (".inf", ".inf"),
            ("1e400", "1e400"),
            ("TRUE", "true"),
            ("on", "on"),
            ("2024-01-02", "2024-01-02T00:00:00Z"),
            ("2024-01-02 03:04:05", "2024-01-02T03:04:05Z"),
            ("'007'", "007"),
            ("12345678901234567890", "12345678901234567890"),
            ("~", ""),
            ("${env:TEST_NUMBER}", "123456"),
        ] {
            let found = read_section(&format!("k: {yaml}\n"), |section| section.node("k").and_then(text_of));
            assert_eq!(found.as_deref(), Some(text), "{yaml}");
        }
    }
}
