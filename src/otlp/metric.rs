//! A metric: its name decoded, all else in wire form.

use bytes::Bytes;

use super::records::Records;
use super::value::{Text, slice};
use super::wire::{Reader, Writer, fields, varint_size};

/// A metric: its name decoded, all else in wire form.
#[derive(Debug, Clone, Default)]
pub struct Metric {
    /// The name; may be changed.
    pub name: Text,
    rest: Bytes,
    data_points: usize,
}

impl Metric {
    /// A metric of a name and the other fields of its Metric message (description 2, unit 3, gauge 5,
    /// sum 7, histogram 9, exponential histogram 10, summary 11, metadata 12), which must be valid. Of several data the
    /// last one counts, as a whole; the others are left out.
    pub fn new(name: impl Into<Text>, rest: impl Into<Bytes>) -> Self {
        let mut rest = rest.into();
        let several = fields(&rest).filter(|(number, _)| is_data(*number)).count() > 1;
        if several {
            rest = with_last_data(&rest);
        }
        let data_points = data(&rest).map_or(0, |(_, data)| count_points(data));
        Self { name: name.into(), rest, data_points }
    }

    /// Reads a validated Metric message.
    pub(super) fn decode(whole: &Bytes, message: &[u8]) -> Self {
        let mut reader = Reader::new(message);
        let (mut name, mut named, mut name_end) = (Text::default(), 0, 0);
        while let Ok(Some((number, value))) = reader.read() {
            if number == 1 {
                name = slice(whole, value).into();
                named += 1;
                if named == 1 && name_is_first(message, value.bytes()) {
                    name_end = reader.position();
                }
            }
        }
        let rest = if named == 0 {
            slice_of(whole, message)
        } else if named == 1 && name_end > 0 {
            slice_of(whole, &message[name_end..])
        } else {
            without_name(message)
        };
        Self::new(name, rest)
    }

    /// All fields but the name, in wire form.
    #[must_use]
    pub fn rest(&self) -> &Bytes {
        &self.rest
    }

    /// How many data points there are.
    #[must_use]
    pub fn data_points(&self) -> usize {
        self.data_points
    }

    /// Divides it into metrics like it: the first one with `first` of its data points, all others with `most`, but for the
    /// last. At least one.
    pub(super) fn divide(self, first: usize, most: usize) -> Vec<Self> {
        let Some((number, data)) = data(&self.rest).filter(|_| first < self.data_points) else { return vec![self] };
        // What all of them have: the fields beside the data, and those of the data beside the points.
        let (mut about, mut about_points) = (Writer::new(), Writer::new());
        each(&self.rest, |field, bytes| {
            if !is_data(field) {
                about.raw(bytes);
            }
        });
        each(data, |field, bytes| {
            if field != 1 {
                about_points.raw(bytes);
            }
        });
        let (about, about_points) = (about.into_bytes(), about_points.into_bytes());
        let mut parts = Vec::new();
        let (mut points, mut count, mut full) = (Writer::new(), 0, first);
        let mut close = |points: &mut Writer, data_points| {
            let mut writer = Writer::with_capacity(about.len() + points.len() + about_points.len() + 16);
            writer.raw(&about);
            writer.message_header(number, points.len() + about_points.len());
            writer.raw(&std::mem::take(points).into_bytes());
            writer.raw(&about_points);
            parts.push(Self { name: self.name.clone(), rest: writer.into_bytes(), data_points });
        };
        each(data, |field, bytes| {
            if field != 1 {
                return;
            }
            if count == full {
                close(&mut points, count);
                (count, full) = (0, most);
            }
            points.raw(bytes);
            count += 1;
        });
        close(&mut points, count);
        parts
    }

    fn name_size(&self) -> usize {
        let length = self.name.as_bytes().len();
        if length == 0 { 0 } else { 1 + varint_size(length as u64) + length }
    }

    pub(super) fn size(&self) -> usize {
        let content = self.name_size() + self.rest.len();
        1 + varint_size(content as u64) + content
    }

    pub(super) fn encode(&self, writer: &mut Writer) {
        writer.message_header(Records::FIELD, self.name_size() + self.rest.len());
        if !self.name.is_empty() {
            writer.bytes_field(1, self.name.as_bytes());
        }
        writer.raw(&self.rest);
    }
}

/// Whether a field of a metric is its data (gauge, sum, histogram, exponential histogram, summary): one of them is set.
fn is_data(number: u32) -> bool {
    matches!(number, 5 | 7 | 9 | 10 | 11)
}

/// The fields of a metric without all data but the last. Nobody then joins what excludes each other.
fn with_last_data(metric: &[u8]) -> Bytes {
    let (mut reader, mut start) = (Reader::new(metric), 0);
    let (mut writer, mut last) = (Writer::with_capacity(metric.len()), 0..0);
    while let Ok(Some((number, _))) = reader.read() {
        let field = start..reader.position();
        start = field.end;
        if is_data(number) {
            last = field;
        } else {
            writer.raw(&metric[field]);
        }
    }
    writer.raw(&metric[last]);
    writer.into_bytes()
}

/// Number and content of the data of a metric (Gauge, Sum, ...); the last one counts.
pub(super) fn data(metric: &[u8]) -> Option<(u32, &[u8])> {
    fields(metric).filter(|(number, _)| is_data(*number)).last().map(|(number, value)| (number, value.bytes()))
}

/// Calls `take` with number and bytes of each field of a valid message.
fn each(message: &[u8], mut take: impl FnMut(u32, &[u8])) {
    let (mut reader, mut start) = (Reader::new(message), 0);
    while let Ok(Some((number, _))) = reader.read() {
        take(number, &message[start..reader.position()]);
        start = reader.position();
    }
}

fn count_points(data: &[u8]) -> usize {
    fields(data).filter(|(number, _)| *number == 1).count()
}

fn slice_of(whole: &Bytes, bytes: &[u8]) -> Bytes {
    slice(whole, super::wire::Value::Bytes(bytes))
}

/// The name ends where the first field ends, so it is the first field.
fn name_is_first(message: &[u8], name: &[u8]) -> bool {
    let mut first = Reader::new(message);
    matches!(first.read(), Ok(Some((1, value))) if std::ptr::eq(value.bytes(), name))
}

fn without_name(message: &[u8]) -> Bytes {
    let mut reader = Reader::new(message);
    let (mut writer, mut start) = (Writer::with_capacity(message.len()), 0);
    while let Ok(Some((number, _))) = reader.read() {
        if number != 1 {
            writer.raw(&message[start..reader.position()]);
        }
        start = reader.position();
    }
    writer.into_bytes()
}

#[cfg(test)]
mod tests {
    use super::super::edit::Edit;
    use super::super::records::Items;
    use super::*;

    #[test]
    fn of_several_data_the_last_one_counts_as_a_whole() {
        let write = |writer: &mut Writer, number: u32, points: u64| {
            writer.message_field(number, |data| {
                (0..points).for_each(|point| data.message_field(1, |inner| inner.fixed64_field(3, point)));
            });
        };
        for (first, last) in [(7, 7), (5, 5), (9, 7), (10, 11), (11, 5)] {
            let mut writer = Writer::new();
            writer.bytes_field(2, b"about");
            write(&mut writer, first, 3);
            write(&mut writer, last, 1);
            writer.bytes_field(3, b"s");
            let metric = Metric::new("m", writer.into_bytes());
            assert_eq!((metric.data_points(), data(metric.rest()).map(|(number, _)| number)), (1, Some(last)));
            let edit = Edit::new(metric.rest().clone());
            assert_eq!(Edit::new(edit.inner(last)).messages(1).len(), 1);
            assert_eq!((edit.text(2), edit.text(3)), ("about".into(), "s".into()));
        }
        for (first, last) in [("sum", "sum"), ("gauge", "summary"), ("histogram", "histogram")] {
            let data = format!(r#""{first}":{{"dataPoints":[{{}},{{}}]}},"{last}":{{"dataPoints":[{{}}]}}"#);
            let json = format!(r#"{{"resourceMetrics":[{{"scopeMetrics":[{{"metrics":[{{{data}}}]}}]}}]}}"#);
            let payload = super::super::Payload::from_json(super::super::Signal::Metrics, json.as_bytes());
            let Items::Metrics(metrics) = &payload.expect("valid").resources[0].scopes[0].items else {
                panic!("metrics")
            };
            let data = fields(metrics[0].rest()).filter(|(number, _)| is_data(*number)).count();
            assert_eq!((metrics[0].data_points(), data), (1, 1), "{json}");
        }
    }
}
