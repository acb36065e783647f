//! The `forward` connector: one pipeline into several, of each signal, and what one of them changes is its own.

use serde_json::json;

use super::bed::{Case, both};
use super::requests::{all, json_body, path, wire_body};

/// OTLP into two forwards and a file; each forward into a pipeline that changes attributes in its own way; one of them
/// is fed by the other too.
fn case() -> Case {
    let change = |key: &str| json!({"attributes": [{"key": key, "value": key, "action": "upsert"}, {"key": "string", "action": "delete"}]});
    let mut config = json!({
        "receivers": {"otlp": {"protocols": {"http": {"endpoint": "$HTTP"}}}},
        "processors": {"resource/one": change("one"), "resource/two": change("two"), "attributes/two": {"actions": [
            {"key": "whole", "action": "delete"}, {"key": "seen", "value": 2, "action": "insert"}]}},
        "connectors": {"forward": null, "forward/two": {}},
        "service": {"telemetry": {"metrics": {"level": "none"}}}
    });
    for file in ["plain", "one", "two"] {
        config["exporters"][format!("file/{file}")] = json!({"path": format!("$OUT/{file}.jsonl")});
    }
    for signal in ["traces", "metrics", "logs"] {
        let pipelines = &mut config["service"]["pipelines"];
        pipelines[format!("{signal}/in")] =
            json!({"receivers": ["otlp"], "exporters": ["file/plain", "forward", "forward/two"]});
        pipelines[format!("{signal}/one")] = json!({
            "receivers": ["forward"], "processors": ["resource/one"], "exporters": ["file/one", "forward/two"]
        });
        pipelines[format!("{signal}/two")] = json!({
            "receivers": ["forward/two"], "processors": ["resource/two", "attributes/two"], "exporters": ["file/two"]
        });
    }
    Case::new(config.to_string())
}

#[tokio::test]
async fn what_is_forwarded_is_each_pipelines_own() {
    both(case(), async |side| {
        for (signal, request) in all() {
            side.post(path(signal), json_body(&request)).await;
            side.post(path(signal), wire_body(signal, &request)).await;
        }
        side.stop().await;
        for file in ["plain.jsonl", "one.jsonl"] {
            side.output(file);
        }
        // The two ways into it have no order.
        side.merged_output("two.jsonl");
    })
    .await;
}
