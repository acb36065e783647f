//! OTLP/JSON, as both collectors write it, in the shape that assertions want.

use std::collections::BTreeMap;

use serde_json::Value;

/// Everything that a collector has written.
pub struct Telemetry {
    traces: Vec<Value>,
    metrics: Vec<Value>,
    logs: Vec<Value>,
}

/// A span with the attributes of its resource.
#[derive(Clone, Debug)]
pub struct Span {
    pub resource: BTreeMap<String, Value>,
    pub trace_id: String,
    pub id: String,
    /// Empty for a root.
    pub parent: String,
    pub name: String,
    pub attributes: BTreeMap<String, Value>,
    /// Trace and span id of each link.
    pub links: Vec<(String, String)>,
}

/// A metric of one resource in one batch.
#[derive(Clone, Debug)]
pub struct Metric {
    pub resource: BTreeMap<String, Value>,
    pub name: String,
    pub unit: String,
    /// `gauge`, `sum`, `histogram`, `exponentialHistogram` or `summary`.
    pub kind: &'static str,
    /// A sum that only grows.
    pub monotonic: bool,
    /// The data points as they are written.
    pub points: Vec<Value>,
}

impl Span {
    /// Who made it: `service.name.override`, since `service.name` is the same for all.
    pub fn producer(&self) -> &str {
        producer(&self.resource)
    }
}

impl Metric {
    /// Who made it.
    pub fn producer(&self) -> &str {
        producer(&self.resource)
    }
}

fn producer(resource: &BTreeMap<String, Value>) -> &str {
    resource.get("service.name.override").and_then(Value::as_str).unwrap_or_default()
}

/// A list of OTLP attributes as a map; values without their kind, integers as the text that OTLP/JSON has for them.
pub fn attributes(list: &Value) -> BTreeMap<String, Value> {
    items(list)
        .map(|pair| {
            let value = pair["value"].as_object().and_then(|kinds| kinds.values().next()).cloned();
            (text(&pair["key"]), value.unwrap_or_default())
        })
        .collect()
}

fn items(list: &Value) -> impl Iterator<Item = &Value> {
    list.as_array().into_iter().flatten()
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

impl Telemetry {
    /// From the lines of the three files.
    pub fn new(traces: Vec<Value>, metrics: Vec<Value>, logs: Vec<Value>) -> Self {
        Self { traces, metrics, logs }
    }

    /// The same but for the metrics of one producer, which stand in lines of their own.
    pub fn without(&self, producer: &str) -> Self {
        let of_producer = |resource: &Value| {
            attributes(&resource["resource"]["attributes"]).get("service.name.override") == Some(&Value::from(producer))
        };
        let metrics = self.metrics.iter().filter(|line| !items(&line["resourceMetrics"]).any(of_producer));
        Self::new(self.traces.clone(), metrics.cloned().collect(), self.logs.clone())
    }

    /// The attributes of every resource, with the name of its signal.
    pub fn resources(&self) -> Vec<(&'static str, BTreeMap<String, Value>)> {
        let signals = [
            ("traces", &self.traces, "resourceSpans"),
            ("metrics", &self.metrics, "resourceMetrics"),
            ("logs", &self.logs, "resourceLogs"),
        ];
        let mut found = Vec::new();
        for (signal, lines, key) in signals {
            for resource in lines.iter().flat_map(|line| items(&line[key])) {
                found.push((signal, attributes(&resource["resource"]["attributes"])));
            }
        }
        found
    }

    /// All spans.
    pub fn spans(&self) -> Vec<Span> {
        let mut found = Vec::new();
        for resource in self.traces.iter().flat_map(|line| items(&line["resourceSpans"])) {
            let of_resource = attributes(&resource["resource"]["attributes"]);
            for span in items(&resource["scopeSpans"]).flat_map(|scope| items(&scope["spans"])) {
                found.push(Span {
                    resource: of_resource.clone(),
                    trace_id: text(&span["traceId"]),
                    id: text(&span["spanId"]),
                    parent: text(&span["parentSpanId"]),
                    name: text(&span["name"]),
                    attributes: attributes(&span["attributes"]),
                    links: items(&span["links"]).map(|link| (text(&link["traceId"]), text(&link["spanId"]))).collect(),
                });
            }
        }
        found
    }

    /// All spans by trace id.
    pub fn spans_by_trace(&self) -> BTreeMap<String, Vec<Span>> {
        let mut traces: BTreeMap<String, Vec<Span>> = BTreeMap::new();
        for span in self.spans() {
            traces.entry(span.trace_id.clone()).or_default().push(span);
        }
        traces
    }

    /// All metrics.
    pub fn metrics(&self) -> Vec<Metric> {
        let mut found = Vec::new();
        for resource in self.metrics.iter().flat_map(|line| items(&line["resourceMetrics"])) {
            let of_resource = attributes(&resource["resource"]["attributes"]);
            for metric in items(&resource["scopeMetrics"]).flat_map(|scope| items(&scope["metrics"])) {
                for kind in ["gauge", "sum", "histogram", "exponentialHistogram", "summary"] {
                    if let Some(data) = metric.get(kind) {
                        found.push(Metric {
                            resource: of_resource.clone(),
                            name: text(&metric["name"]),
                            unit: text(&metric["unit"]),
                            kind,
                            monotonic: data["isMonotonic"] == true,
                            points: items(&data["dataPoints"]).cloned().collect(),
                        });
                    }
                }
            }
        }
        found
    }

    /// The metrics of that name.
    pub fn metrics_named(&self, name: &str) -> Vec<Metric> {
        self.metrics().into_iter().filter(|metric| metric.name == name).collect()
    }

    /// The bodies of all log records, with who wrote each.
    pub fn log_bodies(&self) -> Vec<(String, String)> {
        let mut found = Vec::new();
        for resource in self.logs.iter().flat_map(|line| items(&line["resourceLogs"])) {
            let of_resource = attributes(&resource["resource"]["attributes"]);
            for record in items(&resource["scopeLogs"]).flat_map(|scope| items(&scope["logRecords"])) {
                found.push((producer(&of_resource).to_owned(), text(&record["body"]["stringValue"])));
            }
        }
        found
    }
}
