//! Expressions and editors in every context.

use gymrun::otlp::Signal;
use serde_json::{Value, json};

use super::super::bed::{Case, both};
use super::super::side::Side;
use super::tables::{
    CONTEXTS, Line, accepted_lines, config, group, in_order, read, request, resources_key, send, statements_key,
};

/// All groups in one processor.
fn transform(groups: impl Iterator<Item = (Signal, Value)>) -> String {
    let mut settings = json!({"trace_statements": [], "metric_statements": [], "log_statements": []});
    for (signal, group) in groups {
        settings[statements_key(signal)].as_array_mut().expect("a list").push(group);
    }
    config(&[("transform", settings.to_string())])
}

/// A statement that keeps a value under the text that it comes from.
pub fn result(text: &str, value: &str) -> String {
    format!("set(cache[{}], {value})", json!(text))
}

/// The value of each expression, under a key of its own; no key where it fails.
#[tokio::test]
async fn expressions() {
    let lines = read("expressions");
    let Some(lines) = accepted_lines(&lines, |line| result("x", &line.text)) else { return };
    let groups = CONTEXTS.iter().enumerate().map(|(context, (_, signal, attributes))| {
        let of_context = lines.iter().filter(|line| line.context == context);
        let mut statements: Vec<String> = of_context.map(|line| result(&line.text, &line.text)).collect();
        statements.push(format!("set({attributes}[\"results\"], cache)"));
        (*signal, group(context, &statements))
    });
    // From the inside out, so that what one finds is not what another one has put there.
    let groups: Vec<(Signal, Value)> = groups.collect::<Vec<_>>().into_iter().rev().collect();
    both(Case::new(transform(groups.into_iter())), async |side| {
        for signal in Signal::ALL {
            send(side, signal, &request(signal, 1)).await;
        }
        side.stop().await;
        for signal in Signal::ALL {
            let messages = side.messages(&format!("{}.jsonl", signal.name()));
            for message in messages {
                side.row(in_order(message));
            }
        }
    })
    .await;
}

/// Statements in one group, which passes over the copies of the others at once.
const GROUP: usize = 30;

/// What each statement makes of a copy of its own. Both take all of them.
async fn on_copies(lines: &[Line]) {
    let of_signal = |signal: Signal| lines.iter().filter(|line| line.signal() == signal).collect::<Vec<_>>();
    let mut groups = Vec::new();
    for signal in Signal::ALL {
        let lines: Vec<(usize, &Line)> = of_signal(signal).into_iter().enumerate().collect();
        for lines in lines.chunk_by(|a, b| a.1.context == b.1.context && a.0 / GROUP == b.0 / GROUP) {
            let statements = lines.iter().map(|(number, line)| on_copy(&line.text, *number));
            let mut group = group(lines[0].1.context, &statements.collect::<Vec<_>>());
            let (first, last) = (lines[0].0, lines[lines.len() - 1].0);
            let copy = r#"resource.attributes["idx"]"#;
            group["conditions"] = json!([format!("{copy} >= {first} and {copy} <= {last}")]);
            groups.push((signal, group));
        }
    }
    both(Case::new(transform(groups.into_iter())), async |side| {
        for signal in Signal::ALL {
            send(side, signal, &request(signal, of_signal(signal).len())).await;
        }
        side.stop().await;
        for signal in Signal::ALL {
            record_copies(side, signal, &of_signal(signal));
        }
    })
    .await;
}

/// The statement, for one copy only.
fn on_copy(statement: &str, number: usize) -> String {
    let own = format!(r#"resource.attributes["idx"] == {number}"#);
    match statement.split_once(" where ") {
        Some((editor, condition)) => format!("{editor} where {own} and ({condition})"),
        None => format!("{statement} where {own}"),
    }
}

/// Records each copy under the statement that ran on it.
fn record_copies(side: &mut Side, signal: Signal, lines: &[&Line]) {
    let messages = side.messages(&format!("{}.jsonl", signal.name()));
    let copies = messages.into_iter().flat_map(|mut message| match message[resources_key(signal)].take() {
        Value::Array(copies) => copies,
        other => panic!("no resources: {other}"),
    });
    let copies: Vec<Value> = copies.collect();
    assert_eq!(copies.len(), lines.len(), "copies of {}", signal.name());
    for (copy, line) in copies.into_iter().zip(lines) {
        side.row(json!({ &line.text: in_order(copy) }));
    }
}

/// Every editor, and `set` for what it has to do with maps and lists.
#[tokio::test]
async fn edits() {
    if let Some(lines) = accepted_lines(&read("edits"), |line| line.text.clone()) {
        on_copies(&lines).await;
    }
}

/// What every path takes: every kind of value, right or wrong.
#[tokio::test]
async fn every_path_is_set_to_every_kind_of_value() {
    let lines = read("paths").into_iter().flat_map(|path| {
        let line = move |value| Line { text: format!("set({}, {value})", path.text), ..path.clone() };
        VALUES.map(line)
    });
    on_copies(&lines.collect::<Vec<_>>()).await;
}

const VALUES: [&str; 12] = [
    "nil",
    "true",
    "-1",
    "4294967299",
    "2.5",
    "\"0102030405060708\"",
    "0x0102030405060708090a0b0c0d0e0f10",
    "[1, 2]",
    "[1.5, 2.5]",
    "[\"a\", {\"b\": nil}]",
    "{\"a\": 1, \"b\": [true]}",
    "Split(\"a,b\", \",\")",
];
