//! One point in the making: its series gathered, and the point written in wire form.

use std::ops::RangeInclusive;

use bytes::Bytes;
use indexmap::IndexSet;

use super::super::exposition::Exemplar;
use super::series::write_attribute;
use crate::otlp::wire::Writer;

/// The NaN that says "no value any more".
pub const STALE: f64 = f64::from_bits(0x7ff0_0000_0000_0002);

/// Whether a value is the staleness marker.
#[must_use]
pub fn is_stale(value: f64) -> bool {
    value.to_bits() == STALE.to_bits()
}

/// The series that make one point.
#[derive(Debug)]
pub(super) struct Group {
    pub(super) timestamp_ms: i64,
    pub(super) attributes: Bytes,
    pub(super) value: Option<f64>,
    pub(super) count: Option<f64>,
    pub(super) sum: Option<f64>,
    pub(super) created: f64,
    parts: Vec<Part>,
    pub(super) exemplars: Writer,
}

/// A bucket (upper bound, cumulative count) or a quantile (quantile, value).
#[derive(Clone, Copy, Debug)]
struct Part {
    boundary: f64,
    value: f64,
}

/// What a series is in its point.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Role {
    /// The value of a gauge or sum.
    Value,
    /// `_sum`.
    Sum,
    /// `_count`.
    Count,
    /// `_created`.
    Created,
    /// A bucket or quantile, by its place.
    Part(usize),
}

/// Why a series found no place in its family.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Misfit {
    /// Another timestamp than the rest of its point.
    Timestamp,
    /// `le` or `quantile` is missing or no number.
    Boundary,
}

impl Misfit {
    /// For the log.
    #[must_use]
    pub fn describe(self) -> &'static str {
        match self {
            Self::Timestamp => "its timestamp differs from that of the other series of its point",
            Self::Boundary => "its `le` or `quantile` label is missing or no number",
        }
    }
}

/// Of the flags of a point: no recorded value.
const NO_VALUE: u64 = 1;

/// Points that were left out because their data contradicts itself.
#[derive(Debug, Default)]
pub struct Broken {
    /// How many.
    pub points: usize,
    /// The metrics that they belong to.
    pub metrics: IndexSet<String>,
}

impl Broken {
    fn add(&mut self, metric: &str) {
        self.points += 1;
        if !self.metrics.contains(metric) {
            self.metrics.insert(metric.to_owned());
        }
    }
}

impl Group {
    pub(super) fn new(timestamp_ms: i64, attributes: Bytes) -> Self {
        let (value, count, sum, created) = (None, None, None, 0.0);
        Self { timestamp_ms, attributes, value, count, sum, created, parts: Vec::new(), exemplars: Writer::new() }
    }

    /// One more bucket or quantile.
    pub(super) fn new_part(&mut self, boundary: Option<f64>) -> Result<Role, Misfit> {
        self.parts.push(Part { boundary: boundary.ok_or(Misfit::Boundary)?, value: 0.0 });
        Ok(Role::Part(self.parts.len() - 1))
    }

    pub(super) fn put(&mut self, role: Role, value: f64) {
        match role {
            Role::Value => self.value = Some(value),
            Role::Sum => self.sum = Some(value),
            Role::Count => self.count = Some(value),
            Role::Created => self.created = value,
            Role::Part(place) => {
                if let Some(part) = self.parts.get_mut(place) {
                    part.value = value;
                }
            }
        }
    }

    /// Start (2) and time (3) of any point.
    fn write_times(&self, point: &mut Writer, start: bool) {
        if let Some(created) = nanoseconds_of_seconds(self.created).filter(|created| start && *created != 0) {
            point.fixed64_field(2, created);
        }
        if self.timestamp_ms != 0 {
            point.fixed64_field(3, nanoseconds(self.timestamp_ms));
        }
    }

    pub(super) fn write_number(&self, data: &mut Writer, start: bool) -> bool {
        let Some(value) = self.value else { return false };
        data.message_field(1, |point| {
            self.write_times(point, start);
            if !is_stale(value) {
                point.double_field(4, value);
            }
            point.raw(self.exemplars.as_slice());
            point.raw(&self.attributes);
            if is_stale(value) {
                point.varint_field(8, NO_VALUE);
            }
        });
        true
    }

    /// The parts by boundary. NaN is below nothing and above nothing, so what comes after it stays there, as it does in the
    /// reference (for up to twelve parts; NaN first among more).
    fn sorted_parts(&self) -> Vec<Part> {
        let mut parts = self.parts.clone();
        if parts.len() <= 12 && parts.iter().any(|part| part.boundary.is_nan()) {
            for end in 1..parts.len() {
                let mut place = end;
                while place > 0 && parts[place].boundary < parts[place - 1].boundary {
                    parts.swap(place, place - 1);
                    place -= 1;
                }
            }
            return parts;
        }
        parts.sort_by(|a, b| match (a.boundary.is_nan(), b.boundary.is_nan()) {
            (false, false) => a.boundary.total_cmp(&b.boundary),
            (a, b) => b.cmp(&a),
        });
        parts
    }

    fn is_stale(&self) -> bool {
        self.sum.is_some_and(is_stale) || self.count.is_some_and(is_stale)
    }

    pub(super) fn write_histogram(&self, data: &mut Writer, name: &str, broken: &mut Broken) -> bool {
        let Some(count) = self.count else { return false };
        let stale = self.is_stale();
        let mut buckets = self.sorted_parts();
        if !stale {
            // A bound that the target no longer has is no bound of this point.
            buckets.retain(|bucket| !is_stale(bucket.value));
        }
        if buckets.last().is_some_and(|last| last.boundary == f64::INFINITY) {
            buckets.pop();
        }
        let Some(counts) = bucket_counts(&buckets, count, stale) else {
            broken.add(name);
            return false;
        };
        data.message_field(1, |point| {
            self.write_times(point, true);
            if !stale {
                if let Some(count) = whole(count).filter(|count| *count != 0) {
                    point.fixed64_field(4, count);
                }
                if let Some(sum) = self.sum {
                    point.double_field(5, sum);
                }
            }
            point.packed_fixed64(6, counts.into_iter());
            if !buckets.is_empty() {
                point.packed_double(7, buckets.iter().map(|bucket| bucket.boundary));
            }
            point.raw(self.exemplars.as_slice());
            point.raw(&self.attributes);
            if stale {
                point.varint_field(10, NO_VALUE);
            }
        });
        true
    }

    pub(super) fn write_summary(&self, data: &mut Writer, name: &str, broken: &mut Broken) -> bool {
        let Some(count) = self.count else { return false };
        let stale = self.is_stale();
        let Some(count) = (if stale { Some(0) } else { whole(count) }) else {
            broken.add(name);
            return false;
        };
        data.message_field(1, |point| {
            self.write_times(point, true);
            if !stale {
                if count != 0 {
                    point.fixed64_field(4, count);
                }
                if let Some(sum) = self.sum.filter(|sum| sum.to_bits() != 0) {
                    point.double_field(5, sum);
                }
            }
            for part in self.sorted_parts() {
                point.message_field(6, |quantile| {
                    if part.boundary.to_bits() != 0 {
                        quantile.double_field(1, part.boundary);
                    }
                    if !stale && part.value.to_bits() != 0 {
                        quantile.double_field(2, part.value);
                    }
                });
            }
            point.raw(&self.attributes);
            if stale {
                point.varint_field(8, NO_VALUE);
            }
        });
        true
    }
}

/// The count of each bucket alone, from cumulative ones (without the last, infinite one) and the count of all.
///
/// `None` if they contradict each other: a count that is NaN or falls has no right difference, and a wrong one would
/// be a number near 2^64.
fn bucket_counts(buckets: &[Part], count: f64, stale: bool) -> Option<Vec<u64>> {
    if stale {
        return Some(vec![0; buckets.len() + 1]);
    }
    let mut below = 0.0;
    let cumulative = buckets.iter().map(|bucket| bucket.value).chain([count]);
    cumulative
        .map(|value| {
            let alone = whole(value - below);
            below = value;
            alone
        })
        .collect()
}

/// The whole part of a count; `None` if it is NaN, negative, infinite or too large.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "the range is checked")]
fn whole(count: f64) -> Option<u64> {
    (0.0..1.8e19).contains(&count).then_some(count as u64)
}

/// The milliseconds since the epoch that OTLP can say: what is outside of 64 bits of nanoseconds, or before 1970, it cannot.
pub const TIMES_MS: RangeInclusive<i64> = 0..=18_446_744_073_709;

fn nanoseconds(milliseconds: i64) -> u64 {
    u64::try_from(milliseconds).unwrap_or_default().saturating_mul(1_000_000)
}

/// A time of `_created`: seconds with a fraction. `None` if OTLP cannot say it.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "whole seconds and the nanoseconds of the fraction, as the reference; the range is checked"
)]
fn nanoseconds_of_seconds(seconds: f64) -> Option<u64> {
    if !(0.0..2e10).contains(&seconds) {
        return None;
    }
    let fraction = ((seconds - seconds.trunc()) * 1e9) as u64;
    (seconds.trunc() as u64).checked_mul(1_000_000_000)?.checked_add(fraction)
}

pub(super) fn write_exemplar(writer: &mut Writer, field: u32, exemplar: &Exemplar, timestamp_ms: i64) {
    let mut trace = None;
    let mut span = None;
    let mut attributes: Vec<(&str, &str)> = Vec::new();
    for (name, value) in &exemplar.labels {
        let id = match name.to_ascii_lowercase().as_str() {
            "trace_id" => Some((&mut trace, 16)),
            "span_id" => Some((&mut span, 8)),
            _ => None,
        };
        if let Some((place, bytes)) = id {
            if value.is_empty() {
                continue;
            }
            if let Some(decoded) = decode_id(value, bytes) {
                *place = Some(decoded);
                continue;
            }
        }
        // They come by name, so that equal ones stand beside each other.
        match attributes.last_mut() {
            Some(known) if known.0 == name => known.1 = value,
            _ => attributes.push((name, value)),
        }
    }
    writer.message_field(field, |message| {
        // One that cannot be said is no time.
        let time = exemplar.timestamp_ms.unwrap_or(timestamp_ms);
        let time = if TIMES_MS.contains(&time) { nanoseconds(time) } else { 0 };
        if time != 0 {
            message.fixed64_field(2, time);
        }
        message.double_field(3, exemplar.value);
        for (number, id) in [(4, span), (5, trace)] {
            if let Some(id) = id {
                message.bytes_field(number, &id);
            }
        }
        for (name, value) in attributes {
            write_attribute(message, 7, name, value);
        }
    });
}

/// An id of exactly this many bytes that is not all zero.
fn decode_id(text: &str, bytes: usize) -> Option<Vec<u8>> {
    let decoded = data_encoding::HEXLOWER_PERMISSIVE.decode(text.as_bytes()).ok()?;
    (decoded.len() == bytes && decoded.iter().any(|byte| *byte != 0)).then_some(decoded)
}

#[cfg(test)]
mod tests {
    use super::{Part, bucket_counts, nanoseconds_of_seconds, whole};

    fn parts(list: &[(f64, f64)]) -> Vec<Part> {
        list.iter().map(|(boundary, value)| Part { boundary: *boundary, value: *value }).collect()
    }

    #[test]
    fn cumulative_buckets_become_counts_of_their_own() {
        assert_eq!(bucket_counts(&parts(&[(1.0, 3.0), (2.0, 5.0)]), 9.0, false), Some(vec![3, 2, 4]));
        assert_eq!(bucket_counts(&[], 5.0, false), Some(vec![5]));
        assert_eq!(bucket_counts(&parts(&[(1.0, 1.7)]), 3.9, false), Some(vec![1, 2]), "fractions are cut");
        assert_eq!(bucket_counts(&parts(&[(1.0, 1.0)]), 2.0, true), Some(vec![0, 0]));
    }

    #[test]
    fn contradicting_buckets_make_no_point() {
        for (buckets, count) in [
            (&[(1.0, 5.0), (2.0, 3.0)][..], 6.0),
            (&[(1.0, f64::NAN)], 6.0),
            (&[(1.0, 1.0)], f64::NAN),
            (&[(1.0, 5.0)], 4.0),
            (&[(1.0, -3.0)], 4.0),
            (&[(1.0, 1.0)], f64::INFINITY),
        ] {
            assert_eq!(bucket_counts(&parts(buckets), count, false), None, "{buckets:?} {count}");
        }
        assert_eq!(whole(2e19), None);
    }

    #[test]
    fn created_times_keep_their_fraction_and_are_none_where_they_cannot_be_said() {
        assert_eq!(nanoseconds_of_seconds(1_700_000_000.5), Some(1_700_000_000_500_000_000));
        assert_eq!(nanoseconds_of_seconds(18_446_744_073.0), Some(18_446_744_073_000_000_000));
        assert_eq!(nanoseconds_of_seconds(0.0), Some(0));
        for none in [f64::INFINITY, f64::NEG_INFINITY, f64::NAN, -1.0, -1e300, 1e300, 18_446_744_074.0, 9.3e18, 1.9e10]
        {
            assert_eq!(nanoseconds_of_seconds(none), None, "{none}");
        }
    }
}
