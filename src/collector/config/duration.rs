//! Go's duration texts: `300ms`, `1.5h`, `1m30s`.

use std::time::Duration;

/// Reads a duration that is not negative. `0` needs no unit.
pub fn parse_duration(text: &str) -> Result<Duration, &'static str> {
    let mut rest = text.strip_prefix('+').unwrap_or(text);
    if rest.starts_with('-') {
        return Err("it is negative");
    }
    if rest == "0" {
        return Ok(Duration::ZERO);
    }
    if rest.is_empty() {
        return Err("it is empty");
    }
    let mut total: f64 = 0.0;
    while !rest.is_empty() {
        let digits = rest.find(|c: char| !c.is_ascii_digit() && c != '.').ok_or("it has no unit")?;
        let number: f64 = rest[..digits].parse().map_err(|_| "it has no number before the unit")?;
        rest = &rest[digits..];
        let letters = rest.find(|c: char| c.is_ascii_digit() || c == '.').unwrap_or(rest.len());
        let nanoseconds = match &rest[..letters] {
            "ns" => 1.0,
            "us" | "\u{b5}s" | "\u{3bc}s" => 1e3,
            "ms" => 1e6,
            "s" => 1e9,
            "m" => 60e9,
            "h" => 3600e9,
            _ => return Err("its unit is none of ns, us, ms, s, m, h"),
        };
        total += number * nanoseconds;
        rest = &rest[letters..];
    }
    // Go's durations end at 292 years; the same border keeps additions to the clock safe here.
    if total > 9.2e18 {
        return Err("it is too long");
    }
    Duration::try_from_secs_f64(total / 1e9).map_err(|_| "it is too long")
}

/// A duration as Go prints it: `1m30.5s`, `250ms`, `0s`.
#[must_use]
pub fn go_text(duration: Duration) -> String {
    let nanoseconds = duration.as_nanos();
    let decimal = |unit: u128| {
        let (whole, rest) = (nanoseconds / unit, nanoseconds % unit);
        let width = unit.ilog10() as usize;
        let digits = format!("{rest:0width$}");
        let digits = digits.trim_end_matches('0');
        if digits.is_empty() { whole.to_string() } else { format!("{whole}.{digits}") }
    };
    match nanoseconds {
        0 => "0s".to_owned(),
        1..1_000 => format!("{nanoseconds}ns"),
        1_000..1_000_000 => format!("{}\u{b5}s", decimal(1_000)),
        1_000_000..1_000_000_000 => format!("{}ms", decimal(1_000_000)),
        _ => {
            let (hours, minutes) = (duration.as_secs() / 3600, duration.as_secs() / 60 % 60);
            let below = Duration::new(duration.as_secs() % 60, duration.subsec_nanos());
            let seconds = match below.subsec_nanos() {
                0 => below.as_secs().to_string(),
                rest => format!("{}.{}", below.as_secs(), format!("{rest:09}").trim_end_matches('0')),
            };
            match (hours, minutes) {
                (0, 0) => format!("{seconds}s"),
                (0, _) => format!("{minutes}m{seconds}s"),
                _ => format!("{hours}h{minutes}m{seconds}s"),
            }
        }
    }
}

/// About how long, for people: nothing that took time is said to have taken none.
#[must_use]
pub fn about(duration: Duration) -> String {
    match duration.as_millis() {
        0 => "less than 1 ms".to_owned(),
        milliseconds @ 1..1_000 => format!("{milliseconds} ms"),
        1_000..9_950 => format!("{:.1} s", duration.as_secs_f64()),
        _ => format!("{:.0} s", duration.as_secs_f64()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn about_how_long() {
        for (milliseconds, text) in
            [(0, "less than 1 ms"), (40, "40 ms"), (1400, "1.4 s"), (9_960, "10 s"), (30_000, "30 s"), (61_400, "61 s")]
        {
            assert_eq!(about(Duration::from_millis(milliseconds)), text);
        }
    }

    #[test]
    fn what_go_writes() {
        for (nanoseconds, text) in [
            (0, "0s"),
            (12, "12ns"),
            (1_500, "1.5\u{b5}s"),
            (250_000_000, "250ms"),
            (1_000_000_000, "1s"),
            (90_500_000_000, "1m30.5s"),
            (3_600_000_000_001, "1h0m0.000000001s"),
        ] {
            assert_eq!(go_text(Duration::from_nanos(nanoseconds)), text);
        }
    }

    #[test]
    fn what_go_reads() {
        let cases = [
            ("0", 0),
            ("250ms", 250_000_000),
            ("1m30s", 90_000_000_000),
            ("1.5s", 1_500_000_000),
            (".5s", 500_000_000),
            ("600s", 600_000_000_000),
            ("1h0m", 3_600_000_000_000),
        ];
        for (text, nanoseconds) in cases {
            assert_eq!(parse_duration(text), Ok(Duration::from_nanos(nanoseconds)), "{text}");
        }
        for wrong in ["", "5", "-1s", "s", "1.2.3s", "100 parsecs", "1d", "9999999h9999999h"] {
            assert!(parse_duration(wrong).is_err(), "{wrong}");
        }
    }
}
