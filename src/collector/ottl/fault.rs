//! What is wrong with a statement.

use crate::diag::Problem;

/// What is wrong, where in the statement, and what to do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    /// Bytes before the place.
    pub at: usize,
    /// A lower-case fragment without a full stop.
    pub what: String,
    hint: Option<String>,
    placed: bool,
}

/// All that is wrong with a part of a statement: one fault at least.
#[derive(Debug)]
pub(super) struct Faults(Vec<Fault>);

impl From<Fault> for Faults {
    fn from(fault: Fault) -> Self {
        Self(vec![fault])
    }
}

impl IntoIterator for Faults {
    type Item = Fault;
    type IntoIter = std::vec::IntoIter<Fault>;

    fn into_iter(self) -> Self::IntoIter {
        self.0.into_iter()
    }
}

impl Faults {
    /// The same, each changed.
    pub fn map(self, change: impl FnMut(Fault) -> Fault) -> Self {
        Self(self.0.into_iter().map(change).collect())
    }

    /// All parts, or what is wrong with any of them.
    pub fn all<T, C: Default + Extend<T>>(parts: impl IntoIterator<Item = Result<T, Self>>) -> Result<C, Self> {
        let (mut good, mut faults) = (C::default(), Vec::new());
        for part in parts {
            match part {
                Ok(part) => good.extend([part]),
                Err(wrong) => faults.extend(wrong),
            }
        }
        if faults.is_empty() { Ok(good) } else { Err(Self(faults)) }
    }

    /// Both, or what is wrong with either of them.
    pub fn both<A, B>(one: Result<A, Self>, other: Result<B, Self>) -> Result<(A, B), Self> {
        match (one, other) {
            (Ok(one), Ok(other)) => Ok((one, other)),
            (Err(mut one), Err(other)) => {
                one.0.extend(other);
                Err(one)
            }
            (Err(wrong), Ok(_)) | (Ok(_), Err(wrong)) => Err(wrong),
        }
    }
}

/// How much of a statement is shown.
const SHOWN: usize = 300;

impl Fault {
    /// Something is wrong at this byte of the statement.
    pub(super) fn new(at: usize, what: impl Into<String>) -> Self {
        Self { at, what: what.into(), hint: None, placed: true }
    }

    /// Something is wrong; who knows where says so with [`Fault::or_at`].
    pub(super) fn nowhere(what: impl Into<String>) -> Self {
        Self { placed: false, ..Self::new(0, what) }
    }

    /// The same with a place, unless it has one.
    pub(super) fn or_at(self, at: usize) -> Self {
        if self.placed { self } else { Self { at, placed: true, ..self } }
    }

    /// The same with a way out.
    pub(super) fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    /// The same with a way out, unless it has one.
    pub(super) fn hint_unless(self, hint: impl FnOnce() -> String) -> Self {
        if self.hint.is_some() { self } else { self.hint(hint()) }
    }

    /// The problem with the statement (`word`: what it is) for people.
    #[must_use]
    pub fn problem(&self, word: &str, statement: &str) -> Problem {
        let shown: String = statement.chars().take(SHOWN).collect();
        let before = statement.get(..self.at).unwrap_or(statement);
        let place = before.chars().count() + 1;
        let near: String = statement.get(self.at..).unwrap_or_default().chars().take(20).collect();
        let near = if near.is_empty() { "at its end".to_owned() } else { format!("at character {place} (`{near}`)") };
        let problem = Problem::new(format!("{}: {near} of the {word} `{shown}`", self.what));
        match &self.hint {
            Some(hint) => problem.hint(hint.clone()),
            None => problem,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_place_is_counted_in_characters() {
        let text = Fault::new(3, "no").problem("statement", "é(x)").message;
        assert_eq!(text, "no: at character 3 (`x)`) of the statement `é(x)`");
        assert!(
            Fault::nowhere("no").or_at(5).problem("condition", "é(x)").message.contains("at its end of the condition")
        );
    }
}
