//! What a single [`Node`] means when a key asks for a certain kind of value.
//!
//! Each function gives `None` for a value of another kind: [`check`](super::check) has said so, or will.

use indexmap::IndexMap;

use super::kinds::TextRule;
use crate::inputs::{Node, NodeValue};
use crate::plan::{PortChoice, Text, Tree, Value};

/// Text as a rule allows it.
pub fn text(node: &Node, rule: TextRule) -> Option<Text> {
    match &node.value {
        NodeValue::Plain(text) => Some(Text::literal(text)),
        NodeValue::Text(text) => (rule.late || text.as_literal().is_some()).then(|| text.clone()),
        NodeValue::Int(number) if rule.integers => Some(Text::literal(number.to_string())),
        _ => None,
    }
}

/// Text that is known now.
pub fn literal(node: &Node) -> Option<&str> {
    match &node.value {
        NodeValue::Plain(text) => Some(text),
        NodeValue::Text(text) => text.as_literal(),
        _ => None,
    }
}

/// A whole number. A plain scalar of YAML is one only in its plainest spelling: `010` is 8 to some and 10 to others.
pub fn int(node: &Node) -> Option<i64> {
    match &node.value {
        NodeValue::Int(number) => Some(*number),
        #[expect(clippy::cast_possible_truncation, reason = "whole and within the range in which floats are exact")]
        NodeValue::Float(number) if number.fract() == 0.0 && number.abs() <= 9_007_199_254_740_992.0 => {
            Some(*number as i64)
        }
        NodeValue::Plain(text) => {
            let number: i64 = text.parse().ok()?;
            (number.to_string() == *text).then_some(number)
        }
        _ => None,
    }
}

/// A number that is not NaN and not infinite.
pub fn num(node: &Node) -> Option<f64> {
    let number = match &node.value {
        #[expect(clippy::cast_precision_loss, reason = "seconds and the like")]
        NodeValue::Int(number) => *number as f64,
        NodeValue::Float(number) => *number,
        NodeValue::Plain(text) => {
            let unsigned = text.strip_prefix(['-', '+']).unwrap_or(text);
            let leading_zero =
                unsigned.len() > 1 && unsigned.starts_with('0') && unsigned.as_bytes()[1].is_ascii_digit();
            if !unsigned.starts_with(|c: char| c.is_ascii_digit() || c == '.') || leading_zero {
                return None;
            }
            text.parse().ok()?
        }
        _ => return None,
    };
    number.is_finite().then_some(number)
}

/// `true` or `false`, in YAML also `yes`, `no`, `on`, `off`.
pub fn boolean(node: &Node) -> Option<bool> {
    match &node.value {
        NodeValue::Bool(value) => Some(*value),
        NodeValue::Plain(text) => match text.as_str() {
            "true" | "True" | "TRUE" | "yes" | "Yes" | "YES" | "on" | "On" | "ON" => Some(true),
            "false" | "False" | "FALSE" | "no" | "No" | "NO" | "off" | "Off" | "OFF" => Some(false),
            _ => None,
        },
        _ => None,
    }
}

/// Whether the value switches something off.
pub fn is_off(node: &Node) -> bool {
    boolean(node) == Some(false)
}

/// The items of a list; Lua's `{}` is an empty one.
pub fn items(node: &Node) -> Option<&[Node]> {
    match &node.value {
        NodeValue::List(items) => Some(items),
        NodeValue::Map(map) if map.is_empty() => Some(&[]),
        _ => None,
    }
}

/// The entries of a mapping.
pub fn entries(node: &Node) -> Option<&IndexMap<String, Node>> {
    match &node.value {
        NodeValue::Map(map) => Some(map),
        _ => None,
    }
}

/// A port.
pub fn port(node: &Node) -> Option<PortChoice> {
    if let Some(number) = int(node) {
        return u16::try_from(number).ok().filter(|port| *port > 0).map(PortChoice::Fixed);
    }
    match literal(node)? {
        "auto" => Some(PortChoice::Auto),
        range => port_range(range).map(|(low, high)| PortChoice::Range(low, high)),
    }
}

/// `8000-8099`, low end first.
pub fn port_range(text: &str) -> Option<(u16, u16)> {
    let (low, high) = text.split_once('-')?;
    let number = |text: &str| digits(text)?.parse::<u16>().ok().filter(|port| *port > 0);
    let (low, high) = (number(low)?, number(high)?);
    (low <= high).then_some((low, high))
}

/// `200` or `200-299`, as an inclusive range.
pub fn status(node: &Node) -> Option<(u16, u16)> {
    let valid = |number: u16| (100..=599).contains(&number).then_some(number);
    if let Some(number) = int(node) {
        let number = valid(u16::try_from(number).ok()?)?;
        return Some((number, number));
    }
    let (low, high) = literal(node)?.split_once('-')?;
    let (low, high) = (valid(digits(low)?.parse().ok()?)?, valid(digits(high)?.parse().ok()?)?);
    (low <= high).then_some((low, high))
}

fn digits(text: &str) -> Option<&str> {
    (!text.is_empty() && text.bytes().all(|b| b.is_ascii_digit())).then_some(text)
}

/// Whether `text` can name a process: `[A-Za-z0-9][A-Za-z0-9_-]{0,62}`, in a job's own name also dots.
pub fn is_name(text: &str, dots: bool) -> bool {
    text.len() <= 63
        && text.starts_with(|c: char| c.is_ascii_alphanumeric())
        && text.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '-') || dots && c == '.')
}

/// Whether `text` can name a variable of the environment.
pub fn is_variable(text: &str) -> bool {
    !text.is_empty()
        && !text.starts_with(|c: char| c.is_ascii_digit())
        && text.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
}

/// Contents of a file or a variable.
pub fn document(node: &Node, rule: TextRule) -> Option<Value> {
    match &node.value {
        NodeValue::Encoded { encoding, value } => Some(Value::Encoded { encoding: *encoding, value: value.clone() }),
        _ => text(node, rule).map(Value::Text),
    }
}

/// A value for somebody else's configuration. Here nobody asks for a type, so a plain scalar of YAML is what YAML 1.2
/// says, but never a changed number: `0510` stays text.
pub fn tree(node: &Node, peer: &mut dyn FnMut(&str) -> Tree) -> Tree {
    match &node.value {
        NodeValue::Unset | NodeValue::Null | NodeValue::Function(_) => Tree::Null,
        NodeValue::Bool(value) => Tree::Bool(*value),
        NodeValue::Int(number) => Tree::Int(*number),
        NodeValue::Float(number) => Tree::Float(*number),
        NodeValue::Plain(text) => plain(node, text),
        NodeValue::Text(text) => Tree::Text(text.clone()),
        NodeValue::Encoded { value, .. } => (**value).clone(),
        NodeValue::Peer(name) => peer(name),
        NodeValue::List(items) => Tree::List(items.iter().map(|item| tree(item, peer)).collect()),
        NodeValue::Map(map) => Tree::Map(map.iter().map(|(key, value)| (key.clone(), tree(value, peer))).collect()),
    }
}

fn plain(node: &Node, text: &str) -> Tree {
    match text {
        "true" | "True" | "TRUE" => return Tree::Bool(true),
        "false" | "False" | "FALSE" => return Tree::Bool(false),
        _ => {}
    }
    if let Some(number) = int(node) {
        return Tree::Int(number);
    }
    // A number that looks whole but was not taken above (too large, `+1`) stays text.
    match num(node) {
        Some(number) if text.contains(['.', 'e', 'E']) => Tree::Float(number),
        _ => Tree::Text(Text::literal(text)),
    }
}

/// What stands there, for a message.
pub fn found(node: &Node) -> String {
    match &node.value {
        NodeValue::Unset => "a removal mark".into(),
        NodeValue::Null => "null".into(),
        NodeValue::Bool(value) => format!("the boolean `{value}`"),
        NodeValue::Int(number) => format!("the number `{number}`"),
        NodeValue::Float(number) => format!("the number `{number:?}`"),
        NodeValue::Plain(text) if text.is_empty() => "empty text".into(),
        NodeValue::Plain(text) => format!("`{}`", short(text)),
        NodeValue::Text(text) => match text.as_literal() {
            Some("") => "empty text".into(),
            Some(literal) => format!("the text `{}`", short(literal)),
            None => format!("text that is known at launch only (`{text}`)"),
        },
        NodeValue::Encoded { .. } => "a document".into(),
        NodeValue::Peer(name) => format!("gym.peer(\"{name}\")"),
        NodeValue::List(_) => "a list".into(),
        NodeValue::Map(_) => "a mapping".into(),
        NodeValue::Function(_) => "a function".into(),
    }
}

fn short(text: &str) -> String {
    let mut chars = text.chars();
    let start: String = chars.by_ref().take(60).collect();
    if chars.next().is_some() { format!("{start}...") } else { start }
}
