//! Patterns of rules: anchored, in Go's syntax, with Go's templates.

use regex::{Captures, Regex};

use crate::collector::pattern::compile;

/// A pattern that matches whole texts only; a dot matches line breaks too.
#[derive(Clone, Debug)]
pub struct Pattern {
    regex: Regex,
}

impl Pattern {
    /// Compiles it.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn new(pattern: &str) -> Result<Self, String> {
        compile(&format!("^(?s:{pattern})$")).map(|regex| Self { regex })
    }

    /// Whether the text matches as a whole.
    #[must_use]
    pub fn matches(&self, text: &str) -> bool {
        self.regex.is_match(text)
    }

    /// What the templates become for this text; `None` if it does not match.
    #[must_use]
    pub fn expand<const N: usize>(&self, text: &str, templates: [&str; N]) -> Option<[String; N]> {
        let captures = self.regex.captures(text)?;
        Some(templates.map(|template| fill(template, &captures, &self.regex)))
    }
}

/// Fills in `$1`, `${1}`, `$name`, `${name}` and `$$`. A name is as long as it can be; a group that is not there is
/// empty; a `$` before anything else stays.
fn fill(template: &str, captures: &Captures<'_>, regex: &Regex) -> String {
    let mut filled = String::with_capacity(template.len());
    let mut rest = template;
    while let Some((before, after)) = rest.split_once('$') {
        filled.push_str(before);
        if let Some(after) = after.strip_prefix('$') {
            filled.push('$');
            rest = after;
        } else if let Some((name, after)) = reference(after) {
            filled.push_str(group(name, captures, regex));
            rest = after;
        } else {
            filled.push('$');
            rest = after;
        }
    }
    filled.push_str(rest);
    filled
}

/// The name of a reference and what stands behind it.
fn reference(text: &str) -> Option<(&str, &str)> {
    let inner = text.strip_prefix('{');
    let start = inner.unwrap_or(text);
    let end = start.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(start.len());
    let (name, rest) = start.split_at(end);
    let rest = if inner.is_some() { rest.strip_prefix('}')? } else { rest };
    (!name.is_empty()).then_some((name, rest))
}

fn group<'t>(name: &str, captures: &Captures<'t>, regex: &Regex) -> &'t str {
    let numeric = name.bytes().all(|byte| byte.is_ascii_digit()) && (name.len() == 1 || !name.starts_with('0'));
    if numeric {
        return name.parse().ok().and_then(|number| captures.get(number)).map_or("", |found| found.as_str());
    }
    // Of several groups of one name, the first that took part counts.
    let mut of_name = regex.capture_names().enumerate().filter(|(_, known)| *known == Some(name));
    of_name.find_map(|(number, _)| captures.get(number)).map_or("", |found| found.as_str())
}

#[cfg(test)]
mod tests {
    use super::Pattern;

    #[test]
    fn patterns_match_whole_texts() {
        let matches = |pattern: &str, text: &str| Pattern::new(pattern).expect(pattern).matches(text);
        assert!(matches("a|b", "b") && !matches("a|b", "ab"));
        assert!(matches(".*", "a\nb") && matches("", "") && !matches("", "a"));
        assert!(Pattern::new("(").is_err() && Pattern::new("a(?=b)").is_err());
    }

    #[test]
    fn templates_are_filled_as_go_does_it() {
        let pattern = Pattern::new("(?P<host>[^:]+):([0-9]+)(x)?").expect("pattern");
        for (template, filled) in [
            ("$1", "h"),
            ("${1}0", "h0"),
            ("$10", ""),
            ("$1_0", ""),
            ("$host-$2", "h-80"),
            ("${host}", "h"),
            ("$$1", "$1"),
            ("$", "$"),
            ("a$-b", "a$-b"),
            ("${", "${"),
            ("${1", "${1"),
            ("${a b}", "${a b}"),
            ("$3|$9|$nope", "||"),
            ("$01", ""),
            ("$0", "h:80"),
        ] {
            assert_eq!(pattern.expand("h:80", [template]), Some([filled.to_owned()]), "{template}");
        }
        assert_eq!(pattern.expand("none", ["$1"]), None);
    }
}
