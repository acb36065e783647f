//! Why a payload was not taken, and by whom.

use std::borrow::Cow;
use std::sync::Arc;

/// A payload was not taken.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// Whether the same payload may be taken later.
    pub retryable: bool,
    /// A google.rpc code, where the refusal came from one (an endpoint's answer).
    pub answered: Option<u32>,
    /// Whether it is the sender that was refused, for its credentials or its address, and not the payload: another sender
    /// may deliver it.
    pub of_sender: bool,
    /// One word for the counters (`queue_full`, `http_400`, `shutdown`).
    pub reason: Cow<'static, str>,
    /// For people.
    pub message: String,
    /// Which components did not take it: whoever swallows the refusal counts it under their names.
    pub parts: Vec<Part>,
}

/// What one component did not take.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Part {
    /// Its name.
    pub component: Arc<str>,
    /// Why.
    pub reason: Cow<'static, str>,
    /// How many items came to it.
    pub items: usize,
}

impl Refusal {
    /// Worth another try later.
    pub fn retryable(reason: impl Into<Cow<'static, str>>, message: impl Into<String>) -> Self {
        let (reason, message) = (reason.into(), message.into());
        Self { retryable: true, answered: None, of_sender: false, reason, message, parts: Vec::new() }
    }

    /// Never taken, however often it is tried.
    pub fn permanent(reason: impl Into<Cow<'static, str>>, message: impl Into<String>) -> Self {
        Self { retryable: false, ..Self::retryable(reason, message) }
    }

    /// The same with the google.rpc code of the answer that it came from.
    #[must_use]
    pub fn answered(mut self, code: u32) -> Self {
        self.answered = Some(code);
        self
    }

    /// Whether there is a sense in keeping the payload: it may be taken later, or from another sender.
    #[must_use]
    pub fn is_worth_keeping(&self) -> bool {
        self.retryable || self.of_sender
    }

    /// The same as what `component` said, unless it passes on what others behind it did.
    #[must_use]
    pub(super) fn of(mut self, component: &Arc<str>, items: usize) -> Self {
        if self.parts.is_empty() {
            self.parts.push(Part { component: component.clone(), reason: self.reason.clone(), items });
        }
        self
    }

    /// The google.rpc code that an OTLP receiver answers: 14 (unavailable) to try again, 13 (internal) not to, unless
    /// an endpoint gave one.
    #[must_use]
    pub fn code(&self) -> u32 {
        self.answered.unwrap_or(if self.retryable { 14 } else { 13 })
    }

    /// The HTTP status that an OTLP receiver answers for [`Refusal::code`].
    #[must_use]
    pub fn http_status(&self) -> u16 {
        match self.code() {
            3 => 400,
            16 => 401,
            7 => 403,
            12 => 404,
            8 => 429,
            1 | 4 | 10 | 11 | 14 | 15 => 503,
            _ => 500,
        }
    }

    /// What several consumers said: for good, if one of them did so for good.
    pub(super) fn join(refused: &mut Option<Self>, result: Result<(), Self>) {
        let Err(new) = result else { return };
        match refused {
            None => *refused = Some(new),
            Some(former) => {
                former.message = format!("{}; {}", former.message, new.message);
                former.parts.extend(new.parts);
                if former.retryable && !new.retryable {
                    former.retryable = false;
                    former.answered = new.answered;
                    former.reason = new.reason;
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refusal_becomes_the_status_of_the_reference() {
        assert_eq!(Refusal::retryable("queue_full", "full").http_status(), 503);
        assert_eq!(Refusal::permanent("x", "never").code(), 13);
        let answers = [(3, 400), (16, 401), (7, 403), (12, 404), (8, 429), (2, 500), (14, 503)];
        for (code, status) in answers {
            assert_eq!(Refusal::permanent("http", "answered").answered(code).http_status(), status);
        }
    }

    #[test]
    fn of_several_refusals_the_permanent_one_decides_and_all_are_said() {
        let mut refused = None;
        Refusal::join(&mut refused, Err(Refusal::retryable("queue_full", "a")));
        Refusal::join(&mut refused, Ok(()));
        Refusal::join(&mut refused, Err(Refusal::permanent("http_400", "b").answered(3)));
        let refused = refused.expect("refused");
        assert_eq!((refused.retryable, refused.code(), refused.message.as_str()), (false, 3, "a; b"));
    }
}
