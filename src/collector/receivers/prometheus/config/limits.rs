//! Limits: of a job, else those of `global`.

use super::super::record::Limits;
use super::scalars;
use crate::collector::config::section::Section;
use crate::diag::Problem;

/// All limits of a section; `None` and 0 are none.
#[derive(Clone, Copy, Debug, Default)]
pub struct AllLimits {
    /// Of one page.
    pub page: Limits,
    /// Of its body, in bytes.
    pub body: Option<usize>,
    /// Of the targets of one job.
    pub targets: Option<usize>,
}

impl AllLimits {
    /// Reads them; what is absent is as in `others`.
    pub fn read(section: &mut Section<'_>, others: &Self) -> Self {
        // How many dropped targets are kept for show: nothing is shown here.
        scalars::count(section, "keep_dropped_targets");
        let mut limit = |key, other: usize| scalars::count(section, key).unwrap_or(other);
        let page = Limits {
            samples: limit("sample_limit", others.page.samples),
            labels: limit("label_limit", others.page.labels),
            name_length: limit("label_name_length_limit", others.page.name_length),
            value_length: limit("label_value_length_limit", others.page.value_length),
        };
        Self {
            page,
            body: bytes(section, "body_size_limit").or(others.body),
            targets: scalars::count(section, "target_limit").or(others.targets),
        }
    }
}

/// A size such as `10MB`; zero counts as absent.
fn bytes(section: &mut Section<'_>, key: &'static str) -> Option<usize> {
    let text = scalars::text(section, key)?;
    let size = parse_bytes(&text);
    if size.is_none() {
        let problem = Problem::new(format!("`{key}` is no size: `{text}`"));
        section.problem(key, problem.hint("write a number with a unit, such as `512KB` or `10MiB`"));
    }
    size.filter(|size| *size > 0)
}

/// Numbers, each with a unit: `B`, or `K` to `E` with `iB` or `B` (both mean powers of 1024, one way in one text).
fn parse_bytes(text: &str) -> Option<usize> {
    let unsigned = text.strip_prefix('+').unwrap_or(text);
    if unsigned == "0" {
        return Some(0);
    }
    ["iB", "B"].into_iter().find_map(|suffix| parse_with(unsigned, suffix))
}

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "the range is checked")]
fn parse_with(text: &str, suffix: &str) -> Option<usize> {
    let (mut rest, mut total) = (text, 0.0_f64);
    while !rest.is_empty() {
        let digits = rest.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(rest.len());
        let number: f64 = rest[..digits].parse().ok()?;
        let end = rest[digits..].find(|c: char| c.is_ascii_digit() || c == '.').map_or(rest.len(), |at| digits + at);
        let unit = &rest[digits..end];
        let power = match unit.strip_suffix(suffix) {
            _ if unit == "B" => 0,
            Some("K") => 1,
            Some("M") => 2,
            Some("G") => 3,
            Some("T") => 4,
            Some("P") => 5,
            Some("E") => 6,
            _ => return None,
        };
        total += number * 1024_f64.powi(power);
        rest = &rest[end..];
    }
    (!text.is_empty() && total < 9.2e18).then_some(total as usize)
}

#[cfg(test)]
mod tests {
    use super::parse_bytes;

    #[test]
    fn sizes_count_in_powers_of_1024() {
        for (text, size) in [
            ("0", 0),
            ("100B", 100),
            ("1KB", 1024),
            ("1KiB", 1024),
            ("10MB", 10 * 1024 * 1024),
            ("1.5KB", 1536),
            ("1MiB1KiB", 1024 * 1024 + 1024),
            (".5KB", 512),
        ] {
            assert_eq!(parse_bytes(text), Some(size), "{text}");
        }
        for text in ["", "100", "1kB", "1K", "MB", "1MB1KiB", "-1KB", "1 KB", "..B", "9999EB"] {
            assert_eq!(parse_bytes(text), None, "{text}");
        }
    }
}
