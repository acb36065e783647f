//! One request or batch as the collector carries it: resources and metric names decoded, items as
//! shared slices of the received wire form, validated once when they come in.
//!
//! The three signals have the same shape on the wire: a request is a list (1) of a resource (1) with a
//! list (2) of scopes and a schema URL (3); a scope is a scope (1) with a list (2) of items and a
//! schema URL (3). So they are one type here.

use std::ops::Range;
use std::sync::Arc;

use bytes::Bytes;

use super::metric::Metric;
use super::records::{Items, Records};
use super::resource::Resource;
use super::schema::{self, Message};
use super::validate::{DecodeError, validate};
use super::value::{KeyValue, Text, slice};
use super::wire::{Reader, Value, Writer, varint_size};

/// What a payload is made of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Signal {
    /// Spans.
    Traces,
    /// Data points.
    Metrics,
    /// Log records.
    Logs,
}

impl Signal {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Traces, Self::Metrics, Self::Logs];

    /// `traces`, `metrics` or `logs`, as configurations and paths say it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Traces => "traces",
            Self::Metrics => "metrics",
            Self::Logs => "logs",
        }
    }

    /// The type of the items.
    pub(super) fn item(self) -> &'static Message {
        match self {
            Self::Traces => &schema::SPAN,
            Self::Metrics => &schema::METRIC,
            Self::Logs => &schema::LOG_RECORD,
        }
    }

    /// No items of this signal.
    pub(super) fn no_items(self) -> Items {
        match self {
            Self::Metrics => Items::Metrics(Vec::new()),
            Self::Traces | Self::Logs => Items::Records(Records::default()),
        }
    }
}

/// One request or batch. Cloning copies the lists and shares what is in them.
#[derive(Debug, Clone)]
pub struct Payload {
    /// What it is made of.
    pub signal: Signal,
    /// The resources in the order of the sender.
    pub resources: Vec<ResourceItems>,
}

/// A resource and what was recorded about it.
#[derive(Debug, Clone, Default)]
pub struct ResourceItems {
    /// The resource; edit through `Arc::make_mut`.
    pub resource: Arc<Resource>,
    /// Where the resource's conventions are described; often empty.
    pub schema_url: Text,
    /// The scopes in the order of the sender.
    pub scopes: Vec<ScopeItems>,
}

/// A scope and what it recorded.
#[derive(Debug, Clone)]
pub struct ScopeItems {
    /// The `InstrumentationScope` message in wire form; see [`encode_scope`].
    pub scope: Bytes,
    /// Where the items' conventions are described; often empty.
    pub schema_url: Text,
    /// The items, of the kind that the payload's signal says.
    pub items: Items,
}

/// An `InstrumentationScope` message.
#[must_use]
pub fn encode_scope(name: &str, version: &str, attributes: &[KeyValue]) -> Bytes {
    let mut writer = Writer::new();
    for (number, text) in [(1, name), (2, version)] {
        if !text.is_empty() {
            writer.bytes_field(number, text.as_bytes());
        }
    }
    for attribute in attributes {
        writer.message_field(3, |inner| attribute.encode(inner));
    }
    writer.into_bytes()
}

impl Payload {
    /// An empty payload.
    #[must_use]
    pub fn new(signal: Signal) -> Self {
        Self { signal, resources: Vec::new() }
    }

    /// Reads and checks an export request in wire form; the payload shares its bytes.
    pub fn decode(signal: Signal, request: impl Into<Bytes>) -> Result<Self, DecodeError> {
        let whole = request.into();
        let mut payload = Self::new(signal);
        each_field("request", &whole, |number, value, _, _| {
            if number == 1 {
                payload.resources.push(decode_resource_items(signal, &whole, message(value, "request", "resources")?)?);
            }
            Ok(())
        })?;
        Ok(payload)
    }

    /// The export request in wire form.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        let mut parts = self.encode_parts();
        if parts.len() > 1 { parts.concat() } else { parts.pop().map(Vec::from).unwrap_or_default() }
    }

    /// The same in parts, one after the other, that hold nothing but what is in them: whoever has dealt with one can let go
    /// of it.
    #[must_use]
    pub fn into_parts(self) -> Vec<Bytes> {
        self.encode_parts()
    }

    /// Long runs of items are shared, the rest is written anew.
    fn encode_parts(&self) -> Vec<Bytes> {
        let mut parts = Parts::default();
        for entry in &self.resources {
            let mut resource = Writer::new();
            resource.message_field(1, |inner| entry.resource.encode(inner));
            let scopes: Vec<usize> = entry.scopes.iter().map(ScopeItems::size).collect();
            let content = scopes.iter().map(|size| 1 + varint_size(*size as u64) + size).sum::<usize>();
            parts.writer.message_header(1, resource.len() + content + text_size(&entry.schema_url));
            parts.writer.raw(resource.as_slice());
            for (scope, size) in entry.scopes.iter().zip(scopes) {
                parts.writer.message_header(2, size);
                scope.encode(&mut parts);
            }
            encode_text(&mut parts.writer, &entry.schema_url);
        }
        parts.finish()
    }

    /// About how many bytes it takes in wire form, without writing it.
    #[must_use]
    pub fn size(&self) -> usize {
        let of_entry = |entry: &ResourceItems| {
            let scopes: usize = entry.scopes.iter().map(|scope| 4 + scope.size()).sum();
            scopes + entry.resource.size() + text_size(&entry.schema_url) + 4
        };
        self.resources.iter().map(of_entry).sum()
    }

    /// The same with memory of its own: it keeps nothing of the requests alive that it was a part of.
    #[must_use]
    pub fn detached(self) -> Self {
        // What it is made of is valid.
        Self::decode(self.signal, self.encode()).unwrap_or(self)
    }

    /// Spans, log records, or data points (not metrics).
    #[must_use]
    pub fn item_count(&self) -> usize {
        self.resources.iter().flat_map(|entry| &entry.scopes).map(|scope| scope.items.count()).sum()
    }
}

impl ScopeItems {
    fn size(&self) -> usize {
        let items = match &self.items {
            Items::Records(records) => records.size(),
            Items::Metrics(metrics) => metrics.iter().map(Metric::size).sum(),
        };
        1 + varint_size(self.scope.len() as u64) + self.scope.len() + items + text_size(&self.schema_url)
    }

    fn encode(&self, parts: &mut Parts) {
        parts.writer.bytes_field(1, &self.scope);
        match &self.items {
            Items::Records(records) => records.runs().for_each(|run| parts.share(run)),
            Items::Metrics(metrics) => metrics.iter().for_each(|metric| metric.encode(&mut parts.writer)),
        }
        encode_text(&mut parts.writer, &self.schema_url);
    }
}

/// A message in parts.
#[derive(Default)]
struct Parts {
    done: Vec<Bytes>,
    /// The part that is being written.
    writer: Writer,
}

impl Parts {
    /// Below this size it is cheaper to copy.
    const SHARED: usize = 4096;

    fn share(&mut self, fields: &Bytes) {
        if fields.len() < Self::SHARED {
            self.writer.raw(fields);
        } else {
            self.close();
            self.done.push(fields.clone());
        }
    }

    fn close(&mut self) {
        if !self.writer.is_empty() {
            self.done.push(std::mem::take(&mut self.writer).into_bytes());
        }
    }

    fn finish(mut self) -> Vec<Bytes> {
        self.close();
        self.done
    }
}

impl Items {
    /// Spans, log records, or data points.
    #[must_use]
    pub fn count(&self) -> usize {
        match self {
            Self::Records(records) => records.len(),
            Self::Metrics(metrics) => metrics.iter().map(Metric::data_points).sum(),
        }
    }
}

/// The size of a schema URL as field 3; it is left out when empty.
fn text_size(text: &Text) -> usize {
    let length = text.as_bytes().len();
    if length == 0 { 0 } else { 1 + varint_size(length as u64) + length }
}

fn encode_text(writer: &mut Writer, text: &Text) {
    if !text.is_empty() {
        writer.bytes_field(3, text.as_bytes());
    }
}

/// Calls `take` with number, value, start and end of each field.
fn each_field<'a>(
    name: &str,
    bytes: &'a [u8],
    mut take: impl FnMut(u32, Value<'a>, usize, usize) -> Result<(), DecodeError>,
) -> Result<(), DecodeError> {
    let (mut reader, mut start) = (Reader::new(bytes), 0);
    while let Some((number, value)) = reader.read().map_err(|error| DecodeError::wire(name, error))? {
        take(number, value, start, reader.position())?;
        start = reader.position();
    }
    Ok(())
}

/// The bytes of a field that must be length-delimited.
fn message<'a>(value: Value<'a>, message: &str, field: &str) -> Result<&'a [u8], DecodeError> {
    match value {
        Value::Bytes(bytes) => Ok(bytes),
        _ => Err(DecodeError::new(format!("field {field} of {message}: wrong wire type"))),
    }
}

fn decode_resource_items(signal: Signal, whole: &Bytes, bytes: &[u8]) -> Result<ResourceItems, DecodeError> {
    const NAME: &str = "a resource's entry";
    let mut resource = Resource::default();
    let mut entry = ResourceItems::default();
    let mut deprecated = Vec::new();
    each_field(NAME, bytes, |number, value, _, _| {
        match number {
            1 => {
                let bytes = message(value, NAME, "resource")?;
                validate(bytes, &schema::RESOURCE, 2)?;
                resource.merge(whole, bytes);
            }
            2 => entry.scopes.push(decode_scope_items(signal, whole, message(value, NAME, "scopes")?)?),
            3 => entry.schema_url = slice(whole, Value::Bytes(message(value, NAME, "schemaUrl")?)).into(),
            // The scopes of senders from before 2022: taken where there are no others.
            1000 => deprecated.push(decode_scope_items(signal, whole, message(value, NAME, "deprecatedScopes")?)?),
            _ => {}
        }
        Ok(())
    })?;
    if entry.scopes.is_empty() {
        entry.scopes = deprecated;
    }
    entry.resource = Arc::new(resource);
    Ok(entry)
}

fn decode_scope_items(signal: Signal, whole: &Bytes, bytes: &[u8]) -> Result<ScopeItems, DecodeError> {
    const NAME: &str = "a scope's entry";
    let mut entry = ScopeItems { scope: Bytes::new(), schema_url: Text::default(), items: signal.no_items() };
    let item = signal.item();
    // Items that stand side by side become one slice.
    let (mut run, mut count) = (0..0, 0);
    let close = |items: &mut Items, run: Range<usize>, count| {
        if let Items::Records(records) = items {
            records.push_run(slice(whole, Value::Bytes(&bytes[run])), count);
        }
    };
    each_field(NAME, bytes, |number, value, start, end| {
        match number {
            1 => {
                let scope = message(value, NAME, "scope")?;
                validate(scope, &schema::SCOPE, 3)?;
                let first = entry.scope.is_empty();
                entry.scope = if first { slice(whole, value) } else { [&entry.scope, scope].concat().into() };
            }
            2 => {
                let content = message(value, NAME, "items")?;
                validate(content, item, 3)?;
                if let Items::Metrics(metrics) = &mut entry.items {
                    metrics.push(Metric::decode(whole, content));
                } else if start == run.end && count > 0 {
                    (run.end, count) = (end, count + 1);
                } else {
                    close(&mut entry.items, run.clone(), count);
                    (run, count) = (start..end, 1);
                }
            }
            3 => entry.schema_url = slice(whole, Value::Bytes(message(value, NAME, "schemaUrl")?)).into(),
            _ => {}
        }
        Ok(())
    })?;
    close(&mut entry.items, run, count);
    Ok(entry)
}
