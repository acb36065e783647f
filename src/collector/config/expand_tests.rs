//! What references come to, and which are refused.

use std::ffi::OsString;

use super::expand::{Sources, expand};
use super::node::{Entry, Node, Value};
use super::scalar::type_plain;
use super::section::Findings;
use crate::diag::Severity;

/// A text in quotes is text, `[...]` two texts, `{...}` a map with one.
fn parsed(text: &str) -> Node {
    let inner = |open, close| text.strip_prefix(open).and_then(|rest: &str| rest.strip_suffix(close));
    let leaf = |text: &str| Node::new(1, Value::Text(text.to_owned()));
    let value = if let Some(quoted) = inner('"', '"') {
        Value::Text(quoted.to_owned())
    } else if let Some(items) = inner('[', ']') {
        Value::List(items.split(',').map(leaf).collect())
    } else if let Some(value) = inner('{', '}') {
        Value::Map(vec![Entry { key: "k".to_owned(), line: 1, node: leaf(value) }])
    } else {
        type_plain(text)
    };
    Node::new(1, value)
}

fn expanded(text: &str) -> Result<Node, String> {
    let variable = |name: &str| {
        let value = match name {
            "X" => "value",
            "NUMBER" => "0123",
            "TOKEN" => "ab$$cd$$$$e",
            "PORT" => "8080",
            "EMPTY" => "",
            "NESTED" => "${env:X}",
            "SELF" => "${env:SELF}",
            "TWICE" => "${env:TWICE}${env:TWICE}",
            "QUOTED" => "\"12\"",
            "IN_A_MAP" => "{${env:IN_A_MAP}}",
            "IN_A_LIST" => "[${env:IN_A_LIST},${env:IN_A_LIST}]",
            "BY_TURNS" => "{${file:turns.yaml}}",
            _ => return None,
        };
        Some(OsString::from(value))
    };
    let parse = |text: &str| Some(parsed(text));
    let findings = Findings::new("c.yaml");
    let file = |path: &str| match path {
        "there.yaml" => Ok("0123".to_owned()),
        "turns.yaml" => Ok("[${env:BY_TURNS},${env:BY_TURNS}]".to_owned()),
        _ => Err(std::io::ErrorKind::NotFound.into()),
    };
    let sources = Sources { variable: &variable, file: &file, parse: &parse };
    let (node, _) = expand(Node::new(7, Value::Text(text.into())), &sources, &findings);
    match findings.problems.take().into_iter().find(|problem| problem.severity == Severity::Error) {
        Some(problem) => Err(format!("{} {}", problem.location, problem.message)),
        None => Ok(node),
    }
}

fn text(text: &str) -> String {
    expanded(text).expect("expands").as_text().expect("text").to_owned()
}

#[test]
fn a_whole_reference_is_typed_and_keeps_its_text() {
    let node = expanded("${env:NUMBER}").expect("expands");
    assert_eq!((node.value.clone(), node.as_text()), (Value::Integer(83), Some("0123")));
    assert_eq!(expanded("${NUMBER}").expect("expands").value, Value::Integer(83));
    assert_eq!(expanded("${env:NOPE}").expect("expands").value, Value::Null);
    assert_eq!(expanded("${env:EMPTY:-x}").expect("expands").value, Value::Null);
    assert_eq!(expanded("${env:NOPE:-5}").expect("expands").value, Value::Integer(5));
    assert_eq!(expanded("${env:NOPE:-}").expect("expands").value, Value::Text(String::new()));
    assert_eq!(text("${env:QUOTED}"), "\"12\"");
}

#[test]
fn files_and_yaml() {
    let node = expanded("${file:there.yaml}").expect("expands");
    assert_eq!((node.value.clone(), node.as_text()), (Value::Integer(83), Some("0123")));
    assert_eq!(text("x${file:there.yaml}${yaml:5}"), "x01235");
    assert_eq!(expanded("${yaml:true}").expect("expands").value, Value::Boolean(true));
}

#[test]
fn inside_a_string_it_is_text() {
    assert_eq!(expanded("${env:NUMBER}${env:NOPE:-}").expect("expands").value, Value::Text("0123".into()));
    assert_eq!(text("http://${env:X}:${env:PORT}/${env:X}"), "http://value:8080/value");
    assert_eq!(text("${env:NESTED}!"), "value!");
    assert_eq!(text("open ${env:X"), "open ${env:X");
    assert_eq!(text("Bearer ${env:TOKEN}"), "Bearer ab$cd$$e");
}

#[test]
fn dollars() {
    assert_eq!(text("$${1}_$${2}"), "${1}_${2}");
    assert_eq!(text("$1 $ $$"), "$1 $ $");
    assert_eq!(text("$${env:X} ${env:X}"), "$value value");
    assert_eq!(text("$$${env:X}"), "$value");
    assert_eq!(text("$$$${env:X}"), "$${env:X}");
    assert_eq!(text("^([^:]+):(.+)$$"), "^([^:]+):(.+)$");
}

#[test]
fn keys_stay_as_they_are_written() {
    let findings = Findings::new("c.yaml");
    let (variable, file) = (|_: &str| Some(OsString::from("value")), |_: &str| Ok(String::new()));
    let sources = Sources { variable: &variable, file: &file, parse: &|_| None };
    for key in ["${env:X}", "a${env:X}", "$$", "${nope:x}", "${env:X"] {
        let inner = Entry { key: key.to_owned(), line: 2, node: Node::new(2, Value::Text("${env:X}".to_owned())) };
        let list = Value::List(vec![Node::new(2, Value::Map(vec![inner]))]);
        let outer = Entry { key: key.to_owned(), line: 1, node: Node::new(1, list) };
        let (node, _) = expand(Node::new(1, Value::Map(vec![outer])), &sources, &findings);
        let Value::Map(outer) = node.value else { panic!("a map") };
        let Value::List(items) = &outer[0].node.value else { panic!("a list") };
        let inner = &items[0].entries().expect("a map")[0];
        assert_eq!((outer[0].key.as_str(), inner.key.as_str(), inner.node.as_text()), (key, key, Some("value")));
    }
    assert!(findings.problems.take().is_empty());
}

#[test]
fn refused_with_the_line_and_without_values() {
    for (wrong, word) in [
        ("${env:1BAD}", "1BAD"),
        ("${env:A-B}", "A-B"),
        ("${nope:x}", "nope"),
        ("${env:}", "env"),
        ("${env:$X}", "$"),
        ("${file:missing.yaml}", "missing.yaml"),
        ("${env:SELF}", "recursive"),
        ("${env:TWICE}", "recursive"),
        ("${env:IN_A_MAP}", "recursive"),
        ("${env:IN_A_LIST}", "recursive"),
        ("${env:BY_TURNS}", "recursive"),
    ] {
        let message = expanded(wrong).expect_err(wrong);
        assert!(message.starts_with("c.yaml:7 ") && message.contains(word), "{wrong}: {message}");
    }
}
