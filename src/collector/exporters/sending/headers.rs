//! `headers` of an exporter: a map, or a list of `{name, value}`.

use reqwest::header::{HeaderMap, HeaderName, HeaderValue};

use crate::collector::config::node::{Node, Value};
use crate::collector::config::section::Section;
use crate::diag::Problem;

const KEY: &str = "headers";

/// The headers; their values are secrets, so they are marked as such and stay out of every message.
pub(in crate::collector::exporters) fn read_headers(section: &mut Section<'_>) -> HeaderMap {
    let mut headers = HeaderMap::new();
    for (name, value) in pairs(section) {
        section.secret(&value);
        let key = HeaderName::try_from(name.as_str());
        match (key, HeaderValue::try_from(value)) {
            (Ok(key), Ok(mut value)) => {
                value.set_sensitive(true);
                if headers.insert(key, value).is_some() {
                    section.problem(KEY, Problem::new(format!("the header `{name}` is given twice")));
                }
            }
            (Err(_), _) => section.problem(KEY, Problem::new(format!("`{name}` is no name of a header"))),
            (_, Err(_)) => {
                let problem =
                    Problem::new(format!("the value of the header `{name}` has a character that no header may have"));
                section.problem(KEY, problem.hint("look for a line end at the end of the variable or file"));
            }
        }
    }
    headers
}

fn pairs(section: &mut Section<'_>) -> Vec<(String, String)> {
    let Some(Node { value: Value::List(items), .. }) = section.node(KEY) else {
        return section.text_map(KEY).unwrap_or_default();
    };
    let mut pairs = Vec::new();
    for item in items {
        let text = |key| item.get(key).and_then(Node::as_text).map(str::to_owned);
        match (text("name"), text("value")) {
            (Some(name), Some(value)) => pairs.push((name, value)),
            _ => section.problem_at(KEY, item.line, Problem::new("expected a map with texts at `name` and `value`")),
        }
    }
    pairs
}
