//! Patterns as Go reads them, for the `regex` crate.
//!
//! Both are RE2-like and agree on matches and templates; they differ in classes. Go's `\d`, `\w`, `\s` and `\b` are
//! ASCII, and inside brackets `[`, `&&`, `--` and `~~` mean themselves.

use regex::{Captures, Regex};

/// Compiles a Go pattern.
pub fn compile(pattern: &str) -> Result<Regex, String> {
    Regex::new(&translate(pattern)).map_err(|error| match error {
        regex::Error::Syntax(text) => text.lines().last().unwrap_or_default().trim_start_matches("error: ").to_owned(),
        other => other.to_string(),
    })
}

/// Fills in a replacement: `$1`, `${1}`, `$name`, `${name}`, `$$`. A name is as long as it can be; one that no group has
/// is nothing; a `$` without a name stays.
#[must_use]
pub fn expand(template: &str, pattern: &Regex, found: &Captures<'_>) -> String {
    let mut out = String::with_capacity(template.len());
    let mut rest = template;
    while let Some(place) = rest.find('$') {
        out.push_str(&rest[..place]);
        rest = &rest[place + 1..];
        if let Some(after) = rest.strip_prefix('$') {
            out.push('$');
            rest = after;
            continue;
        }
        let (braces, inner) = rest.strip_prefix('{').map_or((0, rest), |inner| (1, inner));
        let length = inner.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(inner.len());
        let (name, after) = inner.split_at(length);
        if name.is_empty() || (braces == 1 && !after.starts_with('}')) {
            out.push('$');
            continue;
        }
        let digits = name.bytes().all(|byte| byte.is_ascii_digit());
        let group = if digits {
            name.parse().ok().and_then(|number| found.get(number))
        } else {
            pattern.capture_names().flatten().find(|known| *known == name).and_then(|known| found.name(known))
        };
        out.push_str(group.map_or("", |group| group.as_str()));
        rest = &after[braces..];
    }
    out.push_str(rest);
    out
}

fn translate(pattern: &str) -> String {
    let mut out = String::with_capacity(pattern.len());
    let mut characters = pattern.chars().peekable();
    let mut in_class = false;
    // The first `]` of a class is a member of it.
    let mut class_began = false;
    while let Some(c) = characters.next() {
        let first = std::mem::take(&mut class_began);
        match c {
            '\\' => {
                let Some(next) = characters.next() else {
                    out.push('\\');
                    break;
                };
                match ascii_class(next) {
                    Some(class) => out.push_str(class),
                    None if matches!(next, 'b' | 'B') && !in_class => {
                        out.push_str(if next == 'b' { r"(?-u:\b)" } else { r"(?-u:\B)" });
                    }
                    None => out.extend(['\\', next]),
                }
            }
            '[' if in_class => {
                // `[:alpha:]` is the same in both.
                if characters.peek() == Some(&':') {
                    out.push('[');
                } else {
                    out.push_str(r"\[");
                }
                if characters.peek() == Some(&':') {
                    for c in characters.by_ref() {
                        out.push(c);
                        if c == ']' {
                            break;
                        }
                    }
                }
            }
            '[' => {
                in_class = true;
                class_began = true;
                out.push('[');
                if characters.peek() == Some(&'^') {
                    characters.next();
                    out.push('^');
                }
            }
            ']' if in_class && first => out.push_str(r"\]"),
            ']' if in_class => {
                in_class = false;
                out.push(']');
            }
            '&' | '~' if in_class => out.extend(['\\', c]),
            '-' if in_class && (first || matches!(characters.peek(), Some('-' | ']'))) => out.push_str(r"\-"),
            _ => out.push(c),
        }
    }
    out
}

fn ascii_class(letter: char) -> Option<&'static str> {
    Some(match letter {
        'd' => "[0-9]",
        'D' => "[^0-9]",
        'w' => "[0-9A-Za-z_]",
        'W' => "[^0-9A-Za-z_]",
        's' => r"[\t\n\f\r ]",
        'S' => r"[^\t\n\f\r ]",
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn replacements_are_filled_in() {
        let pattern = compile("(?P<first>a)(b)?").expect("compiles");
        let found = pattern.captures("a").expect("matches");
        for (template, expected) in [
            ("$1-${1}-$first-${first}", "a-a-a-a"),
            ("$2|$3|$1x|$nope|$0", "||||a"),
            ("$$1 $ ${ ${a-b} $", "$1 $ ${ ${a-b} $"),
        ] {
            assert_eq!(expand(template, &pattern, &found), expected, "{template}");
        }
    }

    #[test]
    fn classes_are_ascii_and_brackets_mean_themselves() {
        let matches = |pattern: &str, text: &str| compile(pattern).expect(pattern).is_match(text);
        assert!(matches(r"^\d+$", "123") && !matches(r"^\d+$", "١٢٣"));
        assert!(matches(r"^[\w.]+$", "a.b_9") && !matches(r"^\w$", "é"));
        assert!(matches(r"^[[a]+$", "[a") && matches(r"^[]a]+$", "]a") && matches(r"^[^]a]$", "b"));
        assert!(matches(r"^[a&&b]+$", "&a") && matches(r"^[a-]+$", "a-") && matches(r"^[[:alpha:]_]+$", "a_"));
        assert!(matches(r"\bx\b", "a x b") && matches(r"^[^\d]$", "x"));
        assert_eq!(compile("^([^:]+):(.+)$").expect("compiles").replace_all("a:b:c", "${1}_${2}"), "a_b:c");
        assert!(compile("(").is_err());
    }
}
