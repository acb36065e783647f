//! Reading a pattern of Go, and writing it for the `regex` crate.

use std::fmt::Write as _;

/// How often something may be repeated at most.
const MOST: u32 = 1000;

/// The names of the classes in `[[:name:]]`.
const NAMED_CLASSES: [&str; 14] = [
    "alnum", "alpha", "ascii", "blank", "cntrl", "digit", "graph", "lower", "print", "punct", "space", "upper", "word",
    "xdigit",
];

/// A pattern in the crate's syntax, without names.
pub(super) struct Translated {
    pub pattern: String,
    /// The names of the groups in their order.
    pub names: Vec<Option<String>>,
}

/// What stands before the next sign: what a repetition would repeat.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Before {
    Nothing,
    Atom,
    Repetition,
}

/// Translates a pattern; what is wrong with it.
pub(super) fn translate(pattern: &str) -> Result<Translated, String> {
    let mut reader = Reader { rest: pattern, out: String::with_capacity(pattern.len()), names: Vec::new() };
    let mut before = Before::Nothing;
    while let Some(c) = reader.rest.chars().next() {
        before = match c {
            '(' => reader.group(before)?,
            '|' => reader.copy(1, Before::Nothing),
            '*' | '+' | '?' => reader.repetition(1, before)?,
            '{' => match counted(reader.rest)? {
                Some(length) => reader.repetition(length, before)?,
                None => reader.literal(c),
            },
            '[' => reader.class()?,
            '\\' => reader.escape(before)?,
            '.' | '^' | '$' | ')' => reader.copy(1, Before::Atom),
            _ => reader.literal(c),
        };
    }
    Ok(Translated { pattern: reader.out, names: reader.names })
}

/// The length of `{2}`, `{2,}` or `{2,3}` that the text begins with; other braces are themselves.
fn counted(text: &str) -> Result<Option<usize>, String> {
    let Some((inner, _)) = text[1..].split_once('}') else { return Ok(None) };
    let (least, most) = inner.split_once(',').unwrap_or((inner, inner));
    let is_number = |text: &str| {
        !text.is_empty()
            && text.bytes().all(|byte| byte.is_ascii_digit())
            && (text.len() == 1 || !text.starts_with('0'))
    };
    if !is_number(least) || !(most.is_empty() || is_number(most)) {
        return Ok(None);
    }
    let number = |text: &str| text.parse().ok().filter(|number| *number <= MOST);
    let (least, most) = (number(least), if most.is_empty() { Some(MOST) } else { number(most) });
    match (least, most) {
        (Some(least), Some(most)) if least <= most => Ok(Some(inner.len() + 2)),
        _ => Err(format!("`{{{inner}}}` is no count of repetitions: the greatest is {MOST}")),
    }
}

struct Reader<'a> {
    rest: &'a str,
    out: String,
    names: Vec<Option<String>>,
}

impl<'a> Reader<'a> {
    fn next(&mut self) -> Option<char> {
        let mut characters = self.rest.chars();
        let next = characters.next();
        self.rest = characters.as_str();
        next
    }

    fn take(&mut self, length: usize) -> &'a str {
        let (taken, rest) = self.rest.split_at(length);
        self.rest = rest;
        taken
    }

    fn copy(&mut self, length: usize, before: Before) -> Before {
        let taken = self.take(length);
        self.out.push_str(taken);
        before
    }

    fn literal(&mut self, c: char) -> Before {
        self.rest = &self.rest[c.len_utf8()..];
        self.put(c);
        Before::Atom
    }

    /// Writes a character that means itself.
    fn put(&mut self, c: char) {
        if c.is_ascii_alphanumeric() || !c.is_ascii() {
            self.out.push(c);
        } else {
            // Writing to a text does not fail.
            let _ = write!(self.out, "\\x{{{:x}}}", u32::from(c));
        }
    }

    fn repetition(&mut self, length: usize, before: Before) -> Result<Before, String> {
        let sign = self.take(length);
        match before {
            Before::Nothing => return Err(format!("`{sign}` repeats nothing")),
            Before::Repetition => return Err(format!("`{sign}` repeats a repetition")),
            Before::Atom => self.out.push_str(sign),
        }
        if self.rest.starts_with('?') {
            self.copy(1, before);
        }
        Ok(Before::Repetition)
    }

    /// What begins with a parenthesis.
    fn group(&mut self, before: Before) -> Result<Before, String> {
        let named = self.rest.strip_prefix("(?P<").or_else(|| self.rest.strip_prefix("(?<"));
        if let Some(after) = named {
            let (name, rest) = after.split_once('>').ok_or("a group's name without its end")?;
            if name.is_empty() || !name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_') {
                return Err(format!("`{name}` is no name of a group"));
            }
            self.names.push(Some(name.to_owned()));
            self.rest = rest;
            self.out.push('(');
            return Ok(Before::Nothing);
        }
        if !self.rest.starts_with("(?") {
            self.names.push(None);
            return Ok(self.copy(1, Before::Nothing));
        }
        let flags = self.rest[2..].find(|c| !matches!(c, 'i' | 'm' | 's' | 'U' | '-')).unwrap_or(self.rest.len() - 2);
        match self.rest[2 + flags..].chars().next() {
            Some(':') => Ok(self.copy(flags + 3, Before::Nothing)),
            Some(')') => Ok(self.copy(flags + 3, if before == Before::Nothing { before } else { Before::Atom })),
            _ => Err("after `(?` only `P<name>`, `<name>`, and the flags i, m, s and U are known".to_owned()),
        }
    }

    /// What begins with a backslash, outside of brackets.
    fn escape(&mut self, before: Before) -> Result<Before, String> {
        let Some(letter) = self.rest[1..].chars().next() else {
            return Err("a backslash at the end".to_owned());
        };
        match letter {
            'b' | 'B' => {
                self.take(2);
                // A boundary of ASCII words.
                self.out.push_str(if letter == 'b' { r"(?-u:\b)" } else { r"(?-u:\B)" });
                Ok(Before::Atom)
            }
            'A' | 'z' => Ok(self.copy(2, Before::Atom)),
            'Q' => {
                self.take(2);
                let (quoted, rest) = self.rest.split_once(r"\E").unwrap_or((self.rest, ""));
                quoted.chars().for_each(|c| self.put(c));
                self.rest = rest;
                Ok(if quoted.is_empty() { before } else { Before::Atom })
            }
            _ => {
                if !self.class_escape()? {
                    let c = self.character()?;
                    self.put(c);
                }
                Ok(Before::Atom)
            }
        }
    }

    /// `\d`, `\pN`, `\p{Greek}` and so on, in brackets or not; whether there was one.
    fn class_escape(&mut self) -> Result<bool, String> {
        let class = match self.rest.as_bytes().get(1) {
            Some(b'd') => "[0-9]",
            Some(b'D') => "[^0-9]",
            Some(b'w') => "[0-9A-Za-z_]",
            Some(b'W') => "[^0-9A-Za-z_]",
            Some(b's') => r"[\t\n\f\r ]",
            Some(b'S') => r"[^\t\n\f\r ]",
            Some(letter @ (b'p' | b'P')) => {
                let mut negated = *letter == b'P';
                self.take(2);
                let mut name = match self.next().ok_or("the class after `\\p` is missing")? {
                    '{' => {
                        let (name, rest) = self.rest.split_once('}').ok_or("a class without its `}`")?;
                        self.rest = rest;
                        name.to_owned()
                    }
                    letter => letter.to_string(),
                };
                if let Some(rest) = name.strip_prefix('^') {
                    negated = !negated;
                    name = rest.to_owned();
                }
                if !name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_') {
                    return Err(format!("`{name}` is no class of characters"));
                }
                // Writing to a text does not fail.
                let _ = write!(self.out, "\\{}{{{name}}}", if negated { 'P' } else { 'p' });
                return Ok(true);
            }
            _ => return Ok(false),
        };
        self.take(2);
        self.out.push_str(class);
        Ok(true)
    }

    /// One character, perhaps written with a backslash.
    fn character(&mut self) -> Result<char, String> {
        let c = self.next().ok_or("a bracket without its end")?;
        if c != '\\' {
            return Ok(c);
        }
        let letter = self.next().ok_or("a backslash at the end")?;
        let wrong = || format!("`\\{letter}` means nothing");
        Ok(match letter {
            'a' => '\u{7}',
            'f' => '\u{c}',
            'n' => '\n',
            'r' => '\r',
            't' => '\t',
            'v' => '\u{b}',
            'x' => {
                let digits = if let Some(inner) = self.rest.strip_prefix('{') {
                    let (digits, rest) = inner.split_once('}').ok_or_else(wrong)?;
                    self.rest = rest;
                    digits
                } else {
                    let digits = self.rest.get(..2).ok_or_else(wrong)?;
                    self.rest = &self.rest[2..];
                    digits
                };
                let hexadecimal = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_hexdigit());
                let code = u32::from_str_radix(digits, 16).ok().filter(|_| hexadecimal);
                code.and_then(char::from_u32).ok_or_else(wrong)?
            }
            // One digit would refer to a group, which is not there in Go.
            '1'..='7' if !self.rest.starts_with(|c| ('0'..='7').contains(&c)) => return Err(wrong()),
            '0'..='7' => {
                let length = self.rest.bytes().take(2).take_while(|byte| (b'0'..=b'7').contains(byte)).count();
                let digits = format!("{letter}{}", self.take(length));
                u32::from_str_radix(&digits, 8).ok().and_then(char::from_u32).ok_or_else(wrong)?
            }
            _ if letter.is_ascii() && !letter.is_ascii_alphanumeric() => letter,
            _ => return Err(wrong()),
        })
    }

    /// What begins with a bracket.
    fn class(&mut self) -> Result<Before, String> {
        self.copy(1, Before::Atom);
        if self.rest.starts_with('^') {
            self.copy(1, Before::Atom);
        }
        let mut first = true;
        while first || !self.rest.starts_with(']') {
            first = false;
            if let Some(inner) = self.rest.strip_prefix("[:")
                && let Some((name, _)) = inner.split_once(":]")
            {
                if !NAMED_CLASSES.contains(&name.strip_prefix('^').unwrap_or(name)) {
                    return Err(format!("`{name}` is no class of characters"));
                }
                self.copy(name.len() + 4, Before::Atom);
                continue;
            }
            if self.rest.starts_with('\\') && self.class_escape()? {
                continue;
            }
            let low = self.character()?;
            let mut high = low;
            if self.rest.starts_with('-') && !self.rest[1..].starts_with(']') && self.rest.len() > 1 {
                self.take(1);
                high = self.character()?;
                if high < low {
                    return Err(format!("`{low}-{high}` is no range of characters"));
                }
            }
            self.put(low);
            if high != low {
                self.out.push('-');
                self.put(high);
            }
        }
        Ok(self.copy(1, Before::Atom))
    }
}
