//! Patterns of attribute names: `*` is anything without a dot, `**` anything, `?` one character but a dot, `[a-z]`,
//! `[!abc]`, `{a,b}`, and `\` before a character that means itself.

use std::iter::Peekable;
use std::str::Chars;

use regex::Regex;

/// A pattern of names.
#[derive(Clone, Debug)]
pub(super) struct Glob {
    regex: Regex,
}

impl Glob {
    /// Compiles it.
    pub fn new(pattern: &str) -> Result<Self, String> {
        let mut characters = pattern.chars().peekable();
        let mut regex = String::from("^(?s:");
        let mut depth = 0_u32;
        while let Some(c) = characters.next() {
            match c {
                '*' if characters.next_if_eq(&'*').is_some() => regex.push_str(".*"),
                '*' => regex.push_str("[^.]*"),
                '?' => regex.push_str("[^.]"),
                '[' => class(&mut characters, &mut regex)?,
                '{' => {
                    depth += 1;
                    regex.push_str("(?:");
                }
                ',' if depth > 0 => regex.push('|'),
                '}' if depth > 0 => {
                    depth -= 1;
                    regex.push(')');
                }
                '\\' => regex.push_str(&characters.next().map(literal).unwrap_or_default()),
                c => regex.push_str(&literal(c)),
            }
        }
        // A brace that is not closed ends with the pattern, as in the reference.
        regex.extend((0..depth).map(|_| ')'));
        regex.push_str(")$");
        Regex::new(&regex).map(|regex| Self { regex }).map_err(|_| "it is too large".to_owned())
    }

    /// Whether a name matches as a whole.
    pub fn matches(&self, name: &str) -> bool {
        self.regex.is_match(name)
    }
}

fn literal(c: char) -> String {
    regex::escape(c.encode_utf8(&mut [0; 4]))
}

/// What stands between brackets: one range, or single characters; `!` at the beginning negates.
fn class(characters: &mut Peekable<Chars<'_>>, regex: &mut String) -> Result<(), String> {
    const OPEN: &str = "a `[` is not closed";
    let negated = characters.next_if_eq(&'!').is_some();
    let mut members = Vec::new();
    loop {
        match characters.next().ok_or(OPEN)? {
            ']' if !members.is_empty() => break,
            '\\' if !members.is_empty() || characters.peek() != Some(&'-') => {
                members.push(characters.next().ok_or(OPEN)?);
            }
            ']' if characters.peek() != Some(&'-') => return Err("there is nothing in `[]`".into()),
            low if members.is_empty() && characters.next_if_eq(&'-').is_some() => {
                let high = characters.next().ok_or(OPEN)?;
                if high < low {
                    return Err(format!("`{low}-{high}` is no range"));
                }
                if characters.next() != Some(']') {
                    return Err("a range is not closed".into());
                }
                regex.push_str(if negated { "[^" } else { "[" });
                regex.extend([&literal(low), "-", &literal(high), "]"]);
                return Ok(());
            }
            c => members.push(c),
        }
    }
    regex.push_str(if negated { "[^" } else { "[" });
    regex.extend(members.into_iter().map(|c| if c == '^' { "\\^".to_owned() } else { literal(c) }));
    regex.push(']');
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::Glob;

    #[test]
    fn dots_separate() {
        for (pattern, yes, no) in [
            ("http.*", &["http.method", "http."][..], &["http.a.b", "https.x", "http"][..]),
            ("http.**", &["http.method", "http.a.b"], &["http"]),
            ("*", &["abc", ""], &["a.b"]),
            ("**", &["abc", "a.b"], &[]),
            ("a?c", &["abc"], &["a.c", "ac"]),
            ("[abc]x", &["ax", "cx"], &["dx"]),
            ("[!abc]x", &["dx", ".x"], &["ax"]),
            ("[a-c]x", &["bx"], &["dx", "-x"]),
            ("[!a-c]x", &["dx"], &["bx"]),
            ("[^a]", &["^", "a"], &["b"]),
            ("{a,b*}.c", &["a.c", "bx.c"], &["c.c"]),
            ("{a,{b,c}d}", &["a", "bd", "cd"], &["d"]),
            ("{a,b", &["a", "b"], &["{a,b"]),
            ("a,b}", &["a,b}"], &["a"]),
            ("a\\*", &["a*"], &["ab"]),
            ("a.b+", &["a.b+"], &["axb+"]),
        ] {
            let glob = Glob::new(pattern).expect(pattern);
            for name in yes {
                assert!(glob.matches(name), "{pattern} {name}");
            }
            for name in no {
                assert!(!glob.matches(name), "{pattern} {name}");
            }
        }
        for pattern in ["[", "[a", "[]", "[!]", "[]a]", "[c-a]", "[a-cd]"] {
            assert!(Glob::new(pattern).is_err(), "{pattern}");
        }
    }
}
