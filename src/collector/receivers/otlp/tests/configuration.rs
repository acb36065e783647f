//! The receiver's section.

use crate::collector::config::node::{Entry, Node, Value};
use crate::collector::config::section::{Findings, Section};
use crate::collector::receivers::otlp::FACTORY;

fn map(entries: Vec<(&str, Value)>) -> Value {
    let entry = |(key, value): (&str, Value)| Entry { key: key.to_owned(), line: 2, node: Node::new(2, value) };
    Value::Map(entries.into_iter().map(entry).collect())
}

fn problems(protocols: Value) -> Vec<String> {
    let findings = Findings::new("c.yaml");
    let node = Node::new(1, map(vec![("protocols", protocols)]));
    let made = Section::read(&findings, &node, "receivers.otlp", 1, |section| (FACTORY.configure)(section).is_some());
    let problems: Vec<String> =
        findings.problems.borrow().iter().map(|p| format!("{}: {}", p.path, p.message)).collect();
    assert!(made == Some(true) || !problems.is_empty());
    problems
}

#[test]
fn a_protocol_is_on_when_its_key_is_there() {
    assert!(problems(map(vec![("grpc", Value::Null)])).is_empty());
    let sizes =
        map(vec![("endpoint", Value::Text("127.0.0.1:0".into())), ("max_recv_msg_size_mib", Value::Integer(20))]);
    assert!(problems(map(vec![("grpc", sizes), ("http", Value::Null)])).is_empty());
    for none in [map(Vec::new()), Value::Null] {
        assert_eq!(problems(none), ["receivers.otlp.protocols: no protocol is given"]);
    }
}

#[test]
fn wrong_and_unsupported_keys() {
    let grpc =
        map(vec![("endpont", Value::Null), ("tls", Value::Null), ("max_recv_msg_size_mib", Value::Text("x".into()))]);
    assert_eq!(
        problems(map(vec![("grpc", grpc)])),
        [
            "receivers.otlp.protocols.grpc.max_recv_msg_size_mib: expected an integer, found text",
            "receivers.otlp.protocols.grpc.endpont: unknown key `endpont`",
            "receivers.otlp.protocols.grpc.tls: `tls` is not supported by this collector",
        ]
    );
    let http =
        map(vec![("whatever", Value::Null), ("cors", Value::Null), ("traces_url_path", Value::Text("in".into()))]);
    assert_eq!(
        problems(map(vec![("http", http)])),
        [
            "receivers.otlp.protocols.http.whatever: unknown key `whatever`",
            "receivers.otlp.protocols.http.cors: `cors` is not supported by this collector",
        ]
    );
}
