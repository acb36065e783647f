//! Text with references: what a person wrote, with the parts that only the launch knows.
//!
//! Printed, a reference has YAML's form (`${port:agent}`, `${secret:X}` as `<X>`), and a literal `${` is `$${`.

use std::fmt;
use std::sync::Arc;

use serde::{Serialize, Serializer};

/// The process at hand, in what people write.
pub(super) const SELF: &str = "self";

/// A part of a text that is known at launch only.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Reference {
    /// A port of a process, in decimal digits. `key` names one of its further `ports`.
    Port {
        /// The process.
        process: String,
        /// A key of its `ports`; `None` is its own `port`.
        key: Option<String>,
    },
    /// The host of a process, seen from where the text is used: `127.0.0.1` on the same node.
    Host {
        /// The process.
        process: String,
    },
    /// `http://HOST:PORT` of a process; a path follows as literal text.
    Url {
        /// The process.
        process: String,
    },
    /// A variable of gymrun's own environment that must never be printed or stored.
    Secret {
        /// The variable.
        name: String,
        /// Used when it is unset.
        default: Option<String>,
    },
    /// A variable of the environment where the process starts (`gym.runtime`).
    Inherited {
        /// The variable.
        name: String,
        /// Used when it is unset.
        default: Option<String>,
    },
    /// The absolute path of the job directory.
    JobDir,
    /// The W3C `traceparent` of gymrun's own root span.
    TraceParent,
    /// `${env:X}` of collector.yaml: expanded by the collector when it starts, never by gymrun.
    CollectorEnv {
        /// What stands between `${env:` and `}`: a name, or `NAME:-default`.
        name: String,
    },
}

impl Reference {
    /// The process whose port, host or URL this is, if any.
    #[must_use]
    pub fn process(&self) -> Option<&str> {
        match self {
            Self::Port { process, .. } | Self::Host { process } | Self::Url { process } => Some(process),
            _ => None,
        }
    }

    /// The same of the process `own`, if it is of the process at hand, whose name it does not say.
    #[must_use]
    pub fn of(&self, own: &str) -> Option<Self> {
        (self.process()? == SELF).then(|| {
            let mut reference = self.clone();
            if let Self::Port { process, .. } | Self::Host { process } | Self::Url { process } = &mut reference {
                own.clone_into(process);
            }
            reference
        })
    }
}

impl fmt::Display for Reference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Port { process, key: None } => write!(f, "${{port:{process}}}"),
            Self::Port { process, key: Some(key) } => write!(f, "${{port:{process}.{key}}}"),
            Self::Host { process } => write!(f, "${{host:{process}}}"),
            Self::Url { process } => write!(f, "${{url:{process}}}"),
            Self::Secret { name, .. } => write!(f, "<{name}>"),
            Self::Inherited { name, default: None } => write!(f, "${{runtime:{name}}}"),
            Self::Inherited { name, default: Some(default) } => write!(f, "${{runtime:{name}:-{default}}}"),
            Self::JobDir => f.write_str("${job:dir}"),
            Self::TraceParent => f.write_str("${traceparent}"),
            Self::CollectorEnv { name } => write!(f, "${{env:{name}}}"),
        }
    }
}

/// A piece of a [`Text`].
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Segment {
    /// As it stands.
    Literal(String),
    /// Filled in at launch.
    Reference(Reference),
}

/// Literal text and references, in order; neighbouring literals are one, empty ones are left out.
///
/// A copy shares what it is a copy of: one text stands in the draft, in Lua's hands and in the plan.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Text {
    segments: Arc<Segments>,
}

/// Nearly every text is one piece. `Many` never is.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Segments {
    One(Segment),
    Many(Vec<Segment>),
}

impl Segments {
    fn push(&mut self, segment: Segment) {
        match self {
            Self::Many(all) if all.is_empty() => *self = Self::One(segment),
            Self::Many(all) => all.push(segment),
            Self::One(_) => {
                let Self::One(first) = std::mem::replace(self, Self::Many(Vec::with_capacity(2))) else { return };
                if let Self::Many(all) = self {
                    all.extend([first, segment]);
                }
            }
        }
    }
}

impl Default for Text {
    fn default() -> Self {
        Self { segments: Arc::new(Segments::Many(Vec::new())) }
    }
}

impl Text {
    /// Text without references.
    pub fn literal(text: impl Into<String>) -> Self {
        let text = text.into();
        if text.is_empty() {
            return Self::default();
        }
        Self { segments: Arc::new(Segments::One(Segment::Literal(text))) }
    }

    /// One reference alone.
    #[must_use]
    pub fn reference(reference: Reference) -> Self {
        Self { segments: Arc::new(Segments::One(Segment::Reference(reference))) }
    }

    /// Appends literal text.
    pub fn push_literal(&mut self, text: &str) {
        if text.is_empty() {
            return;
        }
        let segments = Arc::make_mut(&mut self.segments);
        let last = match segments {
            Segments::One(only) => Some(only),
            Segments::Many(all) => all.last_mut(),
        };
        match last {
            Some(Segment::Literal(last)) => last.push_str(text),
            _ => segments.push(Segment::Literal(text.to_owned())),
        }
    }

    /// Appends a reference.
    pub fn push_reference(&mut self, reference: Reference) {
        Arc::make_mut(&mut self.segments).push(Segment::Reference(reference));
    }

    /// Appends another text.
    pub fn push(&mut self, other: &Text) {
        for segment in other.segments() {
            match segment {
                Segment::Literal(text) => self.push_literal(text),
                Segment::Reference(reference) => self.push_reference(reference.clone()),
            }
        }
    }

    /// The pieces, in order.
    #[must_use]
    pub fn segments(&self) -> &[Segment] {
        match &*self.segments {
            Segments::One(only) => std::slice::from_ref(only),
            Segments::Many(all) => all,
        }
    }

    /// The references in it.
    pub fn references(&self) -> impl Iterator<Item = &Reference> {
        self.segments().iter().filter_map(|s| match s {
            Segment::Reference(reference) => Some(reference),
            Segment::Literal(_) => None,
        })
    }

    /// The text itself, if it has no reference.
    #[must_use]
    pub fn as_literal(&self) -> Option<&str> {
        match self.segments() {
            [] => Some(""),
            [Segment::Literal(text)] => Some(text),
            _ => None,
        }
    }

    /// Whether it holds a secret.
    #[must_use]
    pub fn has_secret(&self) -> bool {
        self.references().any(|r| matches!(r, Reference::Secret { .. }))
    }

    /// Gives each reference for which `change` has another that one instead.
    pub fn change_references(&mut self, mut change: impl FnMut(&Reference) -> Option<Reference>) {
        let mut changed: Option<Text> = None;
        for (index, segment) in self.segments().iter().enumerate() {
            let new = match segment {
                Segment::Literal(_) => None,
                Segment::Reference(reference) => change(reference),
            };
            if new.is_some() && changed.is_none() {
                let mut before = Text::default();
                self.segments()[..index].iter().for_each(|segment| before.push_segment(segment.clone()));
                changed = Some(before);
            }
            if let Some(changed) = &mut changed {
                changed.push_segment(new.map_or_else(|| segment.clone(), Segment::Reference));
            }
        }
        if let Some(changed) = changed {
            *self = changed;
        }
    }

    fn push_segment(&mut self, segment: Segment) {
        Arc::make_mut(&mut self.segments).push(segment);
    }

    /// The text with every reference filled in by `value`; the first error wins.
    pub fn resolve<E>(&self, mut value: impl FnMut(&Reference) -> Result<String, E>) -> Result<String, E> {
        let mut out = String::new();
        for segment in self.segments() {
            match segment {
                Segment::Literal(text) => out.push_str(text),
                Segment::Reference(reference) => out.push_str(&value(reference)?),
            }
        }
        Ok(out)
    }
}

impl From<&str> for Text {
    fn from(text: &str) -> Self {
        Self::literal(text)
    }
}

impl From<String> for Text {
    fn from(text: String) -> Self {
        Self::literal(text)
    }
}

impl fmt::Display for Text {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for segment in self.segments() {
            match segment {
                Segment::Literal(text) => {
                    for (index, part) in text.split("${").enumerate() {
                        if index > 0 {
                            f.write_str("$${")?;
                        }
                        f.write_str(part)?;
                    }
                }
                Segment::Reference(reference) => write!(f, "{reference}")?,
            }
        }
        Ok(())
    }
}

impl Serialize for Text {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

#[cfg(test)]
mod tests {
    use super::{Reference, Text};

    #[test]
    fn printed_text_shows_references_and_escapes_literals() {
        let mut text = Text::literal("a${b}");
        text.push_reference(Reference::Url { process: "agent".into() });
        text.push_literal("/run");
        text.push_reference(Reference::Secret { name: "TOKEN".into(), default: None });
        assert_eq!(text.to_string(), "a$${b}${url:agent}/run<TOKEN>");
    }

    #[test]
    fn references_are_changed_in_place_and_the_copy_stays() {
        let port = |process: &str| Reference::Port { process: process.into(), key: None };
        let mut text = Text::literal("a:");
        text.push_reference(port("self"));
        text.push_literal("/");
        text.push_reference(port("b"));
        let copy = text.clone();
        text.change_references(|reference| (reference.process() == Some("self")).then(|| port("a")));
        assert_eq!(text.to_string(), "a:${port:a}/${port:b}");
        assert_eq!(copy.to_string(), "a:${port:self}/${port:b}");
        text.change_references(|_| None);
        assert_eq!(text.segments().len(), 4);
    }

    #[test]
    fn a_text_is_the_same_however_it_was_made() {
        let mut made = Text::default();
        assert_eq!(made, Text::literal(""));
        made.push_literal("a");
        made.push_literal("b");
        assert_eq!(made, Text::literal("ab"));
        let mut more = made.clone();
        more.push_reference(Reference::JobDir);
        assert_eq!((made.segments().len(), more.segments().len()), (1, 2));
    }
}
