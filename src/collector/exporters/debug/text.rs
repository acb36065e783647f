//! A payload as lines.

use serde_json::{Map, Value};

use super::config::Verbosity;
use crate::collector::items::counted_items;
use crate::diag::counted;
use crate::otlp::{Items, Payload};

/// The lines for a payload.
pub(super) fn lines(payload: &Payload, verbosity: Verbosity) -> Vec<String> {
    let mut lines = vec![counts(payload)];
    if verbosity == Verbosity::Basic {
        return lines;
    }
    let mut json = Vec::new();
    payload.write_json(&mut json);
    if verbosity == Verbosity::Detailed {
        lines.push(String::from_utf8_lossy(&json).into_owned());
        return lines;
    }
    // Bytes that are not UTF-8 come from the sender; what is shown is for people.
    let message: Value = serde_json::from_str(&String::from_utf8_lossy(&json)).unwrap_or_default();
    let entries = message.as_object().and_then(|message| message.values().next());
    for entry in list(entries) {
        lines.push(format!("resource{}", attributes(&entry["resource"]["attributes"])));
        let scopes = ["scopeSpans", "scopeMetrics", "scopeLogs"].into_iter().find_map(|key| entry.get(key));
        for scope in list(scopes) {
            let text = |key: &str| scope["scope"][key].as_str().unwrap_or_default().to_owned();
            lines.push(format!("scope {} {}", text("name"), text("version")));
            let items = ["spans", "metrics", "logRecords"].into_iter().find_map(|key| scope.get(key));
            lines.extend(list(items).iter().map(item));
        }
    }
    lines
}

fn counts(payload: &Payload) -> String {
    let resources = payload.resources.len();
    let scopes = payload.resources.iter().flat_map(|entry| &entry.scopes);
    let metrics: usize = scopes.map(|scope| if let Items::Metrics(all) = &scope.items { all.len() } else { 0 }).sum();
    let metrics = if metrics > 0 { format!(", {}", counted(metrics, "metric", "metrics")) } else { String::new() };
    let resources = counted(resources, "resource", "resources");
    let items = counted_items(payload.signal, payload.item_count());
    format!("{}: {resources}{metrics}, {items}", payload.signal.name())
}

fn item(item: &Value) -> String {
    let text = |key: &str| item[key].as_str().unwrap_or_default();
    if let Some(kind) =
        ["gauge", "sum", "histogram", "exponentialHistogram", "summary"].into_iter().find(|k| item.get(k).is_some())
    {
        let points: Vec<String> = list(item[kind].get("dataPoints")).iter().map(point).collect();
        return format!("{kind} {} {}", text("name"), points.join("; "));
    }
    let own = match item.get("body") {
        Some(body) => format!("log {} {}", text("severityText"), any_value(body)),
        None => format!("span {} {} {}", text("name"), text("traceId"), text("spanId")),
    };
    format!("{own}{}", attributes(&item["attributes"]))
}

fn point(point: &Value) -> String {
    let rest: Map<String, Value> = point.as_object().cloned().unwrap_or_default();
    let shown = rest.iter().filter(|(key, _)| !matches!(key.as_str(), "attributes" | "exemplars"));
    let shown: Vec<String> = shown.map(|(key, value)| format!("{key}={value}")).collect();
    format!("{}{}", shown.join(" "), attributes(&point["attributes"]))
}

fn list(value: Option<&Value>) -> &[Value] {
    value.and_then(Value::as_array).map_or(&[], Vec::as_slice)
}

/// ` key=value` for each.
fn attributes(all: &Value) -> String {
    let one = |attribute: &Value| {
        format!(" {}={}", attribute["key"].as_str().unwrap_or_default(), any_value(&attribute["value"]))
    };
    list(Some(all)).iter().map(one).collect()
}

fn any_value(value: &Value) -> String {
    match value.as_object().and_then(|value| value.values().next()) {
        Some(Value::String(text)) => text.clone(),
        Some(other) => other.to_string(),
        None => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::collector::testing::spans;

    #[test]
    fn each_says_more_than_the_one_before() {
        let payload = spans(2);
        assert_eq!(lines(&payload, Verbosity::Basic), ["traces: 1 resource, 2 spans"]);
        let normal = lines(&payload, Verbosity::Normal);
        let ids = "01010101010101010101010101010101 0202020202020202";
        let wanted = [
            "resource service.name=shop".to_owned(),
            "scope  ".to_owned(),
            format!("span s0 {ids}"),
            format!("span s1 {ids}"),
        ];
        assert_eq!(normal[1..], wanted);
        assert!(lines(&payload, Verbosity::Detailed)[1].starts_with("{\"resourceSpans\":"));
    }
}
