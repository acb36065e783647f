//! Scalars as the reference collector prints them in JSON.

use std::io::Write;

use data_encoding::BASE64;

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
                out.extend_from_slice(&HEX[usize::from(byte)]);
            }
        }
        rest = &rest[plain + 1..];
    }
    out.push(b'"');
}

/// How many bytes at the start need no escape: eight at a time, the last eight once more where the length is no multiple.
fn plain_length(text: &[u8]) -> usize {
    let place = |from: usize, word: &[u8; 8]| {
        let special = special_bytes(u64::from_le_bytes(*word));
        (special != 0).then(|| from + special.trailing_zeros() as usize / 8)
    };
    let Some(last) = text.last_chunk() else {
        return text.iter().position(|byte| ESCAPED[usize::from(*byte)]).unwrap_or(text.len());
    };
    let words = text.as_chunks::<8>().0.iter().enumerate();
    let mut found = words.filter_map(|(index, word)| place(index * 8, word));
    found.next().or_else(|| place(text.len() - 8, last)).unwrap_or(text.len())
}

/// The high bit of each byte that must be escaped; up to the first one that is set they are right.
fn special_bytes(word: u64) -> u64 {
    const ONES: u64 = u64::MAX / 255;
    let zero = |word: u64| word.wrapping_sub(ONES) & !word;
    let equal = |byte: u8| zero(word ^ (ONES * u64::from(byte)));
    let control = word.wrapping_sub(ONES * 0x20) & !word;
    (control | equal(b'"') | equal(b'\\')) & (ONES * 0x80)
}

/// Quotes, backslashes and control characters.
const ESCAPED: [bool; 256] = {
    let mut escaped = [false; 256];
    let mut byte = 0;
    while byte < 0x20 {
        escaped[byte] = true;
        byte += 1;
    }
    escaped[b'"' as usize] = true;
    escaped[b'\\' as usize] = true;
    escaped
};

/// A double as the reference prints it: shortest digits, an exponent below 1e-6 and from 1e21 on (of two digits
/// at least), what is no number as text.
pub fn write_double(out: &mut Vec<u8>, value: f64) {
    if value.is_nan() {
        out.extend_from_slice(b"\"NaN\"");
        return;
    }
    if value.is_infinite() {
        out.extend_from_slice(if value > 0.0 { b"\"Infinity\"" } else { b"\"-Infinity\"" });
        return;
    }
    let mut buffer = zmij::Buffer::new();
    let text = buffer.format_finite(value);
    match text.split_once('e') {
        None => out.extend_from_slice(text.strip_suffix(".0").unwrap_or(text).as_bytes()),
        // Where the border of the exponents is not the same.
        Some(_) if (1e-6..1e21).contains(&value.abs()) => write(out, format_args!("{value}")),
        Some((digits, exponent)) => {
            let sign = if exponent.starts_with('-') { '-' } else { '+' };
            let exponent = exponent.trim_start_matches(['+', '-']);
            write(out, format_args!("{digits}e{sign}{exponent:0>2}"));
        }
    }
}

/// An unsigned number.
pub(super) fn write_unsigned(out: &mut Vec<u8>, number: u64) {
    out.extend_from_slice(itoa::Buffer::new().format(number).as_bytes());
}

/// A signed number.
pub(super) fn write_signed(out: &mut Vec<u8>, number: i64) {
    out.extend_from_slice(itoa::Buffer::new().format(number).as_bytes());
}

/// Bytes as hexadecimal text in quotes.
pub(super) fn write_hex(out: &mut Vec<u8>, bytes: &[u8]) {
    out.push(b'"');
    for bytes in bytes.chunks(16) {
        let mut digits = [[0; 2]; 16];
        for (digits, byte) in digits.iter_mut().zip(bytes) {
            *digits = HEX[usize::from(*byte)];
        }
        out.extend_from_slice(digits[..bytes.len()].as_flattened());
    }
    out.push(b'"');
}

/// Both digits of each byte.
const HEX: [[u8; 2]; 256] = {
    let digits = b"0123456789abcdef";
    let mut all = [[0; 2]; 256];
    let mut byte = 0;
    while byte < all.len() {
        all[byte] = [digits[byte >> 4], digits[byte & 15]];
        byte += 1;
    }
    all
};

/// Bytes as base64 text in quotes.
pub(super) fn write_base64(out: &mut Vec<u8>, bytes: &[u8]) {
    out.push(b'"');
    let start = out.len();
    out.resize(start + BASE64.encode_len(bytes.len()), 0);
    BASE64.encode_mut(bytes, &mut out[start..]);
    out.push(b'"');
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
    fn doubles_have_the_shortest_digits() {
        let mut random = fastrand::Rng::with_seed(1);
        for _ in 0..100_000 {
            let plain = (random.f64() - 0.5) * 10_f64.powi(random.i32(-5..15));
            let short = f64::from(random.i32(..)) / 10_f64.powi(random.i32(0..9));
            for value in [plain, short, short.trunc(), f64::from_bits(random.u64(..)).abs().min(f64::MAX)] {
                let (text, known) = (printed(|out| write_double(out, value)), format!("{value:e}"));
                let digits = |text: &str| text.split('e').next().unwrap_or_default().replace(['.', '-'], "");
                let trimmed = digits(&text);
                let trimmed = trimmed.trim_matches('0').len();
                assert_eq!(text.parse(), Ok(value));
                assert_eq!(trimmed, digits(&known).trim_matches('0').len(), "{value}");
            }
        }
        // Of two that are as near, the even one, as the reference has it.
        assert_eq!(printed(|out| write_double(out, 234_330_706_464_457.0 / 16.0)), "14645669154028.562");
    }

    #[test]
    fn every_byte_at_every_place_is_escaped_as_it_must_be() {
        for byte in 0..=u8::MAX {
            for length in 1..40 {
                for place in 0..length {
                    let mut text = vec![b'x'; length];
                    text[place] = byte;
                    let escaped = match byte {
                        b'"' | b'\\' => vec![b'\\', byte],
                        b'\n' => b"\\n".to_vec(),
                        b'\r' => b"\\r".to_vec(),
                        b'\t' => b"\\t".to_vec(),
                        ..0x20 => format!("\\u{byte:04x}").into_bytes(),
                        _ => vec![byte],
                    };
                    let wanted = [b"\"", &text[..place], &escaped, &text[place + 1..], b"\""].concat();
                    let mut out = Vec::new();
                    write_string(&mut out, &text);
                    assert_eq!(out, wanted, "{byte} at {place} of {length}");
                }
            }
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
