//! Amounts as people read them.

use std::fmt::Display;

/// Bytes in binary units, three digits.
#[must_use]
pub fn bytes(count: u64) -> String {
    const UNITS: [&str; 5] = ["B", "KiB", "MiB", "GiB", "TiB"];
    let mut value = count as f64;
    let mut unit = 0;
    while value >= 1000.0 && unit + 1 < UNITS.len() {
        value /= 1024.0;
        unit += 1;
    }
    let digits = if unit == 0 || value >= 100.0 {
        0
    } else if value >= 10.0 {
        1
    } else {
        2
    };
    format!("{value:.digits$} {}", UNITS[unit])
}

/// A count with the words that go with it: those for one, or those for any other count.
#[must_use]
pub fn counted<N: Copy + Display + PartialEq + From<u8>>(count: N, one: &str, many: &str) -> String {
    let words = if count == N::from(1) { one } else { many };
    format!("{count} {words}")
}

#[cfg(test)]
mod tests {
    use super::{bytes, counted};

    #[test]
    fn one_is_not_many() {
        let said = [0_u64, 1, 2].map(|count| counted(count, "line is", "lines are"));
        assert_eq!(said, ["0 lines are", "1 line is", "2 lines are"]);
        assert_eq!(counted(1_usize, "more", "mores"), "1 more");
    }

    #[test]
    fn bytes_have_three_digits_and_a_binary_unit() {
        assert_eq!(bytes(999), "999 B");
        assert_eq!(bytes(5 << 20), "5.00 MiB");
        assert_eq!(bytes(1000 << 20), "0.98 GiB");
        assert_eq!(bytes(37 << 30), "37.0 GiB");
    }
}
