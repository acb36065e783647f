//! The counts: spans find their series.

use std::sync::Arc;

use bytes::Bytes;
use indexmap::IndexMap;

use super::config::{BUILT_IN, Settings, Temporality};
use super::dimensions::{Found, List, Plan, Values};
use super::flush::Starts;
use super::resources::{OfResource, Resources};
use super::series::{Durations, Exemplar, OVERFLOW, Series, Table};
use super::trace_state::Counts;
use crate::otlp::wire::{Writer, fields};
use crate::otlp::{
    AnyValue, Items, KeyValue, Payload, Records, Resource, SPAN_KINDS, STATUS_CODES, SpanView, ValueView,
};

/// All counts of one connector.
pub(super) struct Aggregator {
    pub(super) settings: Settings,
    plan: Plan,
    instance: String,
    pub(super) resources: Resources,
    pub(super) starts: Starts,
    key: Vec<u8>,
    /// Whether there were spans since the last flush.
    pub(super) changed: bool,
}

/// What spans of one scope have in common.
struct Surrounding<'s> {
    service: &'s [u8],
    /// Name and version, where they are shown.
    scope: Option<(&'s [u8], &'s [u8])>,
    now: u64,
}

impl Aggregator {
    /// No counts yet. `instance` tells this connector from others that count for the same resources.
    pub fn new(mut settings: Settings, instance: String) -> Self {
        let plan = Plan::new(std::mem::take(&mut settings.dimensions));
        let (resources, starts) = (Resources::new(settings.resources), Starts::new(settings.timestamps));
        Self { settings, plan, instance, resources, starts, key: Vec::new(), changed: false }
    }

    /// Whether spans came since the last flush.
    pub fn changed(&self) -> bool {
        self.changed
    }

    /// Counts the spans of a payload at the time `now` (nanoseconds since the epoch). Spans of a resource without a
    /// `service.name` do not count.
    pub fn take(&mut self, payload: &Payload, now: u64) {
        let mut counts = Counts::default();
        for entry in &payload.resources {
            let Some(service) = entry.resource.get("service.name") else { continue };
            let service = if let AnyValue::String(service) = service { service.as_bytes() } else { &[] };
            let key = resource_key(&entry.resource, &self.settings.resource_key);
            let separate = !(self.plan.is_empty(List::Calls) && self.plan.is_empty(List::Durations));
            let Some(of) = self.resources.get(&key, || new_resource(&entry.resource, separate, now)) else { continue };
            of.last_seen = now;
            let around = self.plan.surroundings(&entry.resource);
            let mut own = Vec::new();
            for scope in &entry.scopes {
                let Items::Records(spans) = &scope.items else { continue };
                let scope = shown_scope(&scope.scope, &self.settings.scopes);
                self.changed |= !spans.is_empty();
                let surrounding = Surrounding { service, scope, now };
                let counting = Counting {
                    settings: &self.settings,
                    plan: &self.plan,
                    instance: &self.instance,
                    surrounding: &surrounding,
                };
                count_spans(&counting, spans, of, &around, &mut own, &mut counts, &mut self.key);
            }
        }
    }
}

fn new_resource(resource: &Resource, separate: bool, now: u64) -> OfResource {
    // Its attributes alone are handed on. The bytes of the request are not kept for them.
    let resource = Resource { attributes: resource.attributes.clone(), ..Resource::default() }.detached();
    OfResource {
        resource: Arc::new(resource),
        calls: Table::default(),
        durations: separate.then(Table::default),
        events: Table::default(),
        last_seen: now,
    }
}

fn count_spans<'a>(
    counting: &Counting<'_>,
    spans: &'a Records,
    of: &mut OfResource,
    around: &super::dimensions::Surroundings<'_>,
    own: &mut Vec<Option<ValueView<'a>>>,
    counts: &mut Counts,
    key: &mut Vec<u8>,
) {
    let Counting { settings, plan, .. } = *counting;
    let unit = settings.unit.nanoseconds();
    let mut merged = Vec::new();
    for message in spans.iter() {
        let span = SpanView::new(message);
        let (count, sampled) = counts.of(span.trace_state);
        plan.own(&span, own);
        let nanoseconds = span.end_time_unix_nano.saturating_sub(span.start_time_unix_nano);
        let duration = nanoseconds as f64 / unit;
        let exemplar = settings.exemplars.and_then(|most| exemplar(&span, duration, most));
        let one = Counted { values: Values { span: &span, own, around }, sampled, count, exemplar };

        let shape = settings.histogram.as_ref();
        let durations = if of.durations.is_none() { shape } else { None };
        let make = || durations.map(Durations::new);
        let series = counting.count(&mut of.calls, List::Calls, &one, key, make);
        if let (Some(shape), Some(durations)) = (shape, &mut series.durations) {
            durations.observe(duration, count, shape);
        }
        if let (Some(shape), Some(table)) = (shape, &mut of.durations) {
            let series = counting.count(table, List::Durations, &one, key, || Some(Durations::new(shape)));
            if let Some(durations) = &mut series.durations {
                durations.observe(duration, count, shape);
            }
        }
        if settings.events {
            for event in span.events() {
                let around = plan.around_event(around, event.attributes(), &mut merged);
                let one = Counted { values: Values { around: &around, ..one.values }, ..one };
                counting.count(&mut of.events, List::Events, &one, key, || None);
            }
        }
    }
}

/// How spans of one scope are counted.
struct Counting<'c> {
    settings: &'c Settings,
    plan: &'c Plan,
    instance: &'c str,
    surrounding: &'c Surrounding<'c>,
}

/// One span or event to be counted.
#[derive(Clone, Copy)]
struct Counted<'v, 'a> {
    values: Values<'v, 'a>,
    sampled: bool,
    count: u64,
    exemplar: Option<Exemplar>,
}

impl Counting<'_> {
    /// Counts one in its series, which is returned.
    fn count<'t>(
        &self,
        table: &'t mut Table,
        list: List,
        one: &Counted<'_, '_>,
        key: &mut Vec<u8>,
        durations: impl FnOnce() -> Option<Durations>,
    ) -> &'t mut Series {
        self.write_key(key, list, one);
        let now = self.surrounding.now;
        let make = |rest: bool| {
            let attributes = if rest { overflow_attributes() } else { self.attributes(list, one) };
            Series::new(attributes, now, durations())
        };
        let (series, rest) = table.find(key, self.settings.cardinality_limit, now, make);
        series.count = series.count.saturating_add(one.count);
        if let (Some(exemplar), false) = (one.exemplar, rest)
            && self.settings.exemplars.is_some_and(|most| series.exemplars.len() < most)
        {
            series.exemplars.push(exemplar);
        }
        series
    }

    /// Writes what tells the series from others.
    fn write_key(&self, key: &mut Vec<u8>, list: List, one: &Counted<'_, '_>) {
        key.clear();
        for (_, value) in self.built_in(one) {
            key.extend_from_slice(value);
            key.push(0);
        }
        for list in [List::Common, list] {
            self.plan.each(list, &one.values, |name, value| {
                key.extend_from_slice(name);
                key.push(b':');
                value.write_text(key);
                key.push(0);
            });
        }
        if self.settings.sampling_method {
            key.push(u8::from(one.sampled));
        }
    }

    /// The built-in attributes that are not excluded, but for the instance.
    fn built_in<'v>(&'v self, one: &Counted<'v, '_>) -> impl Iterator<Item = (&'static str, &'v [u8])> {
        let span = one.values.span;
        let values = [
            self.surrounding.service,
            span.name,
            word(SPAN_KINDS, span.kind).as_bytes(),
            word(STATUS_CODES, span.status_code).as_bytes(),
        ];
        let excluded = self.settings.excluded;
        let all = BUILT_IN.into_iter().zip(values).zip(excluded);
        all.filter(|(_, excluded)| !*excluded).map(|(pair, _)| pair)
    }

    /// The attributes of a new series. A name that comes twice has the value that came last.
    fn attributes(&self, list: List, one: &Counted<'_, '_>) -> Bytes {
        let mut list_of: IndexMap<Vec<u8>, Vec<u8>> = IndexMap::new();
        let mut put = |name: &[u8], value: Found<'_>| {
            let mut writer = Writer::new();
            value.encode(&mut writer);
            list_of.insert(name.to_vec(), writer.into_vec());
        };
        let text = |value| Found::View(ValueView::String(value));
        for (name, value) in self.built_in(one) {
            put(name.as_bytes(), text(value));
        }
        if !self.settings.excluded[4] {
            put(BUILT_IN[4].as_bytes(), text(self.instance.as_bytes()));
        }
        if let Some((name, version)) = self.surrounding.scope {
            put(b"span.instrumentation.scope.name", text(name));
            if !version.is_empty() {
                put(b"span.instrumentation.scope.version", text(version));
            }
        }
        if self.settings.sampling_method {
            put(b"sampling.method", text(if one.sampled { b"extrapolated" } else { b"counted" }));
        }
        for list in [List::Common, list] {
            self.plan.each(list, &one.values, &mut put);
        }
        let mut writer = Writer::new();
        for (name, value) in list_of {
            write_attribute(&mut writer, &name, &value);
        }
        writer.into_bytes()
    }
}

fn write_attribute(writer: &mut Writer, name: &[u8], value: &[u8]) {
    writer.message_field(7, |attribute| {
        attribute.bytes_field(1, name);
        attribute.bytes_field(2, value);
    });
}

fn overflow_attributes() -> Bytes {
    let mut value = Writer::new();
    value.bool_field(2, true);
    let mut writer = Writer::new();
    write_attribute(&mut writer, OVERFLOW.as_bytes(), value.as_slice());
    writer.into_bytes()
}

/// A span as an exemplar, if exemplars are kept at all and it has a trace.
fn exemplar(span: &SpanView<'_>, duration: f64, most: usize) -> Option<Exemplar> {
    let trace_id: [u8; 16] = span.trace_id.try_into().ok()?;
    let span_id = span.span_id.try_into().unwrap_or_default();
    (most > 0 && trace_id != [0; 16]).then_some(Exemplar { trace_id, span_id, duration })
}

/// Name and version of a scope, if its name is among those that are shown.
fn shown_scope<'s>(scope: &'s [u8], shown: &[String]) -> Option<(&'s [u8], &'s [u8])> {
    if shown.is_empty() {
        return None;
    }
    let (mut name, mut version) = (&[][..], &[][..]);
    for (number, value) in fields(scope) {
        match number {
            1 => name = value.bytes(),
            2 => version = value.bytes(),
            _ => {}
        }
    }
    let listed = !name.is_empty() && shown.iter().any(|shown| shown.as_bytes() == name);
    listed.then_some((name, version))
}

/// What tells resources apart: their attributes (or only some of them), in any order.
fn resource_key(resource: &Resource, only: &[String]) -> Vec<u8> {
    let counts = |attribute: &&KeyValue| only.is_empty() || only.iter().any(|name| attribute.key == **name);
    let mut attributes: Vec<Vec<u8>> = resource
        .attributes
        .iter()
        .filter(counts)
        .map(|attribute| {
            let mut writer = Writer::new();
            match ordered(&attribute.value) {
                Some(value) => KeyValue { key: attribute.key.clone(), value }.encode(&mut writer),
                None => attribute.encode(&mut writer),
            }
            let mut framed = Writer::new();
            framed.bytes_field(1, writer.as_slice());
            framed.into_vec()
        })
        .collect();
    attributes.sort_unstable();
    attributes.concat()
}

/// A list or map with the entries of all maps in it in one order, since their order says nothing.
fn ordered(value: &AnyValue) -> Option<AnyValue> {
    let inner = |value: &AnyValue| ordered(value).unwrap_or_else(|| value.clone());
    match value {
        AnyValue::Array(items) => Some(AnyValue::Array(items.iter().map(inner).collect())),
        AnyValue::Map(entries) => {
            let entry = |entry: &KeyValue| KeyValue { key: entry.key.clone(), value: inner(&entry.value) };
            let mut entries: Vec<KeyValue> = entries.iter().map(entry).collect();
            entries.sort_by(|a, b| a.key.as_bytes().cmp(b.key.as_bytes()));
            Some(AnyValue::Map(entries))
        }
        _ => None,
    }
}

/// The word for an enum value; nothing for one that the specification does not have.
fn word<'a>(words: &[&'a str], value: i32) -> &'a str {
    usize::try_from(value).ok().and_then(|value| words.get(value)).copied().unwrap_or_default()
}

/// Whether counts begin anew with each flush.
pub(super) fn is_delta(settings: &Settings) -> bool {
    settings.temporality == Temporality::Delta
}
