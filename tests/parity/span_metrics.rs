//! Span metrics: what several connectors, one for each case of `tests/data/span-metrics`, make of the spans of each
//! step (its README tells the form). All of them run in one collector; a step is one request, and each connector gets
//! the resources of its own case.

use std::fs;
use std::io::{Read as _, Seek as _, SeekFrom};
use std::path::Path;

use serde_json::{Value, json};

use super::bed::{Case, both};
use super::side::{Body, Side};
use crate::harness::{eventually_async, json_lines_so_far};

struct Sequence {
    name: String,
    config: Value,
    steps: Vec<Value>,
    delta: bool,
    /// Whether only the end is compared: what comes between depends on time.
    only_last: bool,
}

/// More lines than this come in a step: two flushes for sure, one to begin with, one that is not yet in the file.
const LINES: usize = 3;

fn read() -> Vec<Sequence> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/span-metrics");
    let mut files: Vec<_> =
        fs::read_dir(folder).expect("a folder").map(|entry| entry.expect("an entry").path()).collect();
    files.sort();
    let of_file = |path: &std::path::PathBuf| -> Vec<Value> {
        serde_json::from_slice(&fs::read(path).expect("a file")).expect("a list of cases")
    };
    let json = files.iter().filter(|path| path.extension().is_some_and(|ending| ending == "json"));
    json.flat_map(of_file).map(|case| sequence(&case)).collect()
}

fn sequence(case: &Value) -> Sequence {
    let mut config = case["config"].clone();
    config["metrics_flush_interval"] = json!("500ms");
    Sequence {
        name: case["name"].as_str().expect("a name").to_owned(),
        delta: config["aggregation_temporality"] == json!("AGGREGATION_TEMPORALITY_DELTA"),
        config,
        steps: case["steps"].as_array().expect("steps").clone(),
        only_last: case["only_last"] == json!(true),
    }
}

/// A value as OTLP/JSON; objects name a type: `map`, `bytes`, `double`.
fn value(value: &Value) -> Value {
    match value {
        Value::Null => json!({}),
        Value::Bool(value) => json!({"boolValue": value}),
        Value::Number(number) if number.is_f64() => json!({"doubleValue": number}),
        Value::Number(number) => json!({"intValue": number.to_string()}),
        Value::String(text) => json!({"stringValue": text}),
        Value::Array(items) => json!({"arrayValue": {"values": items.iter().map(self::value).collect::<Vec<_>>()}}),
        Value::Object(typed) => match typed.iter().next() {
            Some((kind, map)) if kind == "map" => json!({"kvlistValue": {"values": attributes(map)}}),
            Some((kind, value)) => json!({format!("{kind}Value"): value}),
            None => json!({"kvlistValue": {"values": []}}),
        },
    }
}

/// Attributes: an object, or a list of pairs.
fn attributes(given: &Value) -> Vec<Value> {
    let pair = |key: &Value, given: &Value| json!({"key": key, "value": value(given)});
    match given {
        Value::Object(map) => map.iter().map(|(key, given)| pair(&json!(key), given)).collect(),
        Value::Array(pairs) => pairs.iter().map(|entry| pair(&entry[0], &entry[1])).collect(),
        _ => Vec::new(),
    }
}

const START: u64 = 1_700_000_000_000_000_000;

fn span(given: &Value) -> Value {
    #[expect(clippy::cast_possible_truncation, reason = "milliseconds of a test")]
    let nanoseconds = (given["ms"].as_f64().unwrap_or(5.0) * 1e6) as i64;
    let events = given["events"].as_array().into_iter().flatten();
    let events: Vec<Value> = events
        .map(|event| json!({"name": event[0], "timeUnixNano": START.to_string(), "attributes": attributes(&event[1])}))
        .collect();
    json!({
        "name": given["name"], "startTimeUnixNano": START.to_string(),
        "endTimeUnixNano": START.saturating_add_signed(nanoseconds).to_string(),
        "attributes": attributes(&given["attributes"]), "kind": given["kind"].as_u64().unwrap_or(0),
        "status": {"code": given["status"].as_u64().unwrap_or(0)}, "events": events,
        "traceId": given["trace"].as_str().unwrap_or_default(), "spanId": given["span"].as_str().unwrap_or_default(),
        "traceState": given["state"].as_str().unwrap_or_default()
    })
}

fn resource(case: &str, given: &Value) -> Value {
    let mut all = attributes(&given["resource"]);
    all.push(json!({"key": "case", "value": {"stringValue": case}}));
    let scope = given.get("scope").map_or(json!({}), |scope| json!({"name": scope[0], "version": scope[1]}));
    let spans: Vec<Value> = given["spans"].as_array().expect("spans").iter().map(span).collect();
    json!({"resource": {"attributes": all}, "scopeSpans": [{"scope": scope, "spans": spans}]})
}

fn case(sequences: &[Sequence]) -> Case {
    let mut config = json!({
        "receivers": {"otlp": {"protocols": {"http": {"endpoint": "$HTTP"}}}},
        "processors": {"resource": {"attributes": [{"key": "case", "action": "delete"}]}},
        "service": {"telemetry": {"metrics": {"level": "none"}, "logs": {"level": "error"}}}
    });
    for Sequence { name, config: own, .. } in sequences {
        let connector = format!("span_metrics/{name}");
        let (filter, file) = (format!("filter/{name}"), format!("file/{name}"));
        let condition = format!("resource.attributes[\"case\"] != \"{name}\"");
        config["processors"][&filter] = json!({"error_mode": "propagate", "traces": {"span": [condition]}});
        config["connectors"][&connector] = own.clone();
        config["exporters"][&file] = json!({"path": format!("$OUT/{name}.jsonl"), "flush_interval": "20ms"});
        let pipelines = &mut config["service"]["pipelines"];
        pipelines[format!("traces/{name}")] =
            json!({"receivers": ["otlp"], "processors": [filter, "resource"], "exporters": [connector]});
        pipelines[format!("metrics/{name}")] = json!({"receivers": [connector], "exporters": [file]});
    }
    Case::new(config.to_string())
}

fn lines(side: &Side, name: &str) -> Vec<Value> {
    json_lines_so_far(&side.path(&format!("{name}.jsonl")))
}

/// How many lines each case has written, counted as they come.
struct Counts {
    files: Vec<(u64, usize)>,
}

impl Counts {
    fn now(&mut self, side: &Side, sequences: &[Sequence]) -> Vec<usize> {
        for (sequence, (place, count)) in sequences.iter().zip(&mut self.files) {
            let mut new = Vec::new();
            if let Ok(mut file) = fs::File::open(side.path(&format!("{}.jsonl", sequence.name))) {
                file.seek(SeekFrom::Start(*place)).expect("seeks");
                file.read_to_end(&mut new).expect("reads");
            }
            *place += new.len() as u64;
            *count += new.split(|byte| *byte == b'\n').count() - 1;
        }
        self.files.iter().map(|(_, count)| *count).collect()
    }

    /// Waits until each case has so many lines more than it has now.
    async fn wait(&mut self, side: &Side, sequences: &[Sequence], more: usize) -> Vec<usize> {
        let before = self.now(side, sequences);
        eventually_async("a flush of each case", async || {
            let now = self.now(side, sequences);
            now.iter().zip(&before).all(|(now, before)| *now >= before + more).then_some(now)
        })
        .await
    }
}

/// A line without what differs from flush to flush: times, and values of sums, which the reference says one flush
/// later.
fn outline(node: &mut Value) {
    match node {
        Value::Object(map) => {
            map.retain(|key, _| !key.ends_with("UnixNano"));
            if let Some(points) = map.get_mut("sum").and_then(|sum| sum.get_mut("dataPoints")?.as_array_mut()) {
                for point in points {
                    point["asInt"] = json!("*");
                }
            }
            map.values_mut().for_each(outline);
        }
        Value::Array(items) => items.iter_mut().for_each(outline),
        _ => {}
    }
}

/// Adds what a case wrote to the record: `ends` has how many lines it had at the start and after each step.
fn record(side: &mut Side, sequence: &Sequence, lines: &[Value], ends: &[usize]) {
    let name = &sequence.name;
    let steps = sequence.steps.len();
    let said = if sequence.delta {
        // Every point of a delta counts: all lines that have any.
        lines[..ends[steps]].iter().filter(|line| line.get("resourceMetrics").is_some()).cloned().collect()
    } else {
        (1..=steps)
            .filter(|step| !sequence.only_last || *step == steps)
            .map(|step| lines[ends[step] - 1].clone())
            .collect()
    };
    // As one message: that a start is the same from step to step shows.
    let said = side.normalised(Value::Array(said));
    side.row(json!({name: said}));
    if sequence.only_last || sequence.delta {
        return;
    }
    let mut former = vec![json!({})];
    for step in 0..steps {
        let mut outlines: Vec<Value> = lines[ends[step]..ends[step + 1]].to_vec();
        for line in &mut outlines {
            outline(line);
        }
        let mut outlines: Vec<Value> = outlines.into_iter().map(|line| side.normalised(line)).collect();
        // A flush may still have come before the step's spans.
        outlines.retain(|outline| !former.contains(outline));
        outlines.sort_by_key(ToString::to_string);
        outlines.dedup();
        former.clone_from(&outlines);
        former.push(json!({}));
        side.row(json!({format!("outlines of {name} {step}"): outlines}));
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_sequence() {
    let sequences = read();
    both(case(&sequences), async |side| {
        let mut counts = Counts { files: vec![(0, 0); sequences.len()] };
        let longest = sequences.iter().map(|sequence| sequence.steps.len()).max().expect("cases");
        let mut ends = vec![counts.wait(side, &sequences, 1).await];
        for step in 0..longest {
            let of = |sequence: &Sequence| -> Vec<Value> {
                let resources = sequence.steps.get(step).and_then(Value::as_array).into_iter().flatten();
                resources.map(|given| resource(&sequence.name, given)).collect()
            };
            let resources: Vec<Value> = sequences.iter().flat_map(of).collect();
            let bytes = json!({"resourceSpans": resources}).to_string().into_bytes();
            let body = Body { content_type: "application/json", encoding: None, bytes };
            side.post_for_code("/v1/traces", body).await;
            ends.push(counts.wait(side, &sequences, LINES).await);
        }
        for (place, sequence) in sequences.iter().enumerate() {
            let ends: Vec<usize> = ends.iter().map(|step| step[place]).collect();
            let lines = lines(side, &sequence.name);
            record(side, sequence, &lines, &ends);
        }
    })
    .await;
}
