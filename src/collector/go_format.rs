//! Go's `Sprintf`, for the values that statements have.

use std::fmt::Write as _;

/// A value to print.
#[derive(Clone, Debug, PartialEq)]
pub enum Printable {
    /// `nil`.
    Nil,
    /// A boolean.
    Bool(bool),
    /// An int64.
    Int(i64),
    /// A float64.
    Double(f64),
    /// A string.
    Text(String),
    /// A slice of bytes.
    Bytes(Vec<u8>),
    /// A slice, with the name of its type.
    List(Vec<Printable>, &'static str),
    /// Something with a text of its own, such as an id or a time; the name of its type; and what it is to verbs that
    /// want no text.
    Shown(String, &'static str, Box<Printable>),
}

/// What stands between `%` and the verb.
#[derive(Clone, Copy, Default)]
struct Flags {
    minus: bool,
    plus: bool,
    sharp: bool,
    space: bool,
    zero: bool,
    width: Option<usize>,
    precision: Option<usize>,
}

/// No text of a million blanks.
const WIDEST: usize = 100_000;

/// Prints `arguments` into `format`. What does not fit is said in the text, as in Go.
#[must_use]
pub fn format(format: &str, arguments: &[Printable]) -> String {
    let mut out = String::new();
    let mut characters = format.chars().peekable();
    let (mut next, mut reordered) = (0, false);
    while let Some(c) = characters.next() {
        if c != '%' {
            out.push(c);
            continue;
        }
        let mut flags = Flags::default();
        while let Some(flag) = characters.next_if(|c| matches!(c, '-' | '+' | '#' | ' ' | '0')) {
            match flag {
                '-' => flags.minus = true,
                '+' => flags.plus = true,
                '#' => flags.sharp = true,
                ' ' => flags.space = true,
                _ => flags.zero = true,
            }
        }
        let mut bad_index = false;
        let mut index = |characters: &mut std::iter::Peekable<std::str::Chars<'_>>, next: &mut usize| {
            if characters.next_if_eq(&'[').is_none() {
                return;
            }
            reordered = true;
            let inside: String = std::iter::from_fn(|| characters.next_if(|c| *c != ']')).collect();
            let closed = characters.next().is_some();
            match inside.parse::<usize>() {
                Ok(place @ 1..) if closed && place <= arguments.len() => {
                    *next = place - 1;
                }
                _ => bad_index = true,
            }
        };
        index(&mut characters, &mut next);
        flags.width = size(&mut characters, arguments, &mut next, &mut flags.minus, &mut out, "WIDTH");
        if characters.next_if_eq(&'.').is_some() {
            index(&mut characters, &mut next);
            let mut negative = false;
            let precision = size(&mut characters, arguments, &mut next, &mut negative, &mut out, "PREC");
            flags.precision = if negative { None } else { Some(precision.unwrap_or(0)) };
        }
        index(&mut characters, &mut next);
        match characters.next() {
            None => out.push_str("%!(NOVERB)"),
            Some('%') => out.push('%'),
            Some(verb) if bad_index => out.extend(format!("%!{verb}(BADINDEX)").chars()),
            Some(verb) => {
                match arguments.get(next) {
                    Some(argument) => print(&mut out, verb, flags, argument),
                    None => {
                        let _ = write!(out, "%!{verb}(MISSING)");
                    }
                }
                next += 1;
            }
        }
    }
    if !reordered && next < arguments.len() {
        let extra: Vec<String> = arguments[next..]
            .iter()
            .map(|argument| match argument {
                Printable::Nil => "<nil>".to_owned(),
                other => format!("{}={}", type_name(other), shown('v', Flags::default(), other)),
            })
            .collect();
        let _ = write!(out, "%!(EXTRA {})", extra.join(", "));
    }
    out
}

/// A number in the text, or `*` for one among the arguments.
fn size(
    characters: &mut std::iter::Peekable<std::str::Chars<'_>>,
    arguments: &[Printable],
    next: &mut usize,
    negative: &mut bool,
    out: &mut String,
    name: &str,
) -> Option<usize> {
    if characters.next_if_eq(&'*').is_some() {
        let argument = arguments.get(*next);
        *next += 1;
        let Some(Printable::Int(value)) = argument else {
            let _ = write!(out, "%!(BAD{name})");
            return None;
        };
        *negative |= *value < 0;
        return usize::try_from(value.unsigned_abs()).ok().map(|size| size.min(WIDEST));
    }
    let digits: String = std::iter::from_fn(|| characters.next_if(char::is_ascii_digit)).collect();
    digits.parse().ok().map(|size: usize| size.min(WIDEST))
}

fn type_name(value: &Printable) -> &'static str {
    match value {
        Printable::Nil => "<nil>",
        Printable::Bool(_) => "bool",
        Printable::Int(_) => "int64",
        Printable::Double(_) => "float64",
        Printable::Text(_) => "string",
        Printable::Bytes(_) => "[]uint8",
        Printable::List(_, name) | Printable::Shown(_, name, _) => name,
    }
}

fn shown(verb: char, flags: Flags, value: &Printable) -> String {
    let mut out = String::new();
    print(&mut out, verb, flags, value);
    out
}

/// `%!d(string=a)`: the verb does not fit the value.
fn bad_verb(out: &mut String, verb: char, value: &Printable) {
    let text = match value {
        Printable::Nil => "<nil>".to_owned(),
        other => format!("{}={}", type_name(other), shown('v', Flags::default(), other)),
    };
    let _ = write!(out, "%!{verb}({text})");
}

fn print(out: &mut String, verb: char, flags: Flags, value: &Printable) {
    if verb == 'T' {
        return pad(out, flags, type_name(value), false);
    }
    match value {
        Printable::Nil if verb == 'v' => pad(out, flags, "<nil>", false),
        Printable::Bool(value) if matches!(verb, 't' | 'v') => pad(out, flags, &value.to_string(), false),
        Printable::Int(value) => print_integer(out, verb, flags, *value),
        Printable::Double(value) => print_double(out, verb, flags, *value),
        Printable::Text(text) => print_text(out, verb, flags, text, value),
        Printable::Shown(text, ..) if matches!(verb, 's' | 'v' | 'q' | 'x' | 'X') => {
            print_text(out, verb, flags, text, value);
        }
        Printable::Shown(_, _, inner) => print(out, verb, flags, inner),
        Printable::Bytes(bytes) => match verb {
            's' | 'x' | 'X' | 'q' => print_bytes(out, verb, flags, bytes),
            _ => {
                let elements: Vec<Printable> = bytes.iter().map(|byte| Printable::Int(i64::from(*byte))).collect();
                print_list(out, if verb == 'v' { 'd' } else { verb }, flags, &elements);
            }
        },
        Printable::List(elements, _) => print_list(out, verb, flags, elements),
        Printable::Nil | Printable::Bool(_) => bad_verb(out, verb, value),
    }
}

fn print_list(out: &mut String, verb: char, flags: Flags, elements: &[Printable]) {
    out.push('[');
    for (place, element) in elements.iter().enumerate() {
        if place > 0 {
            out.push(' ');
        }
        match element {
            Printable::Nil => out.push_str("<nil>"),
            element => print(out, verb, flags, element),
        }
    }
    out.push(']');
}

/// Blanks (or zeros after the sign) up to the width.
fn pad(out: &mut String, flags: Flags, text: &str, number: bool) {
    let missing = flags.width.unwrap_or(0).saturating_sub(text.chars().count());
    if flags.minus {
        out.push_str(text);
        out.extend(std::iter::repeat_n(' ', missing));
    } else if flags.zero && number {
        let sign = usize::from(text.starts_with(['+', '-', ' ']));
        out.push_str(&text[..sign]);
        out.extend(std::iter::repeat_n('0', missing));
        out.push_str(&text[sign..]);
    } else {
        out.extend(std::iter::repeat_n(if flags.zero { '0' } else { ' ' }, missing));
        out.push_str(text);
    }
}

fn print_text(out: &mut String, verb: char, flags: Flags, text: &str, value: &Printable) {
    match verb {
        'v' if flags.sharp && matches!(value, Printable::Text(_)) => pad(out, flags, &quoted(text), false),
        's' | 'v' => {
            let cut: String = text.chars().take(flags.precision.unwrap_or(usize::MAX)).collect();
            pad(out, flags, &cut, false);
        }
        'q' if flags.sharp && text.chars().all(|c| c == '\t' || !(c.is_control() || c == '`' || c == '\u{feff}')) => {
            pad(out, flags, &format!("`{text}`"), false);
        }
        'q' => pad(out, flags, &quoted(text), false),
        'x' | 'X' => print_bytes(out, verb, flags, text.as_bytes()),
        _ => bad_verb(out, verb, value),
    }
}

fn print_bytes(out: &mut String, verb: char, flags: Flags, bytes: &[u8]) {
    match verb {
        's' => print_text(out, 's', flags, &String::from_utf8_lossy(bytes), &Printable::Nil),
        'q' => print_text(out, 'q', flags, &String::from_utf8_lossy(bytes), &Printable::Nil),
        _ => {
            let bytes = &bytes[..bytes.len().min(flags.precision.unwrap_or(usize::MAX))];
            let capital = verb == 'X';
            let prefix = if flags.sharp { if capital { "0X" } else { "0x" } } else { "" };
            let hex = |bytes: &[u8]| {
                let text = data_encoding::HEXLOWER.encode(bytes);
                if capital { text.to_uppercase() } else { text }
            };
            let text = if flags.space {
                bytes.iter().map(|byte| format!("{prefix}{}", hex(&[*byte]))).collect::<Vec<_>>().join(" ")
            } else if bytes.is_empty() {
                String::new()
            } else {
                format!("{prefix}{}", hex(bytes))
            };
            pad(out, flags, &text, false);
        }
    }
}

/// In quotes, with Go's escapes.
fn quoted(text: &str) -> String {
    let mut out = String::from('"');
    for c in text.chars() {
        match c {
            '"' | '\\' => out.extend(['\\', c]),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            '\u{7}' => out.push_str("\\a"),
            '\u{8}' => out.push_str("\\b"),
            '\u{b}' => out.push_str("\\v"),
            '\u{c}' => out.push_str("\\f"),
            c if c.is_ascii_control() => {
                let _ = write!(out, "\\x{:02x}", c as u32);
            }
            c => out.push(c),
        }
    }
    out.push('"');
    out
}

fn print_integer(out: &mut String, verb: char, flags: Flags, value: i64) {
    let size = value.unsigned_abs();
    let (digits, prefix) = match verb {
        'd' | 'v' => (size.to_string(), ""),
        'b' => (format!("{size:b}"), "0b"),
        'o' => (format!("{size:o}"), "0"),
        'O' => (format!("0o{size:o}"), ""),
        'x' => (format!("{size:x}"), "0x"),
        'X' => (format!("{size:X}"), "0X"),
        'c' | 'q' | 'U' => {
            let c = u32::try_from(value).ok().and_then(char::from_u32).unwrap_or(char::REPLACEMENT_CHARACTER);
            let text = match verb {
                'c' => c.to_string(),
                'q' => format!("'{}'", c.escape_debug()),
                _ if flags.sharp => format!("U+{value:04X} '{c}'"),
                _ => format!("U+{value:04X}"),
            };
            return pad(out, flags, &text, false);
        }
        _ => return bad_verb(out, verb, &Printable::Int(value)),
    };
    let digits = match flags.precision {
        Some(0) if value == 0 => String::new(),
        Some(precision) => format!("{digits:0>precision$}"),
        None => digits,
    };
    let sign = match value {
        ..0 => "-",
        _ if flags.plus => "+",
        _ if flags.space => " ",
        _ => "",
    };
    let prefix = if flags.sharp && verb != 'v' { prefix } else { "" };
    // A precision takes the meaning from the zero flag, and so does a minus.
    let zero = flags.zero && flags.precision.is_none() && !flags.minus;
    pad(out, Flags { zero, ..flags }, &format!("{sign}{prefix}{digits}"), true);
}

fn print_double(out: &mut String, verb: char, flags: Flags, value: f64) {
    let size = value.abs();
    let digits = match verb {
        _ if !matches!(verb, 'v' | 'g' | 'G' | 'e' | 'E' | 'f' | 'F') => {
            return bad_verb(out, verb, &Printable::Double(value));
        }
        _ if value.is_nan() => "NaN".to_owned(),
        _ if value.is_infinite() => "Inf".to_owned(),
        'f' | 'F' => format!("{size:.*}", flags.precision.unwrap_or(6)),
        'e' | 'E' => exponent_text(&format!("{size:.*e}", flags.precision.unwrap_or(6))),
        _ => general(size, flags.precision),
    };
    let digits = if matches!(verb, 'E' | 'G') {
        digits.to_uppercase().replace("NAN", "NaN").replace("INF", "Inf")
    } else {
        digits
    };
    let sign = match () {
        () if value.is_nan() && !flags.plus => "",
        () if value.is_sign_negative() && !value.is_nan() => "-",
        () if flags.plus || (value.is_infinite() && verb == 'v') => "+",
        () if flags.space => " ",
        () => {
            if value.is_infinite() {
                "+"
            } else {
                ""
            }
        }
    };
    let zero = flags.zero && value.is_finite() && !flags.minus;
    pad(out, Flags { zero, ..flags }, &format!("{sign}{digits}"), value.is_finite());
}

/// Rust's `1.5e7` as Go's `1.5e+07`.
fn exponent_text(text: &str) -> String {
    let (digits, exponent) = text.split_once('e').unwrap_or((text, "0"));
    let (sign, exponent) = exponent.strip_prefix('-').map_or(('+', exponent), |exponent| ('-', exponent));
    format!("{digits}e{sign}{exponent:0>2}")
}

/// `%g`: shortest digits, or so many; an exponent below 1e-4 and from the 7th digit on (with a precision: from it on).
fn general(size: f64, precision: Option<usize>) -> String {
    let scientific = match precision {
        Some(precision) => format!("{size:.*e}", precision.max(1) - 1),
        None => format!("{size:e}"),
    };
    let (digits, exponent) = scientific.split_once('e').unwrap_or((&scientific, "0"));
    let exponent: i64 = exponent.parse().unwrap_or(0);
    let digits = if digits.contains('.') { digits.trim_end_matches('0').trim_end_matches('.') } else { digits };
    let count = i64::try_from(digits.bytes().filter(u8::is_ascii_digit).count()).unwrap_or(i64::MAX);
    let limit = match precision {
        Some(precision) => {
            let precision = i64::try_from(precision.max(1)).unwrap_or(i64::MAX);
            if precision > count && count > exponent { count } else { precision }
        }
        None => 6,
    };
    if size != 0.0 && (exponent < -4 || exponent >= limit) {
        return exponent_text(&format!("{digits}e{exponent}"));
    }
    let decimals = usize::try_from((count - 1 - exponent).max(0)).unwrap_or(0);
    format!("{size:.decimals$}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn int(value: i64) -> Printable {
        Printable::Int(value)
    }

    fn text(text: &str) -> Printable {
        Printable::Text(text.to_owned())
    }

    /// All of these were printed by Go.
    #[test]
    fn what_go_prints() {
        let double = Printable::Double;
        let list = || Printable::List(vec![text("a"), int(1), Printable::Nil], "[]interface {}");
        let shown = || Printable::Shown("1ns".to_owned(), "time.Duration", Box::new(int(1)));
        let bytes = || Printable::Bytes(b"hi".to_vec());
        let cases: Vec<(&str, Vec<Printable>, &str)> = vec![
            ("%s-%05d-%v", vec![text("x"), int(7), Printable::Bool(true)], "x-00007-true"),
            (
                "%s|%s|%s|%s",
                vec![Printable::Nil, int(5), double(1.5), list()],
                "%!s(<nil>)|%!s(int64=5)|%!s(float64=1.5)|[a %!s(int64=1) <nil>]",
            ),
            (
                "%s|%v|%x|%X|%q",
                vec![bytes(), bytes(), text("hi"), bytes(), text("a\"b\n")],
                r#"hi|[104 105]|6869|6869|"a\"b\n""#,
            ),
            (
                "%5d|%-5d|%+d|% d|%x|%#x|%o|%b|%c|%U",
                vec![int(7), int(7), int(7), int(7), int(255), int(255), int(8), int(5), int(65), int(65)],
                "    7|7    |+7| 7|ff|0xff|10|101|A|U+0041",
            ),
            (
                "%e|%.2f|%8.3f|%-8.1f|%g|%G",
                vec![double(1.5), double(1.005), double(2.5), double(2.5), double(1e21), double(1e-7)],
                "1.500000e+00|1.00|   2.500|2.5     |1e+21|1E-07",
            ),
            (
                "%v %v %v %v",
                vec![double(1.0), double(100_000.0), double(1e20), double(123_456_789.0)],
                "1 100000 1e+20 1.23456789e+08",
            ),
            ("%!|%z", vec![int(1), text("ab")], "%!!(int64=1)|%!z(string=ab)"),
            ("%5s|%-5s|%.2s|%05s", vec![text("ab"), text("ab"), text("abc"), text("ab")], "   ab|ab   |ab|000ab"),
            ("%[2]d %[1]d %d", vec![int(1), int(2)], "2 1 2"),
            ("%*d|%%|%6.2f%%", vec![int(5), int(42), double(99.5)], "   42|%| 99.50%"),
            ("%s extra", vec![text("a"), text("b"), int(3)], "a extra%!(EXTRA string=b, int64=3)"),
            ("%s missing %d", vec![text("a")], "a missing %!d(MISSING)"),
            ("%d|%t", vec![text("a"), Printable::Nil], "%!d(string=a)|%!t(<nil>)"),
            (
                "%6.3v|%6v|%-6v|%06v",
                vec![double(1.23456), text("a"), Printable::Bool(true), int(-3)],
                "  1.23|     a|true  |-00003",
            ),
            ("%", vec![text("a")], "%!(NOVERB)%!(EXTRA string=a)"),
            (
                "%v %v %g %.3g %.10g %+v",
                vec![
                    double(1e6),
                    double(1.5e-5),
                    double(123_456.789),
                    double(1_234_567.0),
                    double(1.0 / 3.0),
                    double(2.5),
                ],
                "1e+06 1.5e-05 123456.789 1.23e+06 0.3333333333 +2.5",
            ),
            (
                "%08.3f|%+08d|%x|%#o|%.0d|%5.3d|% x",
                vec![double(-2.71659), int(42), int(-255), int(8), int(0), int(5), text("abc")],
                "-002.717|+0000042|-ff|010||  005|61 62 63",
            ),
            ("%[5]d|%s", vec![int(1)], "%!d(BADINDEX)|%!s(int64=1)"),
            ("%v|%d|%T", vec![shown(), shown(), shown()], "1ns|1|time.Duration"),
            ("%v %s", vec![list(), Printable::List(vec![text("a")], "[]string")], "[a 1 <nil>] [a]"),
        ];
        for (pattern, arguments, expected) in cases {
            assert_eq!(format(pattern, &arguments), expected, "{pattern}");
        }
    }
}
