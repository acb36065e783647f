//! The words of a statement.

/// One word.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Token {
    /// A name or keyword.
    Name(String),
    /// Text in double quotes, escapes resolved.
    Text(String),
    /// A whole number.
    Integer(i64),
    /// A number with a point.
    Double(f64),
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
            Self::Sign(sign) => (*sign).to_owned(),
        }
    }
}

const SIGNS: [&str; 18] =
    ["==", "!=", "<=", ">=", "<", ">", "(", ")", "[", "]", "{", "}", ",", ".", "+", "-", "*", "/"];

/// Splits a statement into words.
pub(super) fn split(text: &str) -> Result<Vec<Token>, String> {
    let mut tokens = Vec::new();
    let mut rest = text.trim_start();
    while let Some(first) = rest.chars().next() {
        let (token, length) = if first == '"' {
            text_token(rest)?
        } else if first.is_ascii_alphabetic() || first == '_' {
            let length = rest.find(|c: char| !c.is_ascii_alphanumeric() && c != '_').unwrap_or(rest.len());
            (Token::Name(rest[..length].to_owned()), length)
        } else if let Some(number) = number_token(rest, tokens.last())? {
            number
        } else {
            let sign = SIGNS.into_iter().find(|sign| rest.starts_with(sign));
            let sign = sign.ok_or_else(|| format!("unexpected `{first}`"))?;
            (Token::Sign(sign), sign.len())
        };
        tokens.push(token);
        rest = rest[length..].trim_start();
    }
    Ok(tokens)
}

/// A number, signed where no value stands before it.
fn number_token(rest: &str, before: Option<&Token>) -> Result<Option<(Token, usize)>, String> {
    let after_value = matches!(
        before,
        Some(Token::Name(_) | Token::Text(_) | Token::Integer(_) | Token::Double(_) | Token::Sign(")" | "]"))
    );
    let unsigned = rest.strip_prefix(['-', '+']).filter(|_| !after_value).unwrap_or(rest);
    let digit_at = |index: usize| unsigned.as_bytes().get(index).is_some_and(u8::is_ascii_digit);
    if !(digit_at(0) || (unsigned.starts_with('.') && digit_at(1) && !after_value)) {
        return Ok(None);
    }
    let mut end = unsigned.find(|c: char| !c.is_ascii_digit()).unwrap_or(unsigned.len());
    let mut double = false;
    if unsigned[end..].starts_with('.') && digit_at(end + 1) {
        double = true;
        end += 1;
        end += unsigned[end..].find(|c: char| !c.is_ascii_digit()).unwrap_or(unsigned.len() - end);
        let exponent = unsigned[end..].strip_prefix(['e', 'E']).map(|e| e.strip_prefix(['-', '+']).unwrap_or(e));
        if let Some(digits) = exponent.filter(|e| e.starts_with(|c: char| c.is_ascii_digit())) {
            let length = digits.find(|c: char| !c.is_ascii_digit()).unwrap_or(digits.len());
            end = unsigned.len() - digits.len() + length;
        }
    }
    let end = rest.len() - unsigned.len() + end;
    let word = &rest[..end];
    let token = if double {
        word.parse().map(Token::Double).map_err(|_| format!("`{word}` is no number"))?
    } else {
        word.parse().map(Token::Integer).map_err(|_| format!("`{word}` is no whole number of 64 bits"))?
    };
    Ok(Some((token, end)))
}

/// Text in double quotes with Go's escapes, and how long it is as written.
fn text_token(rest: &str) -> Result<(Token, usize), String> {
    let mut text = String::new();
    let mut characters = rest.char_indices().skip(1);
    while let Some((place, c)) = characters.next() {
        match c {
            '"' => return Ok((Token::Text(text), place + 1)),
            '\n' => break,
            '\\' => {
                let (_, escape) = characters.next().ok_or("text without an end")?;
                text.push(match escape {
                    '"' | '\\' => escape,
                    'n' => '\n',
                    'r' => '\r',
                    't' => '\t',
                    'a' => '\u{7}',
                    'b' => '\u{8}',
                    'f' => '\u{c}',
                    'v' => '\u{b}',
                    'x' | 'u' | 'U' => {
                        let length = match escape {
                            'x' => 2,
                            'u' => 4,
                            _ => 8,
                        };
                        let digits: String = characters.by_ref().take(length).map(|(_, c)| c).collect();
                        let code = u32::from_str_radix(&digits, 16).ok().filter(|_| digits.len() == length);
                        let code = code.filter(|code| escape != 'x' || *code < 0x80).and_then(char::from_u32);
                        code.ok_or_else(|| format!("`\\{escape}{digits}` is no character"))?
                    }
                    _ => return Err(format!("`\\{escape}` is no escape; a backslash is written `\\\\`")),
                });
            }
            _ => text.push(c),
        }
    }
    Err("text without an end".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_of_all_kinds() {
        let shown =
            |text: &str| split(text).map(|tokens| tokens.iter().map(Token::shown).collect::<Vec<_>>().join(" "));
        assert_eq!(
            shown(r#"set(a.b["k\"\n"],-1.5e2)where x==nil and y!= 3"#).as_deref(),
            Ok(r#"set ( a . b [ "k\"\n" ] , -150 ) where x == nil and y != 3"#)
        );
        for wrong in [r#""open"#, r#""\q""#, "a ; b", "99999999999999999999", r#""\xff""#] {
            assert!(split(wrong).is_err(), "{wrong}");
        }
    }
}
