//! Makes the outputs of two runs equal where they mean the same: sorts what has no order, names what is random.
//!
//! Sorted: attributes, resources, scopes, metrics, points, spans, log records, exemplars. Kept in order: array values,
//! buckets, bounds, quantiles, events, links. Times of the run become `<T0>`, `<T1>`, ... in ascending order, anew in each
//! message; other times stay. Ports get their names, UUIDs become `<uuid>`, the duration of a scrape `<seconds>`, the version
//! of the scope of scraped metrics `<version>`. 1.0 and 1 are equal.

use std::collections::BTreeSet;
use std::time::{SystemTime, UNIX_EPOCH};

use regex::Regex;
use serde_json::{Map, Value, json};

const ORDERED: [&str; 7] =
    ["bucketCounts", "explicitBounds", "quantileValues", "events", "links", "idKeys", "descriptionKeys"];

/// What one side's outputs are normalised by.
pub struct Normaliser {
    ports: Vec<(Regex, String)>,
    uuid: Regex,
    start: u128,
}

fn now() -> u128 {
    SystemTime::now().duration_since(UNIX_EPOCH).expect("after 1970").as_nanos()
}

const SECONDS: u128 = 1_000_000_000;

impl Normaliser {
    pub fn new(ports: impl Iterator<Item = (&'static str, u16)>) -> Self {
        let ports =
            ports.map(|(name, port)| (Regex::new(&format!(r"\b{port}\b")).expect("a regex"), format!("<{name}>")));
        let uuid = r"\b[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}\b";
        Self { ports: ports.collect(), uuid: Regex::new(uuid).expect("a regex"), start: now() - 2 * SECONDS }
    }

    /// A text with its ports and UUIDs named.
    pub fn text(&self, text: &str) -> String {
        let mut text = self.uuid.replace_all(text, "<uuid>").into_owned();
        for (port, name) in &self.ports {
            text = port.replace_all(&text, name.as_str()).into_owned();
        }
        text
    }

    /// One OTLP/JSON message.
    pub fn line(&self, line: Value) -> Value {
        let mut times = BTreeSet::new();
        self.collect_times(&line, &mut times);
        let times: Vec<String> = times.into_iter().map(|time| time.to_string()).collect();
        self.walk(line, &times, "")
    }

    fn collect_times(&self, node: &Value, times: &mut BTreeSet<u128>) {
        match node {
            Value::Object(map) => {
                for (key, value) in map {
                    let time = value.as_str().filter(|_| key.to_ascii_lowercase().ends_with("unixnano"));
                    let time = time.and_then(|text| text.parse::<u128>().ok());
                    times.extend(time.filter(|time| (self.start..now() + 2 * SECONDS).contains(time)));
                    self.collect_times(value, times);
                }
            }
            Value::Array(items) => items.iter().for_each(|item| self.collect_times(item, times)),
            _ => {}
        }
    }

    fn walk(&self, node: Value, times: &[String], key: &str) -> Value {
        match node {
            Value::Object(map) => {
                let walked = map.into_iter().map(|(name, value)| {
                    let value = self.walk(value, times, &name);
                    (name, value)
                });
                object(sorted(walked.collect()))
            }
            Value::Array(items) => {
                let attributes = items.first().is_some_and(|item| item.get("key").is_some());
                let mut items: Vec<Value> = items.into_iter().map(|item| self.walk(item, times, "")).collect();
                if !(ORDERED.contains(&key) || key == "values" && !attributes) {
                    items.sort_by_cached_key(ToString::to_string);
                }
                Value::Array(items)
            }
            Value::String(text) => match times.iter().position(|time| *time == text) {
                Some(place) => json!(format!("<T{place}>")),
                None => json!(self.text(&text)),
            },
            Value::Number(number) => whole(&number).map_or(Value::Number(number), Value::from),
            other => other,
        }
    }
}

/// The integer that a number written with a fraction is.
fn whole(number: &serde_json::Number) -> Option<i64> {
    let value =
        number.as_f64().filter(|value| number.is_f64() && value.fract() == 0.0 && value.abs() < 2f64.powi(53))?;
    #[expect(clippy::cast_possible_truncation, reason = "whole and below 2^53")]
    Some(value as i64)
}

fn sorted(map: Map<String, Value>) -> Map<String, Value> {
    let mut entries: Vec<(String, Value)> = map.into_iter().collect();
    entries.sort_by(|a, b| a.0.cmp(&b.0));
    entries.into_iter().collect()
}

fn object(mut map: Map<String, Value>) -> Value {
    if let Some(scope) = map.get_mut("scope")
        && scope["name"].as_str().is_some_and(|name| name.ends_with("prometheusreceiver"))
        && scope.get("version").is_some()
    {
        scope["version"] = json!("<version>");
    }
    if map.get("name").and_then(Value::as_str).is_some_and(|name| name.starts_with("scrape_duration")) {
        let points = map.get_mut("gauge").and_then(|gauge| gauge["dataPoints"].as_array_mut());
        for point in points.into_iter().flatten().filter(|point| point["asDouble"] != json!(0)) {
            point["asDouble"] = json!("<seconds>");
        }
    }
    Value::Object(map)
}

/// All messages as one of each signal: resources and scopes that are equal but for what they hold become one.
pub fn merge(lines: &[Value]) -> Vec<Value> {
    let levels: [(&str, &[&str]); 3] = [
        ("resourceSpans", &["scopeSpans", "spans"]),
        ("resourceMetrics", &["scopeMetrics", "metrics"]),
        ("resourceLogs", &["scopeLogs", "logRecords"]),
    ];
    let mut merged = Vec::new();
    for (name, path) in levels {
        let of_signal = lines.iter().filter_map(|line| line[name].as_array()).flatten().cloned().collect::<Vec<_>>();
        if !of_signal.is_empty() {
            merged.push(json!({name: join(of_signal, path)}));
        }
    }
    merged
}

fn join(mut items: Vec<Value>, path: &[&str]) -> Vec<Value> {
    if let [name, rest @ ..] = path {
        let mut groups: Vec<(Value, Vec<Value>)> = Vec::new();
        for mut item in items {
            let held = item.as_object_mut().and_then(|map| map.shift_remove(*name));
            let held = held.and_then(|held| held.as_array().cloned()).unwrap_or_default();
            match groups.iter_mut().find(|(own, _)| *own == item) {
                Some((_, all)) => all.extend(held),
                None => groups.push((item, held)),
            }
        }
        items = groups
            .into_iter()
            .map(|(mut own, held)| {
                own[*name] = json!(join(held, rest));
                own
            })
            .collect();
    }
    items.sort_by_cached_key(ToString::to_string);
    items
}

/// One line for each value, with the way to it.
pub fn leaves(node: &Value, path: &str) -> Vec<String> {
    match node {
        Value::Object(map) if !map.is_empty() => {
            map.iter().flat_map(|(key, value)| leaves(value, &format!("{path}.{key}"))).collect()
        }
        Value::Array(items) if !items.is_empty() => {
            let label = |(place, item): (usize, &Value)| {
                let name = item.get("name").or_else(|| item.get("key")).and_then(Value::as_str);
                leaves(item, &format!("{path}[{}]", name.map_or(place.to_string(), str::to_owned)))
            };
            items.iter().enumerate().flat_map(label).collect()
        }
        other => vec![format!("{path} = {other}")],
    }
}
