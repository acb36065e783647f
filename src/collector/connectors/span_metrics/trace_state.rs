//! How many spans one span stands for: what a sampler has written into the trace state.
//!
//! `ot=th:T` says that spans below the threshold T (hexadecimal digits of a 56-bit fraction) were left out, so that
//! each one that is there stands for 2^56 / (2^56 - T). A trace state that is not valid as a whole says nothing.

use crate::collector::text::trace_state::{is_key, is_value};

/// 2^56: the number of thresholds.
const ALL: u64 = 1 << 56;

/// Counts for spans; the same trace state again has the same count.
#[derive(Debug, Default)]
pub(super) struct Counts {
    last: Vec<u8>,
    count: u64,
    sampled: bool,
}

impl Counts {
    /// How many spans a span with this trace state stands for, and whether a sampler has said so.
    pub fn of(&mut self, trace_state: &[u8]) -> (u64, bool) {
        if trace_state.is_empty() {
            return (1, false);
        }
        if self.last != trace_state {
            trace_state.clone_into(&mut self.last);
            let threshold = std::str::from_utf8(trace_state).ok().and_then(threshold);
            self.sampled = threshold.is_some();
            self.count = threshold.map_or(1, |threshold| share(ALL - threshold));
        }
        (self.count, self.sampled)
    }
}

/// 2^56 divided by `part`; a fraction is rounded up as often as it is large.
fn share(part: u64) -> u64 {
    let (whole, rest) = (ALL / part, ALL % part);
    whole + u64::from(rest > 0 && fastrand::u64(..part) < rest)
}

/// The threshold of a valid trace state.
fn threshold(trace_state: &str) -> Option<u64> {
    if trace_state.len() > 1024 || !trace_state.contains("ot=") {
        return None;
    }
    let members: Vec<&str> = trace_state.split(',').map(|member| member.trim_matches([' ', '\t'])).collect();
    // A comma at the end begins no member.
    let count = members.len() - usize::from(members.last().is_some_and(|last| last.is_empty()));
    if count > 31 {
        return None;
    }
    let mut found = None;
    for member in members.into_iter().filter(|member| !member.is_empty()) {
        let (key, value) = member.split_once('=')?;
        if !is_key(key) || !is_value(value) {
            return None;
        }
        if key == "ot" {
            found = otel_threshold(value)?;
        }
    }
    found
}

/// The threshold of OpenTelemetry's member, if it has one; `None` if the member is not valid.
#[expect(clippy::option_option, reason = "not valid, without a threshold, with one")]
fn otel_threshold(value: &str) -> Option<Option<u64>> {
    if value.len() > 256 {
        return None;
    }
    let mut found = None;
    for member in value.split(';') {
        let (key, value) = member.split_once(':')?;
        let valid_key = key.starts_with(|c: char| c.is_ascii_lowercase())
            && key.bytes().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit());
        let valid_value = value.bytes().all(|c| c.is_ascii_alphanumeric() || b"._-".contains(&c));
        if !valid_key || !valid_value {
            return None;
        }
        let digits = !value.is_empty() && value.bytes().all(|c| c.is_ascii_hexdigit());
        match key {
            "th" if digits && value.len() <= 14 => {
                let shift = 4 * (14 - u32::try_from(value.len()).ok()?);
                found = Some(u64::from_str_radix(value, 16).ok()? << shift);
            }
            "rv" if digits && value.len() == 14 => {}
            "th" | "rv" => return None,
            _ => {}
        }
    }
    Some(found)
}

#[cfg(test)]
mod tests {
    use super::Counts;

    fn count(trace_state: &str) -> (u64, bool) {
        Counts::default().of(trace_state.as_bytes())
    }

    #[test]
    fn a_threshold_says_how_many_were_left_out() {
        for (trace_state, counted) in [
            ("", (1, false)),
            ("ot=th:8", (2, true)),
            ("ot=th:c", (4, true)),
            ("ot=th:0", (1, true)),
            ("ot=th:C", (4, true)),
            ("ot=rv:abcdabcdabcdff;th:c", (4, true)),
            ("vendor=x, ot=th:8 ,a@b=1,", (2, true)),
            ("ot=th:ffffffffffffff", (1 << 56, true)),
            ("ot=th:8,ot=th:c", (4, true)),
            ("ot=rv:abcdabcdabcdff", (1, false)),
            ("ot=th:", (1, false)),
            ("ot=th:xyz", (1, false)),
            ("ot=th:fffffffffffffff", (1, false)),
            ("ot=th:8;", (1, false)),
            ("ot=th:8;rv:1", (1, false)),
            ("ot=th:8,=x", (1, false)),
            ("ot=th:8,A=x", (1, false)),
            ("ot=th:8,a=\u{e9}", (1, false)),
            ("foot=th:8", (1, false)),
            ("other=1", (1, false)),
        ] {
            assert_eq!(count(trace_state), counted, "{trace_state}");
        }
        let long = format!("ot=th:8,{}", "a=1,".repeat(31));
        assert_eq!(count(&long), (1, false));
        assert_eq!(count(&format!("ot=th:8,{}", "a=1,".repeat(30))), (2, true));
    }

    #[test]
    fn a_fraction_is_rounded_by_chance_to_the_right_mean() {
        // th:4 stands for 4/3.
        let mut total = 0;
        for _ in 0..3000 {
            let (count, sampled) = count("ot=th:4");
            assert!(sampled && (1..=2).contains(&count));
            total += count;
        }
        assert!((3700..4300).contains(&total), "{total}");
    }
}
