//! How YAML types a plain scalar: by the rules that the reference collector's reader has.
//!
//! Those are YAML 1.2's words with YAML 1.1's octals: `0123` and `0o17` are octal, `1_000` is an integer, `yes` and
//! `on` are text, a date is a date. An integer above the signed range fits no attribute.

use super::node::Value;

/// The typed value of a plain (unquoted) scalar.
#[must_use]
pub fn type_plain(text: &str) -> Value {
    match text {
        "" | "~" | "null" | "Null" | "NULL" => return Value::Null,
        "true" | "True" | "TRUE" => return Value::Boolean(true),
        "false" | "False" | "FALSE" => return Value::Boolean(false),
        ".nan" | ".NaN" | ".NAN" => return Value::Double(f64::NAN),
        ".inf" | ".Inf" | ".INF" | "+.inf" | "+.Inf" | "+.INF" => return Value::Double(f64::INFINITY),
        "-.inf" | "-.Inf" | "-.INF" => return Value::Double(f64::NEG_INFINITY),
        _ => {}
    }
    if !text.starts_with(|c: char| c.is_ascii_digit() || matches!(c, '+' | '-' | '.')) {
        return Value::Text(text.to_owned());
    }
    if is_date(text) {
        return Value::Untakable("a date");
    }
    let plain = text.replace('_', "");
    if let Some(value) = integer(&plain) {
        return value;
    }
    if is_decimal(&plain)
        && let Ok(value) = plain.parse::<f64>()
        && value.is_finite()
    {
        return Value::Double(value);
    }
    Value::Text(text.to_owned())
}

fn integer(plain: &str) -> Option<Value> {
    let (negative, digits) = match plain.as_bytes().first()? {
        b'-' => (true, &plain[1..]),
        b'+' => (false, &plain[1..]),
        _ => (false, plain),
    };
    let prefixed = digits.get(..2).map(str::to_ascii_lowercase);
    let (radix, digits) = match prefixed.as_deref() {
        Some("0x") => (16, &digits[2..]),
        Some("0b") => (2, &digits[2..]),
        Some("0o") => (8, &digits[2..]),
        _ if digits.len() > 1 && digits.starts_with('0') => (8, &digits[1..]),
        _ => (10, digits),
    };
    if digits.is_empty() || !digits.chars().all(|c| c.is_digit(radix)) {
        return None;
    }
    let Ok(magnitude) = u128::from_str_radix(digits, radix) else { return None };
    let signed = i128::try_from(magnitude).ok().map(|value| if negative { -value } else { value })?;
    if let Ok(value) = i64::try_from(signed) {
        Some(Value::Integer(value))
    } else if u64::try_from(signed).is_ok() {
        Some(Value::Untakable("an integer above 9223372036854775807"))
    } else {
        None
    }
}

/// `[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?`
fn is_decimal(text: &str) -> bool {
    let unsigned = text.strip_prefix(['-', '+']).unwrap_or(text);
    let (mantissa, exponent) = match unsigned.split_once(['e', 'E']) {
        Some((mantissa, exponent)) => (mantissa, Some(exponent)),
        None => (unsigned, None),
    };
    let digits = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    let good_mantissa = match mantissa.split_once('.') {
        Some(("", fraction)) => digits(fraction),
        Some((whole, fraction)) => digits(whole) && (fraction.is_empty() || digits(fraction)),
        None => digits(mantissa),
    };
    good_mantissa && exponent.is_none_or(|text| digits(text.strip_prefix(['-', '+']).unwrap_or(text)))
}

fn is_date(text: &str) -> bool {
    let (date, time) = match text.find(['T', 't', ' ']) {
        Some(place) => (&text[..place], Some(text[place + 1..].trim_start())),
        None => (text, None),
    };
    let mut parts = date.split('-');
    let number = |part: Option<&str>, lengths: std::ops::RangeInclusive<usize>, most: u32| {
        part.filter(|p| lengths.contains(&p.len()) && p.bytes().all(|b| b.is_ascii_digit()))
            .and_then(|p| p.parse::<u32>().ok())
            .is_some_and(|n| n <= most && (most > 31 || n >= 1))
    };
    let is_day = number(parts.next(), 4..=4, 9999)
        && number(parts.next(), 1..=2, 12)
        && number(parts.next(), 1..=2, 31)
        && parts.next().is_none();
    let is_time = |time: &str| {
        let clock = time.find(|c: char| !c.is_ascii_digit() && c != ':' && c != '.').map_or(time, |end| &time[..end]);
        clock.split(':').count() == 3 && clock.split(':').all(|part| !part.is_empty())
    };
    is_day && time.is_none_or(is_time)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_reference_makes_of_each() {
        let integers = [
            ("0123", 83),
            ("0x1F", 31),
            ("1_000", 1000),
            ("-7", -7),
            ("+5", 5),
            ("0b101", 5),
            ("0o17", 15),
            ("0", 0),
            ("9223372036854775807", i64::MAX),
            ("-9223372036854775808", i64::MIN),
        ];
        for (text, value) in integers {
            assert_eq!(type_plain(text), Value::Integer(value), "{text}");
        }
        let doubles = [
            ("1e3", 1000.0),
            ("1.50", 1.5),
            ("08", 8.0),
            ("0080", 80.0),
            ("1.", 1.0),
            (".5", 0.5),
            ("18446744073709551616", 18_446_744_073_709_551_616.0),
        ];
        for (text, value) in doubles {
            assert_eq!(type_plain(text), Value::Double(value), "{text}");
        }
        for text in
            ["yes", "on", "1.2.3", "0x", "1e", "-", "+", ".", "100%", "0510z", "1e999", "12:30:00", "2024-13-01"]
        {
            assert_eq!(type_plain(text), Value::Text(text.into()), "{text}");
        }
        for text in ["2024-01-02", "2024-1-2T3:4:5Z", "2024-01-02 03:04:05.5", "18446744073709551615"] {
            assert!(matches!(type_plain(text), Value::Untakable(_)), "{text}");
        }
        assert_eq!(type_plain("TRUE"), Value::Boolean(true));
        assert_eq!(type_plain("~"), Value::Null);
    }
}
