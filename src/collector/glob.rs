//! Patterns for whole texts, as the reference's library for them reads them: `*` and `**` are any text, `?` any
//! character, `[abc]` and `[a-z]` one of these, `[!abc]` none of these, `{ab,c*}` one of these patterns, `\` takes the
//! meaning from a sign.

use regex::Regex;

/// A compiled pattern.
#[derive(Clone, Debug)]
pub struct Glob(Regex);

impl Glob {
    /// Compiles a pattern.
    pub fn new(pattern: &str) -> Result<Self, String> {
        let translated = translate(pattern).ok_or_else(|| format!("`{pattern}` is no pattern with `*` and `?`"))?;
        Regex::new(&translated).map(Self).map_err(|error| error.to_string())
    }

    /// Whether the whole text is matched.
    #[must_use]
    pub fn is_match(&self, text: &str) -> bool {
        self.0.is_match(text)
    }
}

fn translate(pattern: &str) -> Option<String> {
    let mut out = String::from("(?s)^(?:");
    let mut characters = pattern.chars().peekable();
    let mut alternatives = 0;
    while let Some(c) = characters.next() {
        match c {
            '*' => out.push_str(".*"),
            '?' => out.push('.'),
            '[' => translate_set(&mut out, &mut characters)?,
            '{' => {
                alternatives += 1;
                out.push_str("(?:");
            }
            '}' if alternatives > 0 => {
                alternatives -= 1;
                out.push(')');
            }
            ',' if alternatives > 0 => out.push('|'),
            '\\' => {
                if let Some(next) = characters.next() {
                    push_literal(&mut out, next);
                }
            }
            _ => push_literal(&mut out, c),
        }
    }
    out.push_str(")$");
    (alternatives == 0).then_some(out)
}

fn push_literal(out: &mut String, c: char) {
    out.push_str(&regex::escape(c.encode_utf8(&mut [0; 4])));
}

/// After `[`: one range, or a list of characters.
fn translate_set(out: &mut String, characters: &mut std::iter::Peekable<std::str::Chars<'_>>) -> Option<()> {
    let negated = characters.next_if_eq(&'!').is_some();
    out.push_str(if negated { "[^" } else { "[" });
    let first = characters.next()?;
    if characters.next_if_eq(&'-').is_some() {
        let last = characters.next()?;
        if characters.next()? != ']' || last < first {
            return None;
        }
        push_in_set(out, first);
        out.push('-');
        push_in_set(out, last);
    } else {
        let mut next = Some(first);
        let mut empty = true;
        loop {
            match next? {
                ']' if empty => return None,
                ']' => break,
                '\\' => push_in_set(out, characters.next()?),
                c => push_in_set(out, c),
            }
            empty = false;
            next = characters.next();
        }
    }
    out.push(']');
    Some(())
}

fn push_in_set(out: &mut String, c: char) {
    if c.is_ascii_punctuation() {
        out.push('\\');
    }
    out.push(c);
}

#[cfg(test)]
mod tests {
    use super::*;

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
        for wrong in ["[a", "[]", "[b-a]", "{a", "[a-cx]"] {
            assert!(Glob::new(wrong).is_err(), "{wrong}");
        }
    }
}
