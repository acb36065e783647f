//! Prometheus's durations: `15s`, `1m30s`, `500ms`, `1d`.

use std::time::Duration;

const UNITS: [(&str, u64); 7] = [
    ("y", 365 * 86_400_000),
    ("w", 7 * 86_400_000),
    ("d", 86_400_000),
    ("h", 3_600_000),
    ("m", 60_000),
    ("s", 1000),
    ("ms", 1),
];

/// Reads whole numbers with units, from the largest unit to the smallest, each at most once. `0` needs no unit.
///
/// # Errors
/// What is wrong with it.
pub fn parse_duration(text: &str) -> Result<Duration, &'static str> {
    if text == "0" {
        return Ok(Duration::ZERO);
    }
    if text.is_empty() {
        return Err("it is empty");
    }
    let (mut rest, mut total, mut units) = (text, 0_u64, UNITS.iter());
    while !rest.is_empty() {
        let digits = rest.len() - rest.trim_start_matches(|c: char| c.is_ascii_digit()).len();
        if digits == 0 {
            return Err("it has no whole number before the unit");
        }
        let number: u64 = rest[..digits].parse().map_err(|_| "it is too long")?;
        let letters = rest[digits..].find(|c: char| c.is_ascii_digit()).map_or(rest.len(), |at| digits + at);
        let unit = &rest[digits..letters];
        let Some((_, factor)) = units.find(|(name, _)| *name == unit) else {
            return Err(match unit {
                "" => "it has no unit",
                unit if UNITS.iter().any(|(name, _)| *name == unit) => "its units do not stand from large to small",
                _ => "its unit is none of y, w, d, h, m, s, ms",
            });
        };
        let part = number.checked_mul(*factor).ok_or("it is too long")?;
        total = total.checked_add(part).ok_or("it is too long")?;
        rest = &rest[letters..];
    }
    // Go's durations end at 292 years.
    if total > 9_200_000_000_000 { Err("it is too long") } else { Ok(Duration::from_millis(total)) }
}

/// A duration in the same words. Weeks and years are used only if nothing is left over.
#[must_use]
pub fn format_duration(duration: Duration) -> String {
    let mut left = u64::try_from(duration.as_millis()).unwrap_or(u64::MAX);
    if left == 0 {
        return "0s".into();
    }
    let mut text = String::new();
    for (unit, milliseconds) in UNITS {
        let exact = matches!(unit, "y" | "w");
        let count = left / milliseconds;
        if count > 0 && !(exact && left % milliseconds != 0) {
            text.extend([&count.to_string(), unit]);
            left %= milliseconds;
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::{Duration, format_duration, parse_duration};

    #[test]
    fn durations_are_written_in_whole_units() {
        for text in ["0s", "500ms", "15s", "1m30s", "1h", "1d", "8d", "1w", "12d2h", "1y", "366d"] {
            assert_eq!(format_duration(parse_duration(text).expect(text)), text);
        }
        assert_eq!(format_duration(Duration::from_secs(90)), "1m30s");
    }

    #[test]
    fn whole_numbers_with_units_from_large_to_small() {
        for (text, milliseconds) in [("0", 0), ("15s", 15_000), ("1m30s", 90_000), ("500ms", 500), ("1d", 86_400_000)] {
            assert_eq!(parse_duration(text), Ok(Duration::from_millis(milliseconds)), "{text}");
        }
        for text in ["", "15", "1.5s", "-1s", "30s1m", "1s1s", "5 s", "s", "1us", "999999999y", "\u{661}s"] {
            assert!(parse_duration(text).is_err(), "{text}");
        }
    }
}
