//! `%XX` in URLs, paths, gRPC messages and names of folders.

use std::fmt::Write as _;

/// The text with a `%` and two hexadecimal digits for each byte that is neither `plain` nor an ASCII letter or digit.
#[must_use]
pub fn encode(text: &str, plain: &[u8]) -> String {
    let mut out = String::with_capacity(text.len());
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || plain.contains(&byte) {
            out.push(char::from(byte));
        } else {
            // Writing to a string cannot fail.
            let _ = write!(out, "%{byte:02X}");
        }
    }
    out
}

/// The bytes with each `%` and two hexadecimal digits replaced by the byte that they stand for; other `%` stay.
#[must_use]
pub fn decode(text: &str) -> Vec<u8> {
    let (mut bytes, mut rest) = (Vec::with_capacity(text.len()), text.as_bytes());
    while let Some((&first, after)) = rest.split_first() {
        match after {
            [high, low, after @ ..] if first == b'%' && high.is_ascii_hexdigit() && low.is_ascii_hexdigit() => {
                bytes.push(digit(*high) << 4 | digit(*low));
                rest = after;
            }
            _ => {
                bytes.push(first);
                rest = after;
            }
        }
    }
    bytes
}

/// The value of a hexadecimal digit.
fn digit(digit: u8) -> u8 {
    match digit {
        b'0'..=b'9' => digit - b'0',
        _ => digit.to_ascii_lowercase() - b'a' + 10,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_plain_is_written_so_that_it_comes_back() {
        assert_eq!(encode("a b/\u{f6}%~", b"/~"), "a%20b/%C3%B6%25~");
        for text in ["", "a%2Fb", "\0\u{7f} \u{20ac}", "a-_.~"] {
            assert_eq!(decode(&encode(text, b"-_.~")), text.as_bytes(), "{text}");
        }
    }

    #[test]
    fn two_digits_are_a_byte_and_the_rest_stays() {
        for (text, wanted) in [
            ("", &b""[..]),
            ("a%20b%C3%B6%fF%00", b"a b\xc3\xb6\xff\x00"),
            ("%", b"%"),
            ("%4", b"%4"),
            ("%%41", b"%A"),
            ("%+f% 1%zz%-1", b"%+f% 1%zz%-1"),
            ("%\u{f6}%25", b"%\xc3\xb6%"),
        ] {
            assert_eq!(decode(text), wanted, "{text}");
        }
        for byte in 0..=u8::MAX {
            assert_eq!((decode(&format!("%{byte:02x}")), decode(&format!("%{byte:02X}"))), (vec![byte], vec![byte]));
        }
    }
}
