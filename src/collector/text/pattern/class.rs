//! Classes of characters: `[...]`, `\d`, `\pL`, and single characters in all their spellings.

use std::fmt::Write as _;

use regex::Regex;

/// What is left of a pattern.
pub(super) type Rest<'p> = &'p str;

/// The names that may stand in `[:...:]`.
const POSIX: [&str; 14] = [
    "alnum", "alpha", "ascii", "blank", "cntrl", "digit", "graph", "lower", "print", "punct", "space", "upper", "word",
    "xdigit",
];

/// The class that `\d` and its like stand for: they are ASCII.
pub(super) fn perl(letter: char) -> Option<&'static str> {
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

/// Reads `\pL` or `\p{Greek}`, written with a `P` or a `^` for everything else.
pub(super) fn unicode(rest: Rest<'_>) -> Result<(String, Rest<'_>), String> {
    let mut characters = rest[2..].chars();
    let first = characters.next();
    let (name, after) = match first {
        Some('{') => rest[3..].split_once('}').ok_or_else(|| fault(RANGE, rest))?,
        Some(letter) => rest[2..].split_at(letter.len_utf8()),
        None => return Err(fault(RANGE, rest)),
    };
    let whole = &rest[..rest.len() - after.len()];
    let (turned, name) = name.strip_prefix('^').map_or((false, name), |name| (true, name));
    let negative = rest.starts_with(r"\P") != turned;
    let letter = if negative { 'P' } else { 'p' };
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | ' ');
    if name.is_empty() || !name.chars().all(plain) {
        return Err(fault(RANGE, whole));
    }
    if ["cs", "surrogate"].contains(&name.to_ascii_lowercase().as_str()) {
        // No text has them.
        return Ok((if negative { ANYTHING } else { NOTHING }.to_owned(), after));
    }
    let known = ["Any", "ASCII", "Assigned"].into_iter().find(|known| known.eq_ignore_ascii_case(name));
    let spellings = match known {
        Some(known) => vec![known.to_owned()],
        // Not the other properties that the crate knows.
        None => vec![format!("gc={name}"), format!("sc={name}")],
    };
    let spellings = spellings.into_iter().map(|name| format!(r"\{letter}{{{name}}}"));
    let known = spellings.into_iter().find(|class| Regex::new(class).is_ok());
    known.map(|class| (class, after)).ok_or_else(|| fault(RANGE, whole))
}

/// Reads a class in brackets.
pub(super) fn brackets(whole: Rest<'_>) -> Result<(String, Rest<'_>), String> {
    let mut rest = &whole[1..];
    let mut negative = false;
    if let Some(after) = rest.strip_prefix('^') {
        (negative, rest) = (true, after);
    }
    let mut items = String::new();
    let mut first = true;
    loop {
        if !first && let Some(after) = rest.strip_prefix(']') {
            rest = after;
            break;
        }
        first = false;
        if rest.starts_with("[:")
            && let Some(end) = rest[2..].find(":]")
        {
            let (class, after) = rest.split_at(end + 4);
            let name = &class[2..class.len() - 2];
            if !POSIX.contains(&name.strip_prefix('^').unwrap_or(name)) {
                return Err(fault(RANGE, class));
            }
            items.push_str(class);
            rest = after;
            continue;
        }
        if rest.starts_with(r"\p") || rest.starts_with(r"\P") {
            let (class, after) = unicode(rest)?;
            items.push_str(&class);
            rest = after;
            continue;
        }
        if let Some(class) = rest.strip_prefix('\\').and_then(|rest| rest.chars().next()).and_then(perl) {
            items.push_str(class);
            rest = &rest[2..];
            continue;
        }
        let start = rest;
        let (low, after) = member(rest, whole)?;
        let mut high = low;
        rest = after;
        if let Some(after) = rest.strip_prefix('-')
            && !after.is_empty()
            && !after.starts_with(']')
        {
            (high, rest) = member(after, whole)?;
        }
        if high < low {
            return Err(fault(RANGE, &start[..start.len() - rest.len()]));
        }
        push_range(&mut items, low, high);
    }
    if items.is_empty() {
        // Surrogates alone, which no text has.
        return Ok((if negative { ANYTHING } else { NOTHING }.to_owned(), rest));
    }
    Ok((format!("[{}{items}]", if negative { "^" } else { "" }), rest))
}

/// A class that nothing is in.
pub(super) const NOTHING: &str = r"[^\x{0}-\x{10FFFF}]";

/// A class that everything is in.
const ANYTHING: &str = r"[\x{0}-\x{10FFFF}]";

/// A member of a class: a character in any spelling.
fn member<'p>(rest: Rest<'p>, whole: Rest<'_>) -> Result<(u32, Rest<'p>), String> {
    match rest.chars().next() {
        None => Err(fault("missing closing ]", whole)),
        Some('\\') => escape(rest),
        Some(c) => Ok((c.into(), &rest[c.len_utf8()..])),
    }
}

/// A range, less the surrogates in it.
fn push_range(items: &mut String, low: u32, high: u32) {
    let surrogate = |number: u32| (0xd800..0xe000).contains(&number);
    let low = if surrogate(low) { 0xe000 } else { low };
    let high = if surrogate(high) { 0xd7ff } else { high };
    if low <= high {
        // Writing into memory cannot fail.
        let _ = write!(items, r"\x{{{low:X}}}-\x{{{high:X}}}");
    }
}

/// Reads a character that is written with a backslash; gives its number, which may be that of a surrogate.
pub(super) fn escape(rest: Rest<'_>) -> Result<(u32, Rest<'_>), String> {
    let mut characters = rest.chars();
    characters.next();
    let Some(c) = characters.next() else { return Err(fault("trailing backslash at end of expression", "")) };
    let after = characters.as_str();
    let mut wrong_end = after;
    let number = match c {
        // A digit alone would be a reference to a group.
        '1'..='7' if !after.starts_with(|c: char| c.is_digit(8)) => None,
        '0'..='7' => {
            let digits = &rest[1..];
            let length = digits.bytes().take(3).take_while(|byte| matches!(byte, b'0'..=b'7')).count();
            return Ok((u32::from_str_radix(&digits[..length], 8).unwrap_or_default(), &digits[length..]));
        }
        'x' => match hexadecimal(after) {
            Ok(found) => return Ok(found),
            Err(end) => {
                wrong_end = end;
                None
            }
        },
        'a' => Some(7),
        'f' => Some(12),
        'n' => Some(10),
        'r' => Some(13),
        't' => Some(9),
        'v' => Some(11),
        c if c.is_ascii() && !c.is_ascii_alphanumeric() => Some(c.into()),
        _ => None,
    };
    let whole = &rest[..rest.len() - wrong_end.len()];
    number.map(|number| (number, after)).ok_or_else(|| fault(ESCAPE, whole))
}

/// After `\x`: two digits, or any number of them in braces. An error is where it cannot go on.
fn hexadecimal(text: &str) -> Result<(u32, Rest<'_>), &str> {
    let Some(inner) = text.strip_prefix('{') else {
        let digits = text.bytes().take(2).take_while(u8::is_ascii_hexdigit).count();
        return match u32::from_str_radix(&text[..digits], 16) {
            Ok(number) if digits == 2 => Ok((number, &text[2..])),
            _ => Err(text[digits..].char_indices().nth(1).map_or("", |(place, _)| &text[digits + place..])),
        };
    };
    let mut number = 0;
    for (place, c) in inner.char_indices() {
        let after = &inner[place + c.len_utf8()..];
        match c.to_digit(16) {
            Some(digit) => number = number * 16 + digit,
            None if c == '}' && place > 0 => return Ok((number, after)),
            None => return Err(after),
        }
        if number > 0x10_ffff {
            return Err(after);
        }
    }
    Err("")
}

pub(super) const ESCAPE: &str = "invalid escape sequence";
pub(super) const RANGE: &str = "invalid character class range";

/// In Go's words, with where it is.
pub(super) fn fault(what: &str, place: &str) -> String {
    format!("{what}: `{place}`")
}
