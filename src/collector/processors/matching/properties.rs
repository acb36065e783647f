//! What an item is compared with.

use crate::collector::ottl::{Level, Scene};
use crate::collector::text::pattern::{self, Pattern};
use crate::collector::text::value_text::as_text;
use crate::otlp::{AnyValue, KeyValue, SPAN_KINDS, Text, same};

/// What a resource without a service name is called here.
const NO_SERVICE: &str = "<nil-service-name>";

/// How texts are compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::collector::processors) enum MatchType {
    /// They are equal.
    Strict,
    /// They match a regular expression, somewhere.
    Regexp,
}

/// Texts of which one must fit.
#[derive(Clone, Debug)]
pub(in crate::collector::processors) enum Texts {
    /// Whole texts.
    Equal(Vec<String>),
    /// Regular expressions.
    Patterns(Vec<Pattern>),
}

/// An attribute that must be there.
#[derive(Clone, Debug)]
struct Attribute {
    key: Text,
    value: Wanted,
}

#[derive(Clone, Debug)]
enum Wanted {
    Anything,
    Value(AnyValue),
    Text(Texts),
}

/// Attributes that must all be there.
#[derive(Clone, Debug, Default)]
pub(in crate::collector::processors) struct Attributes(Vec<Attribute>);

/// An instrumentation scope.
#[derive(Clone, Debug)]
pub(in crate::collector::processors) struct Library {
    pub name: Texts,
    /// Any, if it is not given.
    pub version: Option<Texts>,
}

/// What all must fit for an item to be meant. What is not given fits everything.
#[derive(Clone, Debug, Default)]
pub(in crate::collector::processors) struct Properties {
    pub services: Option<Texts>,
    pub span_names: Option<Texts>,
    pub span_kinds: Option<Texts>,
    pub metric_names: Option<Texts>,
    pub bodies: Option<Texts>,
    pub severity_texts: Option<Texts>,
    /// The least severity, and whether records without one fit.
    pub severity: Option<(i32, bool)>,
    pub attributes: Attributes,
    pub resources: Attributes,
    pub libraries: Vec<Library>,
}

/// What is meant, and what of that is not.
#[derive(Clone, Debug, Default)]
pub(in crate::collector::processors) struct Matching {
    pub include: Option<Properties>,
    pub exclude: Option<Properties>,
}

impl Texts {
    /// Compiles what must be compiled.
    pub fn new(texts: &[String], match_type: MatchType) -> Result<Self, String> {
        Ok(match match_type {
            MatchType::Strict => Self::Equal(texts.to_vec()),
            MatchType::Regexp => {
                let compile = |text: &String| {
                    pattern::compile(text).map_err(|why| format!("`{text}` is no regular expression: {why}"))
                };
                Self::Patterns(texts.iter().map(compile).collect::<Result<_, _>>()?)
            }
        })
    }

    /// Whether one of them fits.
    pub fn fit(&self, text: &str) -> bool {
        match self {
            Self::Equal(texts) => texts.iter().any(|known| known == text),
            Self::Patterns(patterns) => patterns.iter().any(|pattern| pattern.is_match(text)),
        }
    }
}

impl Attributes {
    /// Adds an attribute, with a value if it must have this one.
    pub fn add(&mut self, key: &str, value: Option<AnyValue>, match_type: Option<MatchType>) -> Result<(), String> {
        let value = match (value, match_type) {
            (None, _) => Wanted::Anything,
            (Some(value), Some(MatchType::Strict)) => Wanted::Value(value),
            (Some(AnyValue::String(text)), Some(MatchType::Regexp)) => {
                Wanted::Text(Texts::new(&[text.to_str().into_owned()], MatchType::Regexp)?)
            }
            (Some(_), Some(MatchType::Regexp)) => {
                return Err(format!("with `match_type: regexp` the value of `{key}` must be text"));
            }
            (Some(_), None) => return Err("`match_type` is missing".to_owned()),
        };
        self.0.push(Attribute { key: key.into(), value });
        Ok(())
    }

    /// None of them.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether all of them are there; `get` gives the value of a key.
    pub fn fit(&self, get: impl Fn(&[u8]) -> Option<AnyValue>) -> bool {
        self.0.iter().all(|wanted| {
            let Some(value) = get(wanted.key.as_bytes()) else { return false };
            match &wanted.value {
                Wanted::Anything => true,
                Wanted::Value(known) => same(known, &value),
                Wanted::Text(texts) => match &value {
                    AnyValue::String(_) | AnyValue::Bool(_) | AnyValue::Int(_) => texts.fit(&as_text(&value)),
                    // Without an exponent, however large.
                    AnyValue::Double(value) => texts.fit(&decimal(*value)),
                    _ => false,
                },
            }
        })
    }

    /// Whether all of them are in a list.
    pub fn fit_list(&self, list: &[KeyValue]) -> bool {
        self.fit(|key| list.iter().find(|entry| entry.key.as_bytes() == key).map(|entry| entry.value.clone()))
    }
}

fn decimal(value: f64) -> String {
    if value.is_infinite() { format!("{}Inf", if value > 0.0 { "+" } else { "-" }) } else { value.to_string() }
}

impl Properties {
    /// Whether the span, metric or log record of the scene fits.
    pub fn fit(&self, level: Level, scene: &Scene) -> bool {
        let fits =
            |texts: &Option<Texts>, text: &dyn Fn() -> String| texts.as_ref().is_none_or(|texts| texts.fit(&text()));
        match level {
            Level::Span => {
                let service = || scene.resource.get("service.name").map_or(NO_SERVICE.to_owned(), as_text);
                fits(&self.services, &service)
                    && fits(&self.span_names, &|| scene.span.text(5).to_str().into_owned())
                    && fits(&self.span_kinds, &|| span_kind(scene).to_owned())
                    && self.fit_around(scene)
                    && self.attributes.fit(|key| scene.span.attribute(9, key))
            }
            Level::Log => {
                let severity = scene.log.last(2).map_or(0, crate::otlp::wire::Value::int32);
                fits(&self.bodies, &|| as_text(&AnyValue::decode(&scene.log.inner(5))))
                    && fits(&self.severity_texts, &|| scene.log.text(3).to_str().into_owned())
                    && self
                        .severity
                        .is_none_or(|(least, unknown)| if severity == 0 { unknown } else { severity >= least })
                    && self.fit_around(scene)
                    && self.attributes.fit(|key| scene.log.attribute(6, key))
            }
            Level::Resource => self.resources.fit_list(&scene.resource.attributes),
            // Resources make no difference for metrics.
            _ => fits(&self.metric_names, &|| scene.metric_name.to_str().into_owned()),
        }
    }

    /// Without names nothing is said about metrics.
    fn says_something(&self, level: Level) -> bool {
        level != Level::Metric || self.metric_names.is_some()
    }

    fn fit_around(&self, scene: &Scene) -> bool {
        let name = |number| scene.scope.text(number).to_str().into_owned();
        let library = |library: &Library| {
            library.name.fit(&name(1)) && library.version.as_ref().is_none_or(|version| version.fit(&name(2)))
        };
        self.libraries.iter().all(library) && self.resources.fit_list(&scene.resource.attributes)
    }
}

fn span_kind(scene: &Scene) -> &'static str {
    let number = scene.span.last(6).map_or(0, crate::otlp::wire::Value::int32);
    usize::try_from(number).ok().and_then(|number| SPAN_KINDS.get(number)).copied().unwrap_or_default()
}

impl Matching {
    /// Nothing is said.
    pub fn is_empty(&self) -> bool {
        self.include.is_none() && self.exclude.is_none()
    }

    /// Whether the item of the scene is meant.
    pub fn means(&self, level: Level, scene: &Scene) -> bool {
        self.include.as_ref().is_none_or(|include| include.fit(level, scene))
            && !self.exclude.as_ref().is_some_and(|exclude| exclude.fit(level, scene) && exclude.says_something(level))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn attributes_by_key_value_and_pattern() {
        let list = [KeyValue::new("a", "text"), KeyValue::new("n", 5), KeyValue::new("d", 1e21)];
        let fits = |key: &str, value: Option<AnyValue>, match_type| {
            let mut attributes = Attributes::default();
            attributes.add(key, value, Some(match_type)).map(|()| attributes.fit_list(&list))
        };
        assert_eq!(fits("a", None, MatchType::Strict), Ok(true));
        assert_eq!(fits("b", None, MatchType::Regexp), Ok(false));
        assert_eq!(fits("n", Some(5.into()), MatchType::Strict), Ok(true));
        assert_eq!(fits("n", Some("5".into()), MatchType::Strict), Ok(false));
        assert_eq!(fits("n", Some("^5$".into()), MatchType::Regexp), Ok(true));
        assert_eq!(fits("d", Some("^10+$".into()), MatchType::Regexp), Ok(true));
        assert!(fits("n", Some(5.into()), MatchType::Regexp).is_err());
        assert!(Attributes::default().add("a", Some(1.into()), None).is_err());
    }
}
