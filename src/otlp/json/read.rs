//! A reader of JSON text, value by value, with the rules of the reference: text after the first value
//! is not looked at, a lone surrogate becomes U+FFFD, bytes that are not UTF-8 pass.

use std::borrow::Cow;

use crate::otlp::validate::DecodeError;
use crate::otlp::wire::MAX_DEPTH;

/// Stands before the next value or sign.
#[derive(Debug)]
pub(super) struct JsonReader<'a> {
    text: &'a [u8],
    position: usize,
    /// Takes what the reference's other reader of JSON takes beside JSON.
    lenient: bool,
}

impl<'a> JsonReader<'a> {
    pub(super) fn new(text: &'a [u8]) -> Self {
        Self { text, position: 0, lenient: false }
    }

    /// The same for texts that other people wrote: control characters in texts, and any number that can be read.
    pub(super) fn lenient(text: &'a [u8]) -> Self {
        Self { lenient: true, ..Self::new(text) }
    }

    /// An error at the current position.
    pub(super) fn error(&self, what: &str) -> DecodeError {
        DecodeError::new(format!("offset {}: {what}", self.position))
    }

    /// The next sign after white space; it is not taken.
    pub(super) fn peek(&mut self) -> Option<u8> {
        while let Some(&byte) = self.text.get(self.position) {
            if !matches!(byte, b' ' | b'\n' | b'\r' | b'\t') {
                return Some(byte);
            }
            self.position += 1;
        }
        None
    }

    fn take(&mut self, sign: u8) -> bool {
        let found = self.peek() == Some(sign);
        self.position += usize::from(found);
        found
    }

    fn expect(&mut self, sign: u8) -> Result<(), DecodeError> {
        if self.take(sign) {
            return Ok(());
        }
        let found = self.peek().map_or("the end".to_string(), |byte| format!("`{}`", char::from(byte)));
        Err(self.error(&format!("`{}` expected, found {found}", char::from(sign))))
    }

    fn word(&mut self, word: &str) -> bool {
        self.peek();
        let found = self.text[self.position..].starts_with(word.as_bytes());
        self.position += if found { word.len() } else { 0 };
        found
    }

    /// Takes `null` if it is the next value.
    pub(super) fn null(&mut self) -> bool {
        self.word("null")
    }

    /// true or false.
    pub(super) fn boolean(&mut self) -> Result<bool, DecodeError> {
        if self.word("true") {
            Ok(true)
        } else if self.word("false") {
            Ok(false)
        } else {
            Err(self.error("true or false expected"))
        }
    }

    /// An object: `take` is called after each key and must take the value.
    pub(super) fn object(
        &mut self,
        mut take: impl FnMut(&mut Self, &[u8]) -> Result<(), DecodeError>,
    ) -> Result<(), DecodeError> {
        self.expect(b'{')?;
        if self.take(b'}') {
            return Ok(());
        }
        loop {
            let key = self.string()?;
            self.expect(b':')?;
            take(self, &key)?;
            if !self.take(b',') {
                return self.expect(b'}');
            }
        }
    }

    /// A list: `take` is called before each element and must take it.
    pub(super) fn list(
        &mut self,
        mut take: impl FnMut(&mut Self) -> Result<(), DecodeError>,
    ) -> Result<(), DecodeError> {
        self.expect(b'[')?;
        if self.take(b']') {
            return Ok(());
        }
        loop {
            take(self)?;
            if !self.take(b',') {
                return self.expect(b']');
            }
        }
    }

    /// A text without its quotes and escapes.
    pub(super) fn string(&mut self) -> Result<Cow<'a, [u8]>, DecodeError> {
        self.expect(b'"')?;
        let mut decoded = Vec::new();
        loop {
            let rest = &self.text[self.position..];
            let plain = rest.iter().position(|byte| *byte == b'"' || *byte == b'\\' || *byte < 0x20);
            let Some(plain) = plain else { return Err(self.error("a text without an end")) };
            self.position += plain + 1;
            match rest[plain] {
                b'"' if decoded.is_empty() => return Ok(Cow::Borrowed(&rest[..plain])),
                b'"' => {
                    decoded.extend_from_slice(&rest[..plain]);
                    return Ok(Cow::Owned(decoded));
                }
                b'\\' => {
                    decoded.extend_from_slice(&rest[..plain]);
                    self.escape(&mut decoded)?;
                    if decoded.is_empty() {
                        return Err(self.error("an escape without a character"));
                    }
                }
                1.. if self.lenient => decoded.extend_from_slice(&rest[..=plain]),
                _ => return Err(self.error("a control character in a text")),
            }
        }
    }

    fn escape(&mut self, decoded: &mut Vec<u8>) -> Result<(), DecodeError> {
        let sign = self.text.get(self.position).copied();
        self.position += 1;
        let byte = match sign {
            Some(sign @ (b'"' | b'\\' | b'/')) => sign,
            Some(b'b') => 8,
            Some(b'f') => 12,
            Some(b'n') => b'\n',
            Some(b'r') => b'\r',
            Some(b't') => b'\t',
            Some(b'u') => return self.unicode_escape(decoded),
            _ => return Err(self.error("an unknown escape in a text")),
        };
        decoded.push(byte);
        Ok(())
    }

    /// After `\u`. Two surrogates that are no pair become two U+FFFD.
    fn unicode_escape(&mut self, decoded: &mut Vec<u8>) -> Result<(), DecodeError> {
        let mut units = [self.hex_digits()?, 0];
        let mut count = 1;
        if matches!(units[0], 0xd800..0xe000) && self.text[self.position..].starts_with(b"\\u") {
            self.position += 2;
            units[1] = self.hex_digits()?;
            count = 2;
        }
        for character in char::decode_utf16(units.into_iter().take(count)) {
            let character = character.unwrap_or(char::REPLACEMENT_CHARACTER);
            decoded.extend_from_slice(character.encode_utf8(&mut [0; 4]).as_bytes());
        }
        Ok(())
    }

    fn hex_digits(&mut self) -> Result<u16, DecodeError> {
        let digits = self.text.get(self.position..self.position + 4);
        let text = digits.and_then(|digits| std::str::from_utf8(digits).ok());
        let number = text.filter(|text| text.bytes().all(|byte| byte.is_ascii_hexdigit()));
        let number = number.and_then(|text| u16::from_str_radix(text, 16).ok());
        self.position += 4;
        number.ok_or_else(|| {
            self.position = self.position.min(self.text.len());
            self.error("four hexadecimal digits expected")
        })
    }

    /// The text of a number by the grammar of JSON.
    pub(super) fn number(&mut self) -> Result<&'a str, DecodeError> {
        self.peek();
        let rest = &self.text[self.position..];
        let length = if self.lenient { lenient_number_length(rest) } else { number_length(rest) };
        let length = length.ok_or_else(|| self.error("not a number"))?;
        self.position += length;
        std::str::from_utf8(&rest[..length]).map_err(|_| self.error("not a number"))
    }

    /// Takes a value of any kind. `depth` is how many values are around it.
    pub(super) fn skip(&mut self, depth: usize) -> Result<(), DecodeError> {
        match self.peek() {
            _ if depth > MAX_DEPTH => Err(self.error("nested too deeply")),
            Some(b'{') => self.object(|reader, _| reader.skip(depth + 1)),
            Some(b'[') => self.list(|reader| reader.skip(depth + 1)),
            Some(b'"') => self.string().map(drop),
            Some(b't' | b'f') => self.boolean().map(drop),
            Some(b'n') if self.null() => Ok(()),
            _ => self.number().map(drop),
        }
    }
}

/// How long what looks like a number at the start is; None if there is none.
fn lenient_number_length(text: &[u8]) -> Option<usize> {
    let sign = |byte: &&u8| byte.is_ascii_digit() || b"+-.eE".contains(byte);
    text.first().filter(|byte| byte.is_ascii_digit() || **byte == b'-').map(|_| text.iter().take_while(sign).count())
}

/// How long the number at the start is; None if there is none.
fn number_length(text: &[u8]) -> Option<usize> {
    let digits = |from: usize| text[from..].iter().take_while(|byte| byte.is_ascii_digit()).count();
    let mut end = usize::from(text.first() == Some(&b'-'));
    let whole = if text.get(end) == Some(&b'0') { 1 } else { digits(end) };
    end += whole;
    if whole == 0 || text.get(end).is_some_and(u8::is_ascii_digit) {
        return None;
    }
    if text.get(end) == Some(&b'.') {
        let fraction = digits(end + 1);
        end += 1 + fraction;
        if fraction == 0 {
            return None;
        }
    }
    if matches!(text.get(end), Some(b'e' | b'E')) {
        let signed = usize::from(matches!(text.get(end + 1), Some(b'+' | b'-')));
        let exponent = digits(end + 1 + signed);
        end += 1 + signed + exponent;
        if exponent == 0 {
            return None;
        }
    }
    Some(end)
}
