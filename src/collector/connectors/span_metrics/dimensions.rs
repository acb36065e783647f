//! Dimensions: attributes that tell series apart, by name or by pattern.

use std::ops::Range;

use indexmap::IndexMap;

use crate::collector::text::glob::Glob;
use crate::collector::text::value_text::as_text;
use crate::otlp::wire::Writer;
use crate::otlp::{AnyValue, Attributes, KeyValue, Resource, SpanView, ValueView};

/// A list of dimensions.
#[derive(Clone, Debug, Default)]
pub(super) struct Dimensions {
    /// Those by name, in order.
    pub named: Vec<Named>,
    /// Those by pattern.
    pub globs: Vec<Glob>,
}

/// A dimension by name: an attribute of a span, else of its event, else of its resource.
#[derive(Clone, Debug)]
pub(super) struct Named {
    /// The name.
    pub name: String,
    /// Its value where nobody has it; without one the attribute is left out.
    pub default: Option<AnyValue>,
}

/// The lists of a connector: one for all its metrics, and one more for each of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum List {
    Common,
    Calls,
    Durations,
    Events,
}

/// All lists. The named dimensions stand in one row, so that a span's attributes are gone through once.
#[derive(Debug)]
pub(super) struct Plan {
    named: Vec<Named>,
    ranges: [Range<usize>; 4],
    globs: [Vec<Glob>; 4],
}

impl Plan {
    /// Puts the lists together, in the order of [`List`].
    pub fn new(lists: [Dimensions; 4]) -> Self {
        let mut named = Vec::new();
        let mut ranges: [Range<usize>; 4] = Default::default();
        let mut globs: [Vec<Glob>; 4] = Default::default();
        for (place, list) in lists.into_iter().enumerate() {
            let start = named.len();
            named.extend(list.named);
            ranges[place] = start..named.len();
            globs[place] = list.globs;
        }
        Self { named, ranges, globs }
    }

    /// Whether a list has no dimensions.
    pub fn is_empty(&self, list: List) -> bool {
        self.ranges[list as usize].is_empty() && self.globs[list as usize].is_empty()
    }

    /// What spans of this resource have where they say nothing themselves.
    pub fn surroundings<'r>(&self, resource: &'r Resource) -> Surroundings<'r> {
        self.around(&resource.attributes)
    }

    fn around<'r>(&self, attributes: &'r [KeyValue]) -> Surroundings<'r> {
        let value = |dimension: &Named| {
            let found = attributes.iter().find(|attribute| attribute.key == *dimension.name);
            found.map(|attribute| attribute.value.clone()).or_else(|| dimension.default.clone())
        };
        Surroundings { values: self.named.iter().map(value).collect(), attributes }
    }

    /// The same around an event with these attributes, which stand before those of the resource. `merged` keeps both.
    pub fn around_event<'m>(
        &self,
        surroundings: &Surroundings<'_>,
        event: Attributes<'_>,
        merged: &'m mut Vec<KeyValue>,
    ) -> Surroundings<'m> {
        // Of equal keys of the event the last one counts, in the place of the first one of the resource.
        let mut own: IndexMap<&[u8], AnyValue> = event.iter().map(|(name, value)| (name, value.to_value())).collect();
        merged.clear();
        merged.extend(surroundings.attributes.iter().map(|attribute| {
            let value = own.swap_remove(attribute.key.as_bytes());
            KeyValue { key: attribute.key.clone(), value: value.unwrap_or_else(|| attribute.value.clone()) }
        }));
        let rest = own.into_iter();
        merged.extend(rest.map(|(name, value)| KeyValue::new(bytes::Bytes::copy_from_slice(name), value)));
        self.around(merged)
    }

    /// The span's own values of all named dimensions; the first attribute of a name counts.
    pub fn own<'a>(&self, span: &SpanView<'a>, own: &mut Vec<Option<ValueView<'a>>>) {
        own.clear();
        own.resize(self.named.len(), None);
        if own.is_empty() {
            return;
        }
        let wanted = |name: &[u8]| self.named.iter().any(|dimension| dimension.name.as_bytes() == name);
        for (name, value) in span.attributes().wanted(wanted) {
            for (dimension, place) in self.named.iter().zip(own.iter_mut()) {
                if place.is_none() && dimension.name.as_bytes() == name {
                    *place = Some(value);
                }
            }
        }
    }

    /// Shows names and values of a list, in an order that depends on nothing else.
    pub fn each(&self, list: List, of: &Values<'_, '_>, mut show: impl FnMut(&[u8], Found<'_>)) {
        for place in self.ranges[list as usize].clone() {
            let name = self.named[place].name.as_bytes();
            match (&of.own[place], &of.around.values[place]) {
                (Some(value), _) => show(name, Found::View(*value)),
                (None, Some(value)) => show(name, Found::Value(value)),
                (None, None) => {}
            }
        }
        let globs = self.globs[list as usize].as_slice();
        if globs.is_empty() {
            return;
        }
        let matches = |name: &[u8]| {
            let name = String::from_utf8_lossy(name);
            globs.iter().any(|glob| glob.is_match(&name))
        };
        let mut of_span: Vec<(&[u8], ValueView<'_>)> = of.span.attributes().iter().collect();
        of_span.sort_by_key(|(name, _)| *name);
        of_span.dedup_by_key(|(name, _)| *name);
        let mut around: Vec<&KeyValue> = of.around.attributes.iter().collect();
        around.retain(|attribute| of_span.binary_search_by_key(&attribute.key.as_bytes(), |(name, _)| *name).is_err());
        around.sort_by_key(|attribute| attribute.key.as_bytes());
        around.dedup_by_key(|attribute| attribute.key.as_bytes());
        for (name, value) in of_span.into_iter().filter(|(name, _)| matches(name)) {
            show(name, Found::View(value));
        }
        for attribute in around.into_iter().filter(|attribute| matches(attribute.key.as_bytes())) {
            show(attribute.key.as_bytes(), Found::Value(&attribute.value));
        }
    }
}

/// What is around a span: of its resource, or of one of its events and the resource.
#[derive(Debug)]
pub(super) struct Surroundings<'r> {
    /// The value of each named dimension for spans that do not have it themselves.
    values: Vec<Option<AnyValue>>,
    attributes: &'r [KeyValue],
}

/// Where values are looked for.
#[derive(Clone, Copy)]
pub(super) struct Values<'v, 'a> {
    pub span: &'v SpanView<'a>,
    /// See [`Plan::own`].
    pub own: &'v [Option<ValueView<'a>>],
    pub around: &'v Surroundings<'v>,
}

/// A value of the span, or of what is around it.
#[derive(Clone, Copy)]
pub(super) enum Found<'v> {
    View(ValueView<'v>),
    Value(&'v AnyValue),
}

impl Found<'_> {
    /// Writes the content of an `AnyValue` message.
    pub fn encode(self, writer: &mut Writer) {
        match self {
            Self::View(value) => value.encode(writer),
            Self::Value(value) => value.encode(writer),
        }
    }

    /// Writes the value as text: 1 and "1" are the same.
    pub fn write_text(self, key: &mut Vec<u8>) {
        match self {
            Self::View(ValueView::String(text)) => key.extend_from_slice(text),
            Self::View(ValueView::Empty) | Self::Value(AnyValue::Empty) => {}
            Self::View(value) => key.extend_from_slice(as_text(&value.to_value()).as_bytes()),
            Self::Value(AnyValue::String(text)) => key.extend_from_slice(text.as_bytes()),
            Self::Value(value) => key.extend_from_slice(as_text(value).as_bytes()),
        }
    }
}
