//! The digits of numbers.

/// The character of this number; the replacement character if there is none.
pub(super) fn character(value: i64) -> char {
    u32::try_from(value).ok().and_then(char::from_u32).unwrap_or(char::REPLACEMENT_CHARACTER)
}

/// `%g` without a precision, as metric pages have it: the shortest digits.
pub fn shortest(value: f64) -> String {
    let sign = if value.is_sign_negative() { "-" } else { "" };
    match value {
        value if value.is_nan() => "NaN".to_owned(),
        value if value.is_infinite() => format!("{}Inf", if sign.is_empty() { "+" } else { sign }),
        value => format!("{sign}{}", general(value.abs(), None)),
    }
}

/// The digits of a double that is not negative; None if it has no such verb.
pub(super) fn double(verb: char, size: f64, precision: Option<usize>) -> Option<String> {
    let digits = match verb {
        'v' | 'g' | 'G' | 'e' | 'E' | 'f' | 'F' | 'b' | 'x' | 'X' if size.is_nan() => return Some("NaN".to_owned()),
        'v' | 'g' | 'G' | 'e' | 'E' | 'f' | 'F' | 'b' | 'x' | 'X' if size.is_infinite() => {
            return Some("Inf".to_owned());
        }
        'f' | 'F' => {
            let (exact, zeros) = exact(precision.unwrap_or_default());
            format!("{size:.exact$}{zeros}")
        }
        'e' | 'E' => {
            let (exact, zeros) = exact(precision.unwrap_or_default());
            exponent_text(&format!("{size:.exact$e}").replace('e', &format!("{zeros}e")))
        }
        'v' | 'g' | 'G' => general(size, precision),
        'b' => binary(size),
        'x' | 'X' => hexadecimal(size, precision),
        _ => return None,
    };
    Some(if matches!(verb, 'E' | 'G' | 'X') { digits.to_uppercase() } else { digits })
}

/// No double has more digits than these behind its point: the rest is zeros. (Rust's own precision ends at 65,535.)
const MOST_DIGITS: usize = 1100;

/// A precision as digits that must be found and zeros after them.
fn exact(precision: usize) -> (usize, String) {
    let exact = precision.min(MOST_DIGITS);
    (exact, "0".repeat(precision - exact))
}

/// Rust's `1.5e7` as Go's `1.5e+07`.
fn exponent_text(text: &str) -> String {
    let (digits, exponent) = text.split_once('e').unwrap_or((text, "0"));
    let (sign, exponent) = exponent.strip_prefix('-').map_or(('+', exponent), |exponent| ('-', exponent));
    format!("{digits}e{sign}{exponent:0>2}")
}

/// `%g`: shortest digits, or so many; an exponent below 1e-4 and from the 7th digit on (with a precision: from it on).
fn general(size: f64, precision: Option<usize>) -> String {
    let scientific = match precision {
        Some(precision) => format!("{size:.*e}", (precision.max(1) - 1).min(MOST_DIGITS)),
        None => format!("{size:e}"),
    };
    let (digits, exponent) = scientific.split_once('e').unwrap_or((&scientific, "0"));
    let exponent: i64 = exponent.parse().unwrap_or(0);
    let digits = if digits.contains('.') { digits.trim_end_matches('0').trim_end_matches('.') } else { digits };
    let count = i64::try_from(digits.bytes().filter(u8::is_ascii_digit).count()).unwrap_or(i64::MAX);
    let limit = match precision {
        Some(precision) => {
            let precision = i64::try_from(precision.max(1)).unwrap_or(i64::MAX);
            if precision > count && count > exponent { count } else { precision }
        }
        None => 6,
    };
    if size != 0.0 && (exponent < -4 || exponent >= limit) {
        return exponent_text(&format!("{digits}e{exponent}"));
    }
    let decimals = usize::try_from((count - 1 - exponent).max(0)).unwrap_or(0);
    format!("{size:.decimals$}")
}

/// Fraction (with its leading one) and exponent of two, so that it is the fraction times 2 to the exponent.
fn parts(size: f64) -> (u64, i64) {
    let bits = size.to_bits();
    let (fraction, exponent) = (bits & ((1 << 52) - 1), i64::try_from(bits >> 52).unwrap_or_default());
    if exponent == 0 { (fraction, -1074) } else { (fraction | 1 << 52, exponent - 1075) }
}

/// `%b`: `4503599627370496p-52`.
fn binary(size: f64) -> String {
    let (fraction, exponent) = parts(size);
    format!("{fraction}p{exponent:+}")
}

/// `%x`: `0x1.8p+01`.
fn hexadecimal(size: f64, precision: Option<usize>) -> String {
    let (fraction, mut exponent) = parts(size);
    // The leading one stands before 60 bits of fraction.
    let mut bits = fraction << 8;
    exponent += 52;
    if fraction == 0 {
        exponent = 0;
    } else {
        let missing = bits.leading_zeros() - 3;
        bits <<= missing;
        exponent -= i64::from(missing);
    }
    if let Some(precision) = precision.filter(|precision| *precision < 15) {
        let kept = 60 - precision * 4;
        let extra = bits & ((1 << kept) - 1);
        bits >>= kept;
        // To the nearest, and to the even one of two.
        if extra << (60 - kept) | (bits & 1) > 1 << 59 {
            bits += 1;
        }
        bits <<= kept;
        if bits & 1 << 61 != 0 {
            bits >>= 1;
            exponent += 1;
        }
    }
    let mut digits = format!("{:015x}", bits & ((1 << 60) - 1));
    match precision {
        None => digits.truncate(digits.trim_end_matches('0').len()),
        Some(precision) => {
            let zeros = precision.saturating_sub(digits.len());
            digits.extend(std::iter::repeat_n('0', zeros));
            digits.truncate(precision);
        }
    }
    let point = if digits.is_empty() { "" } else { "." };
    let sign = if exponent < 0 { '-' } else { '+' };
    format!("0x{}{point}{digits}p{sign}{:02}", bits >> 60, exponent.unsigned_abs())
}

/// `#`: always with a point, and `%g` with all its digits.
pub(super) fn with_point(digits: &str, verb: char, precision: Option<usize>) -> String {
    let mut wanted = match verb {
        'v' | 'g' | 'G' | 'x' => precision.unwrap_or(6),
        _ => 0,
    };
    let hexadecimal = matches!(verb, 'x' | 'X');
    let end = digits.find(|c: char| matches!(c, 'p' | 'P') || !hexadecimal && matches!(c, 'e' | 'E'));
    let (number, tail) = digits.split_at(end.unwrap_or(digits.len()));
    let significant = number.bytes().filter(|byte| *byte != b'.').skip_while(|byte| *byte == b'0').count();
    let mut out = number.to_owned();
    if !number.contains('.') {
        if number == "0" {
            wanted = wanted.saturating_sub(1);
        }
        out.push('.');
    }
    out.extend(std::iter::repeat_n('0', wanted.saturating_sub(significant)));
    out + tail
}

#[cfg(test)]
mod tests {
    use super::shortest;

    #[test]
    fn numbers_of_pages() {
        for (value, text) in [
            (0.0, "0"),
            (-0.25, "-0.25"),
            (999_999.0, "999999"),
            (71_020_544.0, "7.1020544e+07"),
            (0.00005, "5e-05"),
            (f64::NEG_INFINITY, "-Inf"),
        ] {
            assert_eq!(shortest(value), text);
        }
    }
}
