//! Numbers read from text as Go reads them.

/// Go's NaN, which is not that of Rust.
pub const NAN: f64 = f64::from_bits(0x7ff8_0000_0000_0001);

/// A double: decimal or hexadecimal, with `_` between digits, `inf` and `nan` in any case. What does not fit is None.
#[must_use]
pub fn parse_double(text: &str) -> Option<f64> {
    let unsigned = text.strip_prefix(['+', '-']).unwrap_or(text);
    let prefixed = unsigned.get(..2).is_some_and(|prefix| prefix.eq_ignore_ascii_case("0x"));
    let plain = if text.contains('_') { without_underscores(text, prefixed)? } else { text.to_owned() };
    let value: f64 = if prefixed { hexadecimal(&plain)? } else { plain.parse().ok()? };
    if value.is_nan() {
        return (unsigned == text).then_some(NAN);
    }
    // Of digits, an infinity would be a number that is too large.
    let digits = unsigned.starts_with(|c: char| c.is_ascii_digit() || c == '.');
    (!(value.is_infinite() && digits)).then_some(value)
}

/// A signed integer of decimal digits.
#[must_use]
pub fn parse_integer(text: &str) -> Option<i64> {
    text.parse().ok()
}

/// A double as an integer: cut off, and the least one for what does not fit, as on amd64.
#[must_use]
#[expect(clippy::cast_possible_truncation, reason = "the range is checked")]
pub fn truncate(value: f64) -> i64 {
    let fits = (-9_223_372_036_854_775_808.0..9_223_372_036_854_775_808.0).contains(&value);
    if fits { value as i64 } else { i64::MIN }
}

/// Each `_` must stand between two digits, or between a base prefix and a digit.
fn without_underscores(text: &str, prefixed: bool) -> Option<String> {
    let bytes = text.as_bytes();
    let digit = |byte: u8| if prefixed { byte.is_ascii_hexdigit() } else { byte.is_ascii_digit() };
    for (place, _) in bytes.iter().enumerate().filter(|(_, byte)| **byte == b'_') {
        let before = place.checked_sub(1).map(|place| bytes[place])?;
        let base = prefixed && matches!(before, b'x' | b'X');
        if !(digit(before) || base) || !bytes.get(place + 1).copied().is_some_and(digit) {
            return None;
        }
    }
    Some(text.replace('_', ""))
}

/// `0x1.8p-2`: the exponent must be there.
fn hexadecimal(text: &str) -> Option<f64> {
    let (sign, rest) = match text.as_bytes().first()? {
        b'-' => (-1.0, &text[1..]),
        b'+' => (1.0, &text[1..]),
        _ => (1.0, text),
    };
    let (mantissa, exponent) = rest.get(2..)?.split_once(['p', 'P'])?;
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    if whole.is_empty() && fraction.is_empty() {
        return None;
    }
    let exponent: i32 = exponent.parse().ok()?;
    let mut value = 0.0;
    for digit in whole.chars().chain(fraction.chars()) {
        value = value * 16.0 + f64::from(digit.to_digit(16)?);
    }
    let scale = exponent.saturating_sub(i32::try_from(fraction.len()).ok()?.saturating_mul(4));
    Some(sign * value * 2f64.powi(scale))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn doubles_as_go_reads_them() {
        let good = [
            ("1.5", 1.5),
            ("+1.5", 1.5),
            (".5", 0.5),
            ("5.", 5.0),
            ("1_000", 1000.0),
            ("1_23.50_0_0e+1_2", 1.235e14),
            ("0x1p-2", 0.25),
            ("0x_1p4", 16.0),
            ("-0X1.8P1", -3.0),
            ("Inf", f64::INFINITY),
            ("-infinity", f64::NEG_INFINITY),
            ("1e-400", 0.0),
        ];
        for (text, value) in good {
            assert_eq!(parse_double(text), Some(value), "{text}");
        }
        assert!(parse_double("NaN").is_some_and(f64::is_nan));
        for wrong in ["", " 5", "1e", "1e400", "0x", "0x1.8", "_1", "1__0", "1_", "1_.5", "e5", "."] {
            assert_eq!(parse_double(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn integers() {
        assert_eq!((parse_integer("+5"), parse_integer("-0")), (Some(5), Some(0)));
        for wrong in [" 5", "0x1f", "1_0", "1.5", "9223372036854775808", ""] {
            assert_eq!(parse_integer(wrong), None, "{wrong}");
        }
        assert_eq!((truncate(-2.5), truncate(f64::NAN), truncate(1e19)), (-2, i64::MIN, i64::MIN));
    }
}
