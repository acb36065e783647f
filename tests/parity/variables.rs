//! References in values: how each kind of variable is typed, alone and inside of texts, lists, maps and quotes, and that
//! keys stay as they are written.

use std::fmt::Write as _;
use std::fs;

use serde_json::{Value, json};

use super::bed::{Case, both};
use super::requests::json_body;

/// Every value of the table is that of a resource attribute.
#[tokio::test]
async fn references_of_all_kinds_in_values_of_all_kinds() {
    let file = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data/collector/variables.json");
    let table: Value = serde_json::from_str(&fs::read_to_string(file).expect("reads")).expect("JSON");
    let mut config = "receivers: {otlp: {protocols: {http: {endpoint: $HTTP}}}}\n\
        exporters: {file: {path: $OUT/x.jsonl}}\n\
        service:\n  telemetry: {metrics: {level: none}}\n\
        \x20 pipelines: {traces: {receivers: [otlp], processors: [resource], exporters: [file]}}\n\
        processors:\n  resource:\n    attributes:\n"
        .to_owned();
    for (index, value) in table["values"].as_array().expect("a list").iter().enumerate() {
        let value = value.as_str().expect("text");
        write!(config, "      - action: insert\n        key: v{index}\n        value: {value}\n").expect("writes");
    }
    let mut case = Case::new(config);
    for (name, value) in table["environment"].as_object().expect("a map") {
        case = case.variable(name.clone().leak(), value.as_str().expect("text"));
    }
    let span = json!({"traceId": "5b8efff798038103d269b633813fc60c", "spanId": "eee19b7ec3c1b174", "name": "one"});
    both(case, async |side| {
        let request = json!({"resourceSpans": [{"resource": {}, "scopeSpans": [{"spans": [span]}]}]});
        side.post("/v1/traces", json_body(&request)).await;
        side.stop().await;
        side.output("x.jsonl");
    })
    .await;
}
