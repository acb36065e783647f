//! A payload in parts of some items each, made in one walk over it however many parts it has.

use std::collections::VecDeque;
use std::sync::Arc;

use super::metric::Metric;
use super::payload::{Payload, ResourceItems, ScopeItems, Signal};
use super::records::{Items, Records, Run};
use super::resource::Resource;
use super::value::Text;

/// The parts, in order.
#[derive(Debug)]
pub struct Chunks {
    signal: Signal,
    most: usize,
    rest: VecDeque<Scope>,
}

/// A scope of a resource with what is left of its items.
#[derive(Debug)]
struct Scope {
    /// Which resource's it is, counted from the first.
    entry: usize,
    resource: Arc<Resource>,
    resource_schema: Text,
    /// Without its items.
    about: ScopeItems,
    rest: Rest,
    count: usize,
}

#[derive(Debug)]
enum Rest {
    Records(VecDeque<Run>),
    Metrics(VecDeque<Metric>),
}

impl Payload {
    /// Divides it into parts of `most` items (at least one), the last of which has what is left. Resources and scopes are
    /// repeated where a border goes through them; metrics are divided between their points. Metrics without
    /// points stay beside those that they stand behind; what has nothing at all is left out.
    #[must_use]
    pub fn into_chunks(self, most: usize) -> Chunks {
        let mut rest = VecDeque::new();
        for (entry, ResourceItems { resource, schema_url, scopes }) in self.resources.into_iter().enumerate() {
            for mut about in scopes {
                let items = std::mem::replace(&mut about.items, self.signal.no_items());
                let (resource, resource_schema) = (Arc::clone(&resource), schema_url.clone());
                let count = items.count();
                let metrics = matches!(&items, Items::Metrics(metrics) if !metrics.is_empty());
                if count > 0 || metrics {
                    let scope = Scope { entry, resource, resource_schema, about, rest: items.into(), count };
                    rest.push_back(scope);
                }
            }
        }
        Chunks { signal: self.signal, most: most.max(1), rest }
    }
}

impl Iterator for Chunks {
    type Item = Payload;

    fn next(&mut self) -> Option<Payload> {
        let mut chunk = Payload::new(self.signal);
        let (mut left, mut last) = (self.most, None);
        // What has no points costs nothing, even where the part is full.
        while let Some(scope) = self.rest.front_mut().filter(|scope| left > 0 || scope.count == 0) {
            if last != Some(scope.entry) {
                let (resource, schema_url) = (Arc::clone(&scope.resource), scope.resource_schema.clone());
                chunk.resources.push(ResourceItems { resource, schema_url, scopes: Vec::new() });
                last = Some(scope.entry);
            }
            let taken = left.min(scope.count);
            let mut items = scope.rest.take(taken, self.most);
            scope.count -= taken;
            if let (0, Items::Metrics(metrics), Rest::Metrics(rest)) = (scope.count, &mut items, &mut scope.rest) {
                metrics.extend(rest.drain(..));
            }
            left -= taken;
            let scope = ScopeItems { items, ..scope.about.clone() };
            chunk.resources.last_mut()?.scopes.push(scope);
            if self.rest.front().is_some_and(|scope| scope.count == 0) {
                self.rest.pop_front();
            }
        }
        (!chunk.resources.is_empty()).then_some(chunk)
    }
}

impl From<Items> for Rest {
    fn from(items: Items) -> Self {
        match items {
            Items::Records(records) => Self::Records(records.into_runs().into()),
            Items::Metrics(metrics) => Self::Metrics(metrics.into()),
        }
    }
}

impl Rest {
    /// Takes `count` items from the front. `most`: how many will be taken at once after that.
    fn take(&mut self, count: usize, most: usize) -> Items {
        match self {
            Self::Records(runs) => {
                Items::Records(Records::from_runs(take(runs, count, Run::count, |mut run, left| {
                    let front = run.split_front(left);
                    (front, vec![run])
                })))
            }
            Self::Metrics(metrics) => Items::Metrics(take(metrics, count, Metric::data_points, |metric, left| {
                let mut parts = metric.divide(left, most);
                (parts.remove(0), parts)
            })),
        }
    }
}

/// Takes `left` items from the front; `split` divides what stands at the border into what is taken and what stays.
fn take<T>(
    rest: &mut VecDeque<T>,
    mut left: usize,
    count: impl Fn(&T) -> usize,
    split: impl Fn(T, usize) -> (T, Vec<T>),
) -> Vec<T> {
    let mut taken = Vec::new();
    while left > 0 {
        let Some(first) = rest.pop_front() else { break };
        let size = count(&first);
        if size <= left {
            left -= size;
            taken.push(first);
        } else {
            let (front, stays) = split(first, left);
            stays.into_iter().rev().for_each(|part| rest.push_front(part));
            taken.push(front);
            left = 0;
        }
    }
    taken
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;

    use super::super::wire::{Writer, fields};
    use super::*;

    fn items(payload: &Payload) -> Vec<u64> {
        let mut found = Vec::new();
        for scope in payload.resources.iter().flat_map(|entry| &entry.scopes) {
            match &scope.items {
                Items::Records(records) => found.extend(records.iter().map(value)),
                Items::Metrics(metrics) => {
                    for metric in metrics {
                        let (_, data) = super::super::metric::data(metric.rest()).expect("data");
                        found.extend(
                            fields(data).filter(|(number, _)| *number == 1).map(|(_, point)| value(point.bytes())),
                        );
                    }
                }
            }
        }
        found
    }

    fn value(message: &[u8]) -> u64 {
        fields(message).next().map_or(0, |(_, value)| value.bits())
    }

    fn message(value: u64) -> Vec<u8> {
        let mut writer = Writer::new();
        writer.varint_field(1, value);
        writer.into_vec()
    }

    /// A gauge of these points, with a field beside the data and one beside the points.
    fn gauge(values: std::ops::Range<u64>) -> Metric {
        let (mut data, mut rest) = (Writer::new(), Writer::new());
        for value in values {
            data.bytes_field(1, &message(value));
        }
        data.varint_field(2, 2);
        rest.bytes_field(5, &data.into_vec());
        rest.bytes_field(3, b"s");
        Metric::new("g", rest.into_vec())
    }

    fn entry(scopes: Vec<Items>) -> ResourceItems {
        let scope = |items| ScopeItems { scope: Bytes::new(), schema_url: Text::default(), items };
        ResourceItems { scopes: scopes.into_iter().map(scope).collect(), ..ResourceItems::default() }
    }

    /// Resources, scopes and items of all sizes, one after the other, and some of none.
    fn payloads() -> [Payload; 2] {
        let records = |values: std::ops::Range<u64>| Items::Records(values.map(message).collect());
        let mut traces = Payload::new(Signal::Traces);
        traces.resources = vec![
            entry(vec![records(0..3), records(3..3), records(3..4)]),
            entry(vec![]),
            entry(vec![records(4..11)]),
            entry(vec![records(11..11)]),
            entry(vec![records(11..12), records(12..20)]),
        ];
        let mut metrics = Payload::new(Signal::Metrics);
        metrics.resources = vec![
            entry(vec![Items::Metrics(vec![gauge(0..1), gauge(1..9), gauge(9..9)])]),
            entry(vec![Items::Metrics(vec![gauge(9..10)]), Items::Metrics(vec![gauge(10..20)])]),
        ];
        [traces, metrics]
    }

    #[test]
    fn each_part_but_the_last_is_full_and_the_order_stays() {
        for payload in payloads() {
            for most in 1..=21 {
                let parts: Vec<Payload> = payload.clone().into_chunks(most).collect();
                let sizes: Vec<usize> = parts.iter().map(Payload::item_count).collect();
                assert!(sizes[..sizes.len() - 1].iter().all(|size| *size == most), "{most}: {sizes:?}");
                assert!((1..=most).contains(&sizes[sizes.len() - 1]), "{most}: {sizes:?}");
                let all: Vec<u64> = parts.iter().flat_map(items).collect();
                assert_eq!(all, (0..20).collect::<Vec<u64>>(), "{most}");
            }
        }
        assert!(Payload::new(Signal::Logs).into_chunks(0).next().is_none());
    }

    #[test]
    fn metrics_without_points_are_in_one_of_the_parts() {
        for most in 1..=21 {
            let mut metrics = Payload::new(Signal::Metrics);
            let empty = || gauge(0..0);
            metrics.resources = vec![
                entry(vec![
                    Items::Metrics(vec![empty()]),
                    Items::Metrics(vec![gauge(0..4), empty(), gauge(4..9), empty()]),
                ]),
                entry(vec![Items::Metrics(vec![empty(), empty()])]),
            ];
            let parts = metrics.into_chunks(most).flat_map(|part| part.resources).flat_map(|entry| entry.scopes);
            let metrics = parts.map(|scope| if let Items::Metrics(metrics) = scope.items { metrics } else { vec![] });
            let without = metrics.flatten().filter(|metric| metric.data_points() == 0).count();
            assert_eq!(without, 5, "{most}");
        }
    }

    #[test]
    fn a_resource_is_repeated_only_where_a_border_goes_through_it() {
        let [traces, _] = payloads();
        let entries: Vec<Vec<usize>> =
            traces.into_chunks(6).map(|part| part.resources.iter().map(|entry| entry.scopes.len()).collect()).collect();
        assert_eq!(entries, [vec![2, 1], vec![1, 1], vec![1], vec![1]]);
    }

    #[test]
    fn a_part_of_a_metric_has_all_that_is_beside_its_points() {
        let parts = gauge(0..10).divide(3, 4);
        assert_eq!(parts.iter().map(Metric::data_points).collect::<Vec<_>>(), [3, 4, 3]);
        for part in parts {
            let rest = part.rest().clone();
            assert!(fields(&rest).any(|(number, value)| number == 3 && value.bytes() == b"s"));
            let (number, data) = super::super::metric::data(&rest).expect("data");
            assert!(number == 5 && fields(data).any(|(number, value)| number == 2 && value.bits() == 2));
        }
    }

    /// What is taken costs what it is, and not what is left: a million items in parts of one end in this lifetime.
    #[test]
    fn many_parts_are_made_in_one_walk() {
        let mut payload = Payload::new(Signal::Metrics);
        payload.resources = vec![entry(vec![Items::Metrics(vec![gauge(0..200_000)])])];
        payload.resources.extend((0..200_000).map(|value| entry(vec![Items::Metrics(vec![gauge(value..value + 1)])])));
        assert_eq!(payload.into_chunks(1).count(), 400_000);
    }
}
