//! What must not be shown: an endpoint may quote what it was sent, and its words go into logs and reports.
//!
//! A configuration collects its secrets while it is read: what `${env:X}` gave where `X` is named like a secret, values
//! of headers, credentials. [`Secrets::mask`] stands where text is made of what a peer said (before it is cut), and
//! once more before every line of the log, every kept error and every problem.

use std::ops::Range;

use crate::diag::Problem;

/// Stands for a secret.
const MASK: &str = "***";

/// What is shorter is no secret, and masking it would make texts unreadable.
const SHORTEST: usize = 4;

/// The secrets of one collector.
#[derive(Clone, Default)]
pub struct Secrets {
    /// The longest first.
    values: Vec<String>,
}

impl Secrets {
    /// Masks `value` from now on: as a whole, without a first word (the scheme of `Bearer TOKEN`), and as JSON and
    /// debug texts escape it.
    pub fn add(&mut self, value: &str) {
        let value = value.trim();
        let bare = value.split_once(char::is_whitespace).map_or("", |(_, bare)| bare.trim_start());
        for plain in [value, bare] {
            self.add_form(plain);
            if let Ok(quoted) = serde_json::to_string(plain) {
                self.add_form(&quoted[1..quoted.len() - 1]);
            }
        }
        self.values.sort_by_key(|value| std::cmp::Reverse(value.len()));
    }

    fn add_form(&mut self, form: &str) {
        if form.len() >= SHORTEST && !self.values.iter().any(|known| known == form) {
            self.values.push(form.to_owned());
        }
    }

    /// The text with `***` for every secret.
    #[must_use]
    pub fn mask(&self, text: &str) -> String {
        let found = self.values.iter().flat_map(|secret| every_place(text, secret));
        let mut places: Vec<Range<usize>> = found.collect();
        if places.is_empty() {
            return text.to_owned();
        }
        places.sort_by_key(|place| place.start);
        let (mut masked, mut end) = (String::new(), 0);
        for place in places {
            // Where two secrets overlap, nothing of either is left.
            if place.start >= end {
                masked.push_str(&text[end..place.start]);
                masked.push_str(MASK);
            }
            end = end.max(place.end);
        }
        masked.push_str(&text[end..]);
        masked
    }

    /// The same for a text that somebody may have cut: a secret that its end tears is masked too.
    #[must_use]
    pub fn mask_cut(&self, text: &str) -> String {
        let mut masked = self.mask(text);
        let torn = self.values.iter().filter_map(|secret| {
            let begins = |length: &usize| secret.is_char_boundary(*length) && masked.ends_with(&secret[..*length]);
            (SHORTEST..secret.len()).rev().find(begins)
        });
        if let Some(length) = torn.max() {
            masked.truncate(masked.len() - length);
            masked.push_str(MASK);
        }
        masked
    }

    /// The same for all that a problem says.
    #[must_use]
    pub fn mask_problem(&self, mut problem: Problem) -> Problem {
        problem.message = self.mask(&problem.message);
        problem.path = self.mask(&problem.path);
        problem.hint = problem.hint.map(|hint| self.mask(&hint));
        problem
    }
}

/// Where `secret` begins and ends in `text`, overlapping itself too.
fn every_place<'a>(text: &'a str, secret: &'a str) -> impl Iterator<Item = Range<usize>> + 'a {
    let mut from = 0;
    std::iter::from_fn(move || {
        let start = from + text.get(from..)?.find(secret)?;
        from = start + text[start..].chars().next().map_or(1, char::len_utf8);
        Some(start..start + secret.len())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn secrets(values: &[&str]) -> Secrets {
        let mut secrets = Secrets::default();
        for value in values {
            secrets.add(value);
        }
        secrets
    }

    #[test]
    fn whole_without_its_scheme_escaped_and_within_another() {
        let secrets = secrets(&["s3cret", "Bearer s3cret-and-more", "a\"b\\c", "no", ""]);
        for (text, masked) in [
            ("401 for Bearer s3cret-and-more!", "401 for ***!"),
            ("s3cret-and-more, s3cret", "***, ***"),
            (r#"{"token":"a\"b\\c"}"#, r#"{"token":"***"}"#),
            ("no, a\"b\\c", "no, ***"),
            ("Bearer s3cre", "Bearer s3cre"),
            ("s3crets3cret", "******"),
        ] {
            assert_eq!(secrets.mask(text), masked);
        }
    }

    #[test]
    fn of_secrets_that_overlap_nothing_is_left() {
        let secrets = secrets(&["abcdef", "defghi", "xyxyx"]);
        assert_eq!(secrets.mask("-abcdefghi-abcdef-defghi-xyxyxyx-"), "-***-***-***-***-");
    }

    #[test]
    fn a_secret_that_the_end_of_a_text_tears() {
        let secrets = secrets(&["Bearer t\u{f6}ken-1234"]);
        assert_eq!(secrets.mask_cut("invalid: Bearer t\u{f6}ken-12"), "invalid: ***");
        assert_eq!(secrets.mask_cut("invalid: t\u{f6}ken-1"), "invalid: ***");
        assert_eq!(secrets.mask_cut("invalid: t\u{f6}"), "invalid: t\u{f6}");
        assert_eq!(secrets.mask_cut("t\u{f6}ken-1234 t\u{f6}ken"), "*** ***");
    }
}
