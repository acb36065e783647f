//! The words of a statement, each with its place.

use super::Fault;
use crate::otlp::Text;

/// One word.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Token {
    /// A name or keyword.
    Name(String),
    /// Text in double quotes, escapes resolved.
    Text(Text),
    /// A whole number.
    Integer(i64),
    /// A number with a point.
    Double(f64),
    /// `0x...`.
    Bytes(Vec<u8>),
    /// `==`, `(`, `.` and so on.
    Sign(&'static str),
}

impl Token {
    /// As it would be written, for messages.
    pub fn shown(&self) -> String {
        match self {
            Self::Name(name) => name.clone(),
            Self::Text(text) => format!("{text:?}"),
            Self::Integer(value) => value.to_string(),
            Self::Double(value) => value.to_string(),
            Self::Bytes(bytes) => format!("0x{}", data_encoding::HEXLOWER.encode(bytes)),
            Self::Sign(sign) => (*sign).to_owned(),
        }
    }
}

/// Longer ones before those that they begin with.
const SIGNS: [&str; 20] =
    ["==", "!=", "<=", ">=", "=>", "<", ">", "=", "(", ")", "[", "]", "{", "}", ":", ",", ".", "+", "-", "*"];

/// Splits a statement into words, each with the offset at which it begins.
pub(super) fn split(statement: &str) -> Result<Vec<(Token, usize)>, Fault> {
    let mut tokens = Vec::new();
    let mut at = 0;
    loop {
        let rest = &statement[at..];
        at += rest.len() - rest.trim_start_matches(['\t', '\n', '\u{c}', '\r', ' ']).len();
        let rest = &statement[at..];
        let Some(first) = rest.chars().next() else { return Ok(tokens) };
        let (token, length) = if first == '"' {
            text(rest).map_err(|(what, offset)| Fault::new(at + offset, what))?
        } else if first.is_ascii_alphabetic() || first == '_' {
            let length = rest.find(|c: char| !c.is_ascii_alphanumeric() && c != '_').unwrap_or(rest.len());
            (Token::Name(rest[..length].to_owned()), length)
        } else if let Some(number) = number(rest).map_err(|what| Fault::new(at, what))? {
            number
        } else {
            // `/` and `*` divide and multiply.
            let sign = SIGNS.into_iter().chain(["/"]).find(|sign| rest.starts_with(sign));
            let sign = sign.ok_or_else(|| Fault::new(at, format!("unexpected `{first}`")))?;
            (Token::Sign(sign), sign.len())
        };
        tokens.push((token, at));
        at += length;
    }
}

/// A number without a sign: `0x1f` (bytes), `1.5e3`, `.5`, `12`.
fn number(rest: &str) -> Result<Option<(Token, usize)>, String> {
    let digits = |text: &str| text.bytes().take_while(u8::is_ascii_digit).count();
    let hexadecimal = rest.strip_prefix("0x").map_or(0, |rest| rest.bytes().take_while(u8::is_ascii_hexdigit).count());
    if hexadecimal > 0 {
        let (written, end) = (&rest[2..2 + hexadecimal], 2 + hexadecimal);
        let bytes = data_encoding::HEXLOWER_PERMISSIVE.decode(written.as_bytes());
        let bytes = bytes.map_err(|_| format!("bytes need an even number of hexadecimal digits: `0x{written}`"))?;
        return Ok(Some((Token::Bytes(bytes), end)));
    }
    let whole = digits(rest);
    let mut end = whole;
    if rest[whole..].starts_with('.') {
        let fraction = digits(&rest[whole + 1..]);
        if whole + fraction == 0 {
            return Ok(None);
        }
        end += 1 + fraction;
        if rest[end..].starts_with(['e', 'E']) {
            let signed = usize::from(rest[end + 1..].starts_with(['+', '-']));
            let exponent = digits(&rest[end + 1 + signed..]);
            end += if exponent > 0 { 1 + signed + exponent } else { 0 };
        }
        let value: f64 = rest[..end].parse().map_err(|_| format!("`{}` is no number", &rest[..end]))?;
        return if value.is_finite() {
            Ok(Some((Token::Double(value), end)))
        } else {
            Err(format!("the number `{}` is too large", &rest[..end]))
        };
    }
    if whole == 0 {
        return Ok(None);
    }
    let value = rest[..end].parse().map_err(|_| format!("the number `{}` is too large", &rest[..end]))?;
    Ok(Some((Token::Integer(value), end)))
}

/// A text in double quotes with Go's escapes; a wrong one with the offset at which it stands.
fn text(rest: &str) -> Result<(Token, usize), (String, usize)> {
    let mut value = String::new();
    let mut characters = rest.char_indices().skip(1);
    while let Some((place, c)) = characters.next() {
        match c {
            '"' => return Ok((Token::Text(value.into()), place + 1)),
            '\\' => {
                let Some((_, escape)) = characters.next() else { break };
                let wrong = || (format!("`\\{escape}` is no escape; write `\\\\` for a backslash"), place);
                let mut number = |first: Option<char>, digits: usize, radix: u32| {
                    let mut value = first.map_or(Some(0), |first| first.to_digit(radix));
                    for _ in 0..digits {
                        let digit = characters.next().and_then(|(_, digit)| digit.to_digit(radix));
                        value =
                            value.zip(digit).and_then(|(value, digit)| value.checked_mul(radix)?.checked_add(digit));
                    }
                    value.ok_or_else(wrong)
                };
                match escape {
                    'a' => value.push('\u{7}'),
                    'b' => value.push('\u{8}'),
                    'f' => value.push('\u{c}'),
                    'n' => value.push('\n'),
                    'r' => value.push('\r'),
                    't' => value.push('\t'),
                    'v' => value.push('\u{b}'),
                    '\\' | '"' => value.push(escape),
                    // Those mean characters, not bytes.
                    'x' => value.push(char::from_u32(number(None, 2, 16)?).ok_or_else(wrong)?),
                    '0'..='7' => {
                        let code = number(Some(escape), 2, 8)?;
                        value.push(u8::try_from(code).map(char::from).map_err(|_| wrong())?);
                    }
                    'u' | 'U' => {
                        let code = number(None, if escape == 'u' { 4 } else { 8 }, 16)?;
                        value.push(char::from_u32(code).ok_or_else(wrong)?);
                    }
                    _ => return Err(wrong()),
                }
            }
            _ => value.push(c),
        }
    }
    Err(("a text without its closing quote".to_owned(), 0))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tokens(text: &str) -> Vec<Token> {
        split(text).expect(text).into_iter().map(|(token, _)| token).collect()
    }

    #[test]
    fn words_and_places() {
        let found = split("set(a.b[\"c\"], 1.5)").expect("splits");
        let places: Vec<usize> = found.iter().map(|(_, at)| *at).collect();
        assert_eq!(places, [0, 3, 4, 5, 6, 7, 8, 11, 12, 14, 17]);
        assert_eq!(
            tokens("a==b<=1"),
            [Token::Name("a".into()), Token::Sign("=="), Token::Name("b".into()), Token::Sign("<="), Token::Integer(1)]
        );
    }

    #[test]
    fn numbers() {
        assert_eq!(
            tokens("1 1. .5 1.5e3 0x0aFF 007"),
            [
                Token::Integer(1),
                Token::Double(1.0),
                Token::Double(0.5),
                Token::Double(1500.0),
                Token::Bytes(vec![10, 255]),
                Token::Integer(7)
            ]
        );
        // Without a point there is no exponent.
        assert_eq!(tokens("1e5"), [Token::Integer(1), Token::Name("e5".into())]);
        for wrong in ["0xabc", "9223372036854775808", "1.0e999"] {
            assert!(split(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn texts() {
        let text = |written: &str| match tokens(written).as_slice() {
            [Token::Text(text)] => text.as_bytes().to_vec(),
            other => panic!("{other:?}"),
        };
        assert_eq!(text(r#""a\\b\"\n\t\x41\101\u00e9é""#), "a\\b\"\n\tAAéé".as_bytes());
        assert_eq!(text("\"\\xff\\377\n\""), "ÿÿ\n".as_bytes());
        for (wrong, word, at) in [(r#"x "a"#, "closing", 2), (r#""\d""#, "no escape", 1), (r#""\u12""#, "no escape", 1)]
        {
            let fault = split(wrong).expect_err(wrong);
            assert!(fault.what.contains(word) && fault.at == at, "{wrong}: {fault:?}");
        }
        assert_eq!(split("a § b").expect_err("no sign").at, 2);
    }
}
