//! `headers` of an exporter: a map, or a list of `{name, value}`.

use reqwest::header::{HeaderMap, HeaderName, HeaderValue};

use crate::collector::config::section::Section;
use crate::diag::Problem;

const KEY: &str = "headers";

/// The headers; their values are secrets, so they are marked as such and stay out of every message.
pub(in crate::collector::exporters) fn read_headers(section: &mut Section<'_>) -> HeaderMap {
    let mut headers = HeaderMap::new();
    for (name, value) in section.text_pairs(KEY).unwrap_or_default() {
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
