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
    let mut exponent = exponent_of_two(exponent)?.saturating_sub(4 * i64::try_from(fraction.len()).ok()?);
    let mut bits = 0_u64;
    for digit in whole.chars().chain(fraction.chars()) {
        let digit = u64::from(digit.to_digit(16)?);
        if bits >> 56 == 0 {
            bits = bits << 4 | digit;
        } else {
            // That there is more is all that matters to the rounding.
            bits |= u64::from(digit != 0);
            exponent = exponent.saturating_add(4);
        }
    }
    scaled(bits, exponent).map(|value| sign * value)
}

/// Digits with a sign, if any; what is far out of range stays so.
fn exponent_of_two(text: &str) -> Option<i64> {
    let digits = text.strip_prefix(['+', '-']).unwrap_or(text);
    if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let size = digits.parse().map_or(i64::MAX / 4, |size: i64| size.min(i64::MAX / 4));
    Some(if text.starts_with('-') { -size } else { size })
}

/// `bits` times 2 to the exponent, rounded to the nearest double; None if that is too great.
fn scaled(bits: u64, exponent: i64) -> Option<f64> {
    if bits == 0 {
        return Some(0.0);
    }
    let length = i64::from(64 - bits.leading_zeros());
    if exponent.saturating_add(length) > 1024 {
        return None;
    }
    let superfluous = (length - 53).max((-1074_i64).saturating_sub(exponent)).max(0);
    let (mut kept, mut shift) = (bits, 0);
    if superfluous > 0 {
        shift = u32::try_from(superfluous).unwrap_or(u32::MAX);
        let rest = bits & 1_u64.checked_shl(shift).map_or(u64::MAX, |bit| bit - 1);
        kept = bits.checked_shr(shift).unwrap_or(0);
        let half = 1_u64.checked_shl(shift - 1).unwrap_or(u64::MAX);
        kept += u64::from(rest > half || rest == half && kept & 1 == 1);
    }
    let power = exponent.saturating_add(shift.into());
    let power = match u64::try_from(power + 1022) {
        Ok(biased) => f64::from_bits((biased + 1) << 52),
        Err(_) => f64::from_bits(1_u64.checked_shl(u32::try_from(power + 1074).unwrap_or(u32::MAX)).unwrap_or(0)),
    };
    let value = kept as f64 * power;
    value.is_finite().then_some(value)
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

    #[derive(serde::Deserialize)]
    struct Recorded {
        text: String,
        double: Option<String>,
        integer: Option<String>,
    }

    #[test]
    fn texts_are_the_numbers_that_they_are_to_go() {
        let mut wrong = Vec::new();
        for line in include_str!("../../../tests/data/go/numbers.jsonl").lines() {
            let recorded: Recorded = serde_json::from_str(line).expect("a record");
            let double = parse_double(&recorded.text).map(|value| match value {
                value if value.is_nan() => "NaN".to_owned(),
                value => format!("{:x}", value.to_bits()),
            });
            let integer = parse_integer(&recorded.text).map(|value| value.to_string());
            if (&double, &integer) != (&recorded.double, &recorded.integer) {
                let Recorded { text, double: wanted, integer: whole } = recorded;
                wrong.push(format!("{text:?}: {double:?} {integer:?}, Go reads {wanted:?} {whole:?}"));
            }
        }
        assert!(wrong.is_empty(), "{} differ:\n{}", wrong.len(), wrong.join("\n"));
    }
}
