//! One step of relabelling.

use super::builder::Builder;
use super::pattern::Pattern;

/// Which names labels and metrics may have.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Names {
    /// Any text.
    #[default]
    Utf8,
    /// Letters, digits and `_` (metrics: and `:`), none of them beginning with a digit.
    Legacy,
}

impl Names {
    /// Whether a label may have this name.
    #[must_use]
    pub fn allow_label(self, name: &str) -> bool {
        self.allow(name, false)
    }

    /// Whether a metric may have this name.
    #[must_use]
    pub fn allow_metric(self, name: &str) -> bool {
        self.allow(name, true)
    }

    fn allow(self, name: &str, colons: bool) -> bool {
        let letter = |c: char| c.is_ascii_alphabetic() || c == '_' || colons && c == ':';
        match self {
            Self::Utf8 => !name.is_empty(),
            Self::Legacy => name.starts_with(letter) && name.chars().all(|c| letter(c) || c.is_ascii_digit()),
        }
    }
}

/// A checked rule.
#[derive(Clone, Debug)]
pub struct Rule {
    /// The labels whose values, joined by the separator, are the text that is looked at.
    pub sources: Vec<String>,
    /// Between them.
    pub separator: String,
    /// What is done.
    pub action: Action,
    /// Names that a rule may make; a `replace` that would make another does nothing.
    pub names: Names,
}

/// What a rule does.
#[derive(Clone, Debug)]
pub enum Action {
    /// Writes one label, where the pattern matches.
    Replace {
        /// The text must match it.
        pattern: Pattern,
        /// The label, a template.
        target: String,
        /// Its value, a template.
        replacement: String,
    },
    /// Drops what does not match.
    Keep(Pattern),
    /// Drops what matches.
    Drop(Pattern),
    /// Drops what has another value in this label.
    KeepEqual(String),
    /// Drops what has the same value in this label.
    DropEqual(String),
    /// Writes the rest of a division of the text's hash.
    HashMod {
        /// Into this label.
        target: String,
        /// By this number, which is not zero.
        modulus: u64,
    },
    /// Copies the labels whose names match.
    LabelMap {
        /// The name must match it.
        pattern: Pattern,
        /// The new name, a template.
        replacement: String,
    },
    /// Removes the labels whose names match.
    LabelDrop(Pattern),
    /// Removes the labels whose names do not match.
    LabelKeep(Pattern),
    /// Writes the text in lower case into this label.
    Lowercase(String),
    /// Writes the text in upper case into this label.
    Uppercase(String),
}

/// Takes the rules in order; false if one of them drops the whole.
#[must_use]
pub fn apply(rules: &[Rule], labels: &mut Builder) -> bool {
    rules.iter().all(|rule| rule.apply(labels))
}

impl Rule {
    fn apply(&self, labels: &mut Builder) -> bool {
        let values: Vec<&str> = self.sources.iter().map(|name| labels.get(name)).collect();
        let text = values.join(&self.separator);
        match &self.action {
            Action::Keep(pattern) => return pattern.matches(&text),
            Action::Drop(pattern) => return !pattern.matches(&text),
            Action::KeepEqual(target) => return labels.get(target) == text,
            Action::DropEqual(target) => return labels.get(target) != text,
            Action::Replace { pattern, target, replacement } => {
                if let Some([target, value]) = pattern.expand(&text, [target, replacement])
                    && self.names.allow_label(&target)
                {
                    labels.set(&target, &value);
                }
            }
            Action::HashMod { target, modulus } => {
                // The last eight bytes of the hash, as older versions of the reference had no more.
                let hash = md5::compute(text.as_bytes());
                let hash = hash[8..].iter().fold(0_u64, |number, byte| number << 8 | u64::from(*byte));
                labels.set(target, &(hash % modulus).to_string());
            }
            Action::LabelMap { pattern, replacement } => {
                for (name, value) in labels.list() {
                    if let Some([new]) = pattern.expand(&name, [replacement]) {
                        labels.set(&new, &value);
                    }
                }
            }
            Action::LabelDrop(pattern) => remove(labels, |name| pattern.matches(name)),
            Action::LabelKeep(pattern) => remove(labels, |name| !pattern.matches(name)),
            Action::Lowercase(target) => labels.set(target, &text.chars().map(lower).collect::<String>()),
            Action::Uppercase(target) => labels.set(target, &text.chars().map(upper).collect::<String>()),
        }
        true
    }
}

fn remove(labels: &mut Builder, goes: impl Fn(&str) -> bool) {
    for (name, _) in labels.list() {
        if goes(&name) {
            labels.remove(&name);
        }
    }
}

/// Case is changed letter by letter, as Go does it: a letter with a longer counterpart stays.
fn lower(c: char) -> char {
    let mut changed = c.to_lowercase();
    match (changed.next(), changed.next()) {
        (Some(only), None) => only,
        // The one letter whose counterpart is longer in full and one letter in short.
        _ if c == '\u{130}' => 'i',
        _ => c,
    }
}

fn upper(c: char) -> char {
    let mut changed = c.to_uppercase();
    match (changed.next(), changed.next()) {
        (Some(only), None) => only,
        _ => c,
    }
}
