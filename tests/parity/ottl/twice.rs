//! Maps in which a key stands twice: what each editor of a map leaves of them.

use serde_json::json;

use super::super::bed::{Case, both};
use super::super::requests::json_body;

const STATEMENTS: &[&str] = &[
    r#"set(attributes["a"], "new")"#,
    r#"set(attributes["other"], attributes["a"])"#,
    r#"delete_key(attributes, "a")"#,
    r#"delete_matching_keys(attributes, "^a")"#,
    r#"keep_keys(attributes, ["a"])"#,
    r#"keep_matching_keys(attributes, "^a")"#,
    r#"replace_all_patterns(attributes, "key", "a", "b")"#,
    r#"replace_all_patterns(attributes, "key", "nowhere", "x")"#,
    r#"replace_all_patterns(attributes, "key", "^b$", "a")"#,
    r#"replace_all_patterns(attributes, "value", "nowhere", "x")"#,
    r#"replace_all_patterns(attributes, "value", "1", "x")"#,
    r#"replace_all_matches(attributes, "one*", "x")"#,
    "truncate_all(attributes, 3)",
    "limit(attributes, 2, [])",
    r#"limit(attributes, 2, ["a"])"#,
    r#"merge_maps(attributes, {"a": "m", "z": 1}, "insert")"#,
    r#"merge_maps(attributes, {"a": "m", "z": 1}, "update")"#,
    r#"merge_maps(attributes, {"a": "m", "z": 1}, "upsert")"#,
    r#"merge_maps(attributes, attributes["m"], "upsert")"#,
    "flatten(attributes)",
    r#"flatten(attributes, "p", depth=1)"#,
    r#"set(attributes["length"], Len(attributes))"#,
    "set(body, attributes)",
];

#[tokio::test]
async fn keys_that_stand_twice() {
    let mut config = json!({
        "receivers": {"otlp": {"protocols": {"http": {"endpoint": "$HTTP"}}}},
        "service": {"telemetry": {"metrics": {"level": "none"}}}
    });
    for (index, statement) in STATEMENTS.iter().enumerate() {
        config["exporters"][format!("file/{index}")] = json!({"path": format!("$OUT/{index}.jsonl")});
        config["processors"][format!("transform/{index}")] =
            json!({"log_statements": [{"context": "log", "statements": [statement.replace('$', "$$")]}]});
        config["service"]["pipelines"][format!("logs/{index}")] = json!({
            "receivers": ["otlp"], "processors": [format!("transform/{index}")], "exporters": [format!("file/{index}")]
        });
    }
    let pair = |key: &str, value: &str| json!({"key": key, "value": {"stringValue": value}});
    let inner = json!([pair("x", "one 1"), pair("y", "two"), pair("x", "three")]);
    let map = json!({"key": "m", "value": {"kvlistValue": {"values": inner}}});
    let attributes = json!([pair("a", "one 1"), pair("b", "two"), map, pair("a", "one 1 more"), pair("b", "two")]);
    let request = json!({"resourceLogs": [{"scopeLogs": [{"logRecords": [{"attributes": attributes}]}]}]});
    both(Case::new(config.to_string()), async |side| {
        side.post("/v1/logs", json_body(&request)).await;
        side.stop().await;
        for index in 0..STATEMENTS.len() {
            side.output(&format!("{index}.jsonl"));
        }
    })
    .await;
}
