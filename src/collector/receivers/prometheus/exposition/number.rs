//! Numbers of exposition pages: what the reference accepts, and how it writes them.

/// A sample value: decimal, `Inf`, `Infinity` (any case, with a sign) or `NaN` (any case, without one).
///
/// `None` for everything else: hexadecimal, `_` between digits, what does not fit a double.
#[must_use]
pub fn parse_float(text: &[u8]) -> Option<f64> {
    let text = std::str::from_utf8(text).ok()?;
    let digits = text.strip_prefix(['+', '-']).unwrap_or(text);
    let value: f64 = text.parse().ok()?;
    if digits.as_bytes().first().is_some_and(u8::is_ascii_alphabetic) {
        return (value.is_infinite() || digits.len() == text.len()).then_some(value);
    }
    value.is_finite().then_some(value)
}

/// The number in `le` or `quantile`: what [`parse_float`] takes, and in addition what the reference takes there only:
/// hexadecimal (`0x1p-2`), and `_` between digits.
#[must_use]
pub fn parse_boundary(text: &[u8]) -> Option<f64> {
    parse_float(text).or_else(|| {
        let text = std::str::from_utf8(text).ok()?;
        let (negative, digits) = match text.as_bytes().first()? {
            b'-' => (true, &text[1..]),
            b'+' => (false, &text[1..]),
            _ => (false, text),
        };
        // One sign, and none before NaN.
        if digits.starts_with(['+', '-']) || digits.eq_ignore_ascii_case("nan") {
            return None;
        }
        let hexadecimal = digits.strip_prefix("0x").or_else(|| digits.strip_prefix("0X"));
        let between = |digits: &str, first: bool| {
            let mut former = first;
            let mut good = true;
            let mut bytes = digits.bytes().peekable();
            while let Some(byte) = bytes.next() {
                let next = bytes.peek().is_some_and(u8::is_ascii_hexdigit);
                good &= byte != b'_' || former && next;
                former = byte.is_ascii_hexdigit();
            }
            good
        };
        // Behind `0x` a `_` may come at once.
        if !between(hexadecimal.unwrap_or(digits), hexadecimal.is_some()) {
            return None;
        }
        let value = match hexadecimal {
            Some(digits) => parse_hexadecimal(&digits.replace('_', ""))?,
            None => parse_float(digits.replace('_', "").as_bytes())?,
        };
        Some(if negative { -value } else { value })
    })
}

/// `H.HpE`: hexadecimal digits and a power of two, which must be there.
fn parse_hexadecimal(text: &str) -> Option<f64> {
    let (mantissa, exponent) = text.split_once(['p', 'P'])?;
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    if whole.is_empty() && fraction.is_empty() {
        return None;
    }
    let exponent: i32 = exponent.parse().ok()?;
    let mut value = 0.0_f64;
    for digit in whole.chars().chain(fraction.chars()) {
        value = value * 16.0 + f64::from(digit.to_digit(16)?);
    }
    let places = i32::try_from(fraction.len()).ok()?;
    let value = value * 2_f64.powi(exponent.checked_sub(places.checked_mul(4)?)?);
    value.is_finite().then_some(value)
}

/// A number as a label value of OpenMetrics: the shortest form that reads back the same, with `.0` where it would
/// otherwise look like an integer.
#[must_use]
pub fn canonical(value: f64) -> String {
    if value.is_nan() {
        return "NaN".into();
    }
    if value.is_infinite() {
        return if value > 0.0 { "+Inf".into() } else { "-Inf".into() };
    }
    if value == 0.0 {
        return "0.0".into();
    }
    let shortest = format!("{value:e}");
    let Some((mantissa, exponent)) = shortest.split_once('e') else { return shortest };
    let exponent: i32 = exponent.parse().unwrap_or(0);
    if !(-4..6).contains(&exponent) {
        let sign = if exponent < 0 { '-' } else { '+' };
        return format!("{mantissa}e{sign}{:02}", exponent.unsigned_abs());
    }
    let plain = format!("{value}");
    if plain.contains('.') { plain } else { plain + ".0" }
}

#[cfg(test)]
mod tests {
    use super::{canonical, parse_boundary, parse_float};

    #[test]
    fn accepts_what_the_reference_accepts() {
        for (text, value) in [
            ("1", 1.0),
            ("007", 7.0),
            (".5", 0.5),
            ("5.", 5.0),
            ("+7", 7.0),
            ("-0", 0.0),
            ("1e3", 1000.0),
            ("1E-3", 0.001),
            ("1e-400", 0.0),
            ("Inf", f64::INFINITY),
            ("inf", f64::INFINITY),
            ("+Inf", f64::INFINITY),
            ("-Infinity", f64::NEG_INFINITY),
        ] {
            assert_eq!(parse_float(text.as_bytes()), Some(value), "{text}");
        }
        assert!(parse_float(b"nan").is_some_and(f64::is_nan));
        assert!(parse_float(b"NaN").is_some_and(f64::is_nan));
    }

    #[test]
    fn refuses_what_the_reference_refuses() {
        for text in ["", " 1", "1 ", "0x10", "1_000", "1e400", "+NaN", "-nan", "1,5", ".", "e5", "1e", "+", "five"] {
            assert_eq!(parse_float(text.as_bytes()), None, "{text}");
        }
        assert_eq!(parse_float(b"\xff"), None);
    }

    #[test]
    fn bounds_may_be_written_as_the_reference_writes_numbers_in_its_language() {
        for (text, value) in [
            ("1.5", 1.5),
            ("0x1p1", 2.0),
            ("-0X.8p0", -0.5),
            ("1_0", 10.0),
            ("0x_1p-1_0", 0.000_976_562_5),
            ("1_0e1_0", 1e11),
        ] {
            assert_eq!(parse_boundary(text.as_bytes()), Some(value), "{text}");
        }
        for text in [
            "0x10",
            "_1",
            "1_",
            "1__0",
            "0x1p",
            "0xp1",
            "1_.5",
            "1._5",
            "0x1p99999",
            "-",
            "",
            "x",
            "--5",
            "+-5",
            "-+1_0",
            "+-0x1p1",
            "+NaN",
            "-nan",
            "--Inf",
            "0x+1p1",
            "0x1p+-1",
        ] {
            assert_eq!(parse_boundary(text.as_bytes()), None, "{text}");
        }
    }

    #[test]
    fn writes_label_values_as_openmetrics_does() {
        for (value, text) in [
            (1.0, "1.0"),
            (0.0, "0.0"),
            (-1.0, "-1.0"),
            (0.25, "0.25"),
            (10.0, "10.0"),
            (100_000.0, "100000.0"),
            (1_000_000.0, "1e+06"),
            (0.0001, "0.0001"),
            (0.00001, "1e-05"),
            (1.5e-7, "1.5e-07"),
            (f64::INFINITY, "+Inf"),
            (f64::NEG_INFINITY, "-Inf"),
        ] {
            assert_eq!(canonical(value), text);
        }
    }
}
