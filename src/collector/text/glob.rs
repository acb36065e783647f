//! Patterns for whole texts, as the reference's library for them reads them: `*` is anything without a separator, `**`
//! anything, `?` one character but a separator, `[abc]` and `[a-z]` one of these, `[!abc]` none of these, `{ab,c*}` one of
//! these patterns, and `\` stands before a character that means itself.

use std::iter::Peekable;
use std::str::Chars;

use regex::Regex;

/// A compiled pattern.
#[derive(Clone, Debug)]
pub struct Glob {
    regex: Regex,
}

impl Glob {
    /// Compiles a pattern of texts, in which nothing separates.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn new(pattern: &str) -> Result<Self, String> {
        compile(pattern, ".")
    }

    /// Compiles a pattern of names, whose parts are separated by dots.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn of_names(pattern: &str) -> Result<Self, String> {
        compile(pattern, "[^.]")
    }

    /// Whether the whole text is matched.
    #[must_use]
    pub fn is_match(&self, text: &str) -> bool {
        self.regex.is_match(text)
    }
}

/// `one` is a regular expression for one character that is no separator.
fn compile(pattern: &str, one: &str) -> Result<Glob, String> {
    let regex = translate(pattern, one).map_err(|why| format!("`{pattern}` is no pattern: {why}"))?;
    match Regex::new(&regex) {
        Ok(regex) => Ok(Glob { regex }),
        Err(_) => Err(format!("`{pattern}` is too large")),
    }
}

fn translate(pattern: &str, one: &str) -> Result<String, String> {
    let mut characters = pattern.chars().peekable();
    let mut regex = String::from("^(?s:");
    let mut depth = 0_u32;
    while let Some(c) = characters.next() {
        match c {
            '*' if characters.next_if_eq(&'*').is_some() => regex.push_str(".*"),
            '*' => regex.extend([one, "*"]),
            '?' => regex.push_str(one),
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
    Ok(regex)
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
            let glob = Glob::of_names(pattern).expect(pattern);
            for name in yes {
                assert!(glob.is_match(name), "{pattern} {name}");
            }
            for name in no {
                assert!(!glob.is_match(name), "{pattern} {name}");
            }
        }
        for pattern in ["[", "[a", "[]", "[!]", "[]a]", "[c-a]", "[a-cd]"] {
            assert!(Glob::new(pattern).is_err(), "{pattern}");
        }
    }

    #[test]
    fn whole_texts_are_matched() {
        let matches = |pattern: &str, text: &str| Glob::new(pattern).expect(pattern).is_match(text);
        assert!(matches("*", "a/b\nc") && matches("a*c", "abbc") && !matches("a*c", "abcd") && matches("**", ""));
        assert!(matches("?b", "éb") && !matches("?b", "b"));
        assert!(
            matches("[a-c]x", "bx") && matches("[!a-c]x", "dx") && matches("[xyz-]", "-") && !matches("[!ab]", "a")
        );
        assert!(matches("{ab,c*}d", "cxd") && matches("{ab,c*}d", "abd") && !matches("{ab,c}d", "bd"));
        assert!(matches(r"\*a.b+", "*a.b+") && !matches("a.b", "axb") && matches("", "") && matches("a,b}", "a,b}"));
    }
}
