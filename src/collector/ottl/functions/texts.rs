//! Converters of texts. Texts are bytes, as in the reference: lengths and places count those.

use super::super::arguments::ArgumentKind;
use super::super::keys::entry;
use super::super::value::Value;
use super::converters::empty_map;
use super::{Function, converter, optional, required};
use crate::collector::text::letter_case::{camel, lower, snake, upper};
use crate::diag::counted;
use crate::otlp::Text;

pub(super) const CONCAT: Function = converter(
    "Concat",
    &[required("vals", ArgumentKind::TextsLike), required("delimiter", ArgumentKind::Text)],
    |arguments, scene| {
        let delimiter = arguments.text(1, scene)?;
        let parts = arguments.texts_like(0, scene)?;
        let bytes = |part: &Option<Text>| part.as_ref().map_or(b"<nil>".to_vec(), |text| text.as_bytes().to_vec());
        let parts: Vec<Vec<u8>> = parts.iter().map(bytes).collect();
        Ok(text(parts.join(delimiter.as_bytes())))
    },
);

pub(super) const SPLIT: Function = converter(
    "Split",
    &[required("target", ArgumentKind::Text), required("delimiter", ArgumentKind::Text)],
    |arguments, scene| {
        let (target, delimiter) = (arguments.text(0, scene)?, arguments.text(1, scene)?);
        let (target, delimiter) = (target.to_str(), delimiter.to_str());
        let parts: Vec<Text> = if delimiter.is_empty() {
            target.chars().map(|c| c.to_string().into()).collect()
        } else {
            target.split(&*delimiter).map(Text::from).collect()
        };
        Ok(Value::Texts(parts))
    },
);

pub(super) const SUBSTRING: Function = converter(
    "Substring",
    &[
        required("target", ArgumentKind::Text),
        required("start", ArgumentKind::Integer),
        required("length", ArgumentKind::Integer),
        optional("utf8_safe", ArgumentKind::LiteralBoolean),
    ],
    |arguments, scene| {
        let start = arguments.integer(1, scene)?;
        let length = arguments.integer(2, scene)?;
        let target = arguments.text(0, scene)?;
        let bytes = target.as_bytes();
        let range = usize::try_from(start).ok().zip(usize::try_from(length).ok().filter(|length| *length > 0));
        let range = range.and_then(|(start, length)| Some((start, start.checked_add(length)?)));
        let Some((mut start, mut end)) = range.filter(|(_, end)| *end <= bytes.len()) else {
            let (wanted, size) = (counted(length, "byte", "bytes"), counted(bytes.len(), "byte", "bytes"));
            return Err(format!("no {wanted} from place {start} on in a text of {size}"));
        };
        if arguments.literal_boolean(3).unwrap_or(false) {
            while start < bytes.len() && !begins_character(bytes, start) {
                start += 1;
            }
            while start < end && end < bytes.len() && !begins_character(bytes, end) {
                end -= 1;
            }
            end = end.max(start);
        }
        Ok(text(&bytes[start..end]))
    },
);

pub(super) const TRIM: Function = converter(
    "Trim",
    &[required("target", ArgumentKind::Text), optional("replacement", ArgumentKind::LiteralText)],
    |arguments, scene| {
        let cut = arguments.literal_text(1).map_or(" ".into(), Text::to_str);
        Ok(text(arguments.text(0, scene)?.to_str().trim_matches(|c| cut.contains(c))))
    },
);

pub(super) const TO_LOWER_CASE: Function =
    converter("ToLowerCase", &[required("target", ArgumentKind::Text)], |arguments, scene| {
        Ok(text(lower(&arguments.text(0, scene)?.to_str())))
    });

pub(super) const TO_UPPER_CASE: Function =
    converter("ToUpperCase", &[required("target", ArgumentKind::Text)], |arguments, scene| {
        Ok(text(upper(&arguments.text(0, scene)?.to_str())))
    });

pub(super) const CONVERT_CASE: Function = converter(
    "ConvertCase",
    &[required("target", ArgumentKind::Text), required("to_case", ArgumentKind::LiteralText)],
    |arguments, scene| {
        let target = arguments.text(0, scene)?;
        let (target, case) = (target.to_str(), arguments.literal_text(1).map(Text::as_bytes));
        Ok(text(match case {
            Some(b"lower") => lower(&target),
            Some(b"upper") => upper(&target),
            Some(b"snake") => snake(&target),
            _ => camel(&target),
        }))
    },
)
.checked(|arguments| match arguments.literal_text(1).map(Text::as_bytes) {
    Some(b"lower" | b"upper" | b"snake" | b"camel") => Ok(()),
    _ => Err("the case must be one of: lower, upper, snake, camel".to_owned()),
});

pub(super) const HAS_PREFIX: Function = converter(
    "HasPrefix",
    &[required("target", ArgumentKind::Text), required("prefix", ArgumentKind::Text)],
    |arguments, scene| {
        let (target, prefix) = (arguments.text(0, scene)?, arguments.text(1, scene)?);
        Ok(Value::Bool(target.as_bytes().starts_with(prefix.as_bytes())))
    },
);

pub(super) const HAS_SUFFIX: Function = converter(
    "HasSuffix",
    &[required("target", ArgumentKind::Text), required("suffix", ArgumentKind::Text)],
    |arguments, scene| {
        let (target, suffix) = (arguments.text(0, scene)?, arguments.text(1, scene)?);
        Ok(Value::Bool(target.as_bytes().ends_with(suffix.as_bytes())))
    },
);

pub(super) const IS_MATCH: Function = converter(
    "IsMatch",
    &[required("target", ArgumentKind::TextLike), required("pattern", ArgumentKind::Pattern)],
    |arguments, scene| {
        let pattern = arguments.pattern(1, scene)?;
        let target = arguments.value(0, scene)?.to_text()?;
        Ok(Value::Bool(target.is_some_and(|target| pattern.is_match(&target.to_str()))))
    },
);

pub(super) const EXTRACT_PATTERNS: Function = converter(
    "ExtractPatterns",
    &[required("target", ArgumentKind::Text), required("pattern", ArgumentKind::Pattern)],
    |arguments, scene| {
        let pattern = arguments.pattern(1, scene)?;
        if pattern.named().next().is_none() {
            return Err("the pattern has no group with a name".to_owned());
        }
        let target = arguments.text(0, scene)?;
        let target = target.to_str();
        let Some(found) = pattern.captures(&target) else { return Ok(empty_map()) };
        let mut entries = Vec::new();
        for (name, value) in pattern.found(&found) {
            *entry(&mut entries, &name.into()) = value.into();
        }
        Ok(Value::Map(entries))
    },
);

fn text(content: impl AsRef<[u8]>) -> Value {
    Value::Text(bytes::Bytes::copy_from_slice(content.as_ref()).into())
}

/// Whether the byte at this place is no later byte of a character.
pub(super) fn begins_character(bytes: &[u8], place: usize) -> bool {
    bytes.get(place).is_none_or(|byte| byte & 0xc0 != 0x80)
}

#[cfg(test)]
mod tests {
    use super::super::super::context::Level;
    use super::super::super::group::{ErrorMode, Group, Style};
    use super::super::super::scene::Scene;
    use crate::otlp::{KeyValue, Signal};

    /// What ends the request in the reference has a value here, what loses a value keeps it, and what should match does.
    #[test]
    fn where_the_reference_is_wrong() {
        let statements = [
            r#"set(cache["nothing"], Concat(nil, ","))"#,
            r#"set(cache["equal"], true) where Split("a,b", ",") == Split("a-b", "-")"#,
            r#"set(cache["less"], true) where Split("a", ",") < Split("b", ",")"#,
            r#"merge_maps(cache, cache, "upsert")"#,
            r#"set(cache["matched"], "Hello World")"#,
            r#"replace_match(cache["matched"], "Hello {W*,X}", "yes")"#,
        ];
        let group = Group::compile(Signal::Logs, Style::Given(Level::Log), &statements, &[], ErrorMode::Propagate);
        let mut scene = Scene::default();
        group.expect("compiles").run(&mut scene, &|_| ()).expect("runs");
        assert_eq!(
            scene.cache,
            [KeyValue::new("nothing", ""), KeyValue::new("equal", true), KeyValue::new("matched", "yes")]
        );
    }
}
