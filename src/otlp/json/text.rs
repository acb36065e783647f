//! Scalars as the reference collector prints them in JSON.

use std::io::Write;

use data_encoding::{BASE64, Encoding, HEXLOWER};

/// Text in quotes. Only quotes, backslashes and control characters are escaped; bytes that are not UTF-8 pass.
pub fn write_string(out: &mut Vec<u8>, text: &[u8]) {
    out.reserve(text.len() + 2);
    out.push(b'"');
    let mut rest = text;
    loop {
        let plain = plain_length(rest);
        out.extend_from_slice(&rest[..plain]);
        let Some(&byte) = rest.get(plain) else { break };
        match byte {
            b'"' | b'\\' => out.extend_from_slice(&[b'\\', byte]),
            b'\n' => out.extend_from_slice(b"\\n"),
            b'\r' => out.extend_from_slice(b"\\r"),
            b'\t' => out.extend_from_slice(b"\\t"),
            _ => {
                out.extend_from_slice(b"\\u00");
                write_encoded(out, &HEXLOWER, &[byte]);
            }
        }
        rest = &rest[plain + 1..];
    }
    out.push(b'"');
}

/// How many bytes at the start need no escape. Sixteen at a time, so that the compiler compares them at once.
fn plain_length(text: &[u8]) -> usize {
    let special = |byte: &u8| *byte < 0x20 || *byte == b'"' || *byte == b'\\';
    let (blocks, tail) = text.as_chunks::<16>();
    for (place, block) in blocks.iter().enumerate() {
        if block.iter().fold(false, |found, byte| found | special(byte)) {
            return place * 16 + block.iter().position(special).unwrap_or(0);
        }
    }
    blocks.len() * 16 + tail.iter().position(special).unwrap_or(tail.len())
}

/// A double as the reference prints it: shortest digits, an exponent below 1e-6 and from 1e21 on (of two digits
/// at least), what is no number as text.
pub fn write_double(out: &mut Vec<u8>, value: f64) {
    let size = value.abs();
    if value.is_nan() {
        out.extend_from_slice(b"\"NaN\"");
    } else if value.is_infinite() {
        out.extend_from_slice(if value > 0.0 { b"\"Infinity\"" } else { b"\"-Infinity\"" });
    } else if size != 0.0 && !(1e-6..1e21).contains(&size) {
        let text = format!("{value:e}");
        let (digits, exponent) = text.split_once('e').unwrap_or((&text, "0"));
        let (sign, exponent) = exponent.strip_prefix('-').map_or(('+', exponent), |exponent| ('-', exponent));
        write(out, format_args!("{digits}e{sign}{exponent:0>2}"));
    } else {
        write(out, format_args!("{value}"));
    }
}

/// An unsigned number.
pub(super) fn write_unsigned(out: &mut Vec<u8>, mut number: u64) {
    let mut digits = [0; 20];
    let mut place = digits.len();
    loop {
        place -= 1;
        digits[place] = b'0' + (number % 10) as u8;
        number /= 10;
        if number == 0 {
            break;
        }
    }
    out.extend_from_slice(&digits[place..]);
}

/// A signed number.
pub(super) fn write_signed(out: &mut Vec<u8>, number: i64) {
    if number < 0 {
        out.push(b'-');
    }
    write_unsigned(out, number.unsigned_abs());
}

/// Bytes as hexadecimal text in quotes.
pub(super) fn write_hex(out: &mut Vec<u8>, bytes: &[u8]) {
    out.push(b'"');
    write_encoded(out, &HEXLOWER, bytes);
    out.push(b'"');
}

/// Bytes as base64 text in quotes.
pub(super) fn write_base64(out: &mut Vec<u8>, bytes: &[u8]) {
    out.push(b'"');
    write_encoded(out, &BASE64, bytes);
    out.push(b'"');
}

fn write_encoded(out: &mut Vec<u8>, encoding: &Encoding, bytes: &[u8]) {
    let start = out.len();
    out.resize(start + encoding.encode_len(bytes.len()), 0);
    encoding.encode_mut(bytes, &mut out[start..]);
}

fn write(out: &mut Vec<u8>, text: std::fmt::Arguments<'_>) {
    // Writing into memory cannot fail.
    let _ = out.write_fmt(text);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn printed(print: impl FnOnce(&mut Vec<u8>)) -> String {
        let mut out = Vec::new();
        print(&mut out);
        String::from_utf8_lossy(&out).into_owned()
    }

    #[test]
    fn doubles_as_the_reference_prints_them() {
        let cases: [(f64, &str); 17] = [
            (0.0, "0"),
            (-0.0, "-0"),
            (3.0, "3"),
            (0.5, "0.5"),
            (0.1, "0.1"),
            (123_456_789.125, "123456789.125"),
            (1e20, "100000000000000000000"),
            (1e21, "1e+21"),
            (1.5e300, "1.5e+300"),
            (1e-6, "0.000001"),
            (1e-7, "1e-07"),
            (-1.25e-7, "-1.25e-07"),
            (5e-324, "5e-324"),
            (f64::MAX, "1.7976931348623157e+308"),
            (f64::NAN, "\"NaN\""),
            (f64::INFINITY, "\"Infinity\""),
            (f64::NEG_INFINITY, "\"-Infinity\""),
        ];
        for (value, text) in cases {
            assert_eq!(printed(|out| write_double(out, value)), text);
        }
    }

    #[test]
    fn strings_escape_what_must_be() {
        let cases = [
            ("", r#""""#),
            ("plain", r#""plain""#),
            ("a \"quoted\" \\ text", r#""a \"quoted\" \\ text""#),
            ("\n\r\t\u{1}\u{7f}", "\"\\n\\r\\t\\u0001\u{7f}\""),
            ("<&> é \u{2028}", "\"<&> é \u{2028}\""),
            ("sixteen and more bytes of plain text, then \"", "\"sixteen and more bytes of plain text, then \\\"\""),
        ];
        for (text, json) in cases {
            assert_eq!(printed(|out| write_string(out, text.as_bytes())), json);
        }
    }

    #[test]
    fn integers() {
        for number in [0, 1, -1, i64::MAX, i64::MIN, 1000] {
            assert_eq!(printed(|out| write_signed(out, number)), number.to_string());
        }
        assert_eq!(printed(|out| write_unsigned(out, u64::MAX)), u64::MAX.to_string());
    }
}
