//! The items of a scope: spans and log records as runs of wire form, metrics with their names decoded.

use bytes::Bytes;

use super::metric::Metric;
use super::wire::{Reader, Writer, fields};

/// The items of one scope.
#[derive(Debug, Clone)]
pub enum Items {
    /// Spans or log records.
    Records(Records),
    /// Metrics.
    Metrics(Vec<Metric>),
}

/// Spans or log records of one scope. They stand one after the other as a sender wrote them, each as a
/// field of number [`Records::FIELD`], so that taking them up, passing them on and joining them copies
/// nothing.
#[derive(Debug, Clone, Default)]
pub struct Records {
    runs: Vec<Run>,
}

/// Items that stand side by side.
#[derive(Debug, Clone)]
pub(super) struct Run {
    fields: Bytes,
    count: usize,
}

impl Run {
    pub fn count(&self) -> usize {
        self.count
    }

    /// Bytes of wire form.
    pub fn size(&self) -> usize {
        self.fields.len()
    }

    /// The items as messages in wire form.
    pub fn iter(&self) -> impl Iterator<Item = &[u8]> {
        fields(&self.fields).map(|(_, value)| value.bytes())
    }

    /// Takes the first `count` items away.
    pub fn split_front(&mut self, count: usize) -> Self {
        let mut reader = Reader::new(&self.fields);
        for _ in 0..count {
            // The run is validated: a field is there.
            let _ = reader.read();
        }
        let end = reader.position();
        self.count -= count;
        Self { fields: self.fields.split_to(end), count }
    }
}

impl Records {
    /// The number of the items in `ScopeSpans`, `ScopeLogs` and `ScopeMetrics` alike.
    pub const FIELD: u32 = 2;

    /// Takes up a run of `count` validated items, each written as a field of number [`Records::FIELD`].
    pub fn push_run(&mut self, fields: Bytes, count: usize) {
        if count > 0 {
            self.runs.push(Run { fields, count });
        }
    }

    /// How many items there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.runs.iter().map(|run| run.count).sum()
    }

    /// There are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.runs.is_empty()
    }

    /// The items as messages in wire form.
    pub fn iter(&self) -> impl Iterator<Item = &[u8]> {
        self.runs.iter().flat_map(Run::iter)
    }

    pub(super) fn from_runs(runs: Vec<Run>) -> Self {
        Self { runs }
    }

    pub(super) fn into_runs(self) -> Vec<Run> {
        self.runs
    }

    /// Lets `decide` look at each item. What is kept stays the slice that it is, together with its neighbours.
    pub fn revise(&mut self, mut decide: impl FnMut(Bytes) -> Revision) {
        let mut revised = Self::default();
        // Items that were written anew, until one that was not follows.
        let (mut writer, mut written) = (Writer::new(), 0);
        for run in std::mem::take(&mut self.runs) {
            let (mut reader, mut start) = (Reader::new(&run.fields), 0);
            let (mut kept, mut count) = (0..0, 0);
            while let Ok(Some((_, value))) = reader.read() {
                let end = reader.position();
                match decide(run.fields.slice_ref(value.bytes())) {
                    Revision::Keep => {
                        revised.push_run(std::mem::take(&mut writer).into_bytes(), std::mem::take(&mut written));
                        if count > 0 && kept.end != start {
                            revised.push_run(run.fields.slice(kept.clone()), std::mem::take(&mut count));
                        }
                        kept = if count > 0 { kept.start } else { start }..end;
                        count += 1;
                    }
                    Revision::Drop => {}
                    Revision::Replace(message) => {
                        revised.push_run(run.fields.slice(kept.clone()), std::mem::take(&mut count));
                        writer.bytes_field(Self::FIELD, &message);
                        written += 1;
                    }
                }
                start = end;
            }
            revised.push_run(run.fields.slice(kept), count);
        }
        revised.push_run(writer.into_bytes(), written);
        *self = revised;
    }

    pub(super) fn size(&self) -> usize {
        self.runs.iter().map(Run::size).sum()
    }

    /// The items as fields, in runs.
    pub(super) fn runs(&self) -> impl Iterator<Item = &Bytes> {
        self.runs.iter().map(|run| &run.fields)
    }
}

/// What becomes of an item.
#[derive(Debug, Clone)]
pub enum Revision {
    /// It stays.
    Keep,
    /// It goes.
    Drop,
    /// This valid message stands in its place.
    Replace(Bytes),
}

impl<R: AsRef<[u8]>> FromIterator<R> for Records {
    /// Items that were written anew, as messages.
    fn from_iter<T: IntoIterator<Item = R>>(messages: T) -> Self {
        let (mut writer, mut count) = (Writer::new(), 0);
        for message in messages {
            writer.bytes_field(Self::FIELD, message.as_ref());
            count += 1;
        }
        let mut records = Self::default();
        records.push_run(writer.into_bytes(), count);
        records
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn items_are_kept_dropped_and_replaced_in_order() {
        let message = |index: u64| {
            let mut writer = Writer::new();
            writer.varint_field(1, index);
            writer.into_bytes()
        };
        let mut records: Records = (0..4).map(message).collect();
        records.runs.extend((4..8).map(message).collect::<Records>().runs);
        let mut seen = Vec::new();
        records.revise(|bytes| {
            let index = fields(&bytes).next().map_or(0, |(_, value)| value.bits());
            seen.push(index);
            match index {
                0 | 3 | 6 => Revision::Drop,
                2 | 4 | 5 => Revision::Replace(message(index + 100)),
                _ => Revision::Keep,
            }
        });
        assert_eq!(seen, [0, 1, 2, 3, 4, 5, 6, 7]);
        let got: Vec<u64> = records.iter().flat_map(fields).map(|(_, value)| value.bits()).collect();
        assert_eq!(got, [1, 102, 104, 105, 7]);
        assert_eq!((records.len(), records.runs.len()), (5, 3));
        records.revise(|_| Revision::Keep);
        assert_eq!((records.len(), records.runs.len()), (5, 3));
    }
}
