//! A histogram whose bounds are powers of one base, as fine as its largest number of buckets allows.
//!
//! At scale `s` the base is 2^(2^-s), and the bucket `i` holds what is above base^i up to base^(i+1). It begins at
//! scale 20 and gives up resolution (pairs of buckets become one) when values do not fit otherwise.

use std::collections::VecDeque;

/// The finest scale.
const FINEST: i32 = 20;

/// What is not above this is in one bucket.
const SMALLEST_NORMAL: f64 = f64::MIN_POSITIVE;

/// Counts of values that are not negative.
#[derive(Clone, Debug)]
pub(super) struct Exponential {
    most: i64,
    scale: i32,
    /// The index of the first bucket.
    start: i64,
    buckets: VecDeque<u64>,
    zeros: u64,
    count: u64,
    sum: f64,
    least: f64,
    greatest: f64,
}

impl Exponential {
    /// Without values; `most` is the largest number of buckets.
    pub fn new(most: i32) -> Self {
        let (buckets, most) = (VecDeque::new(), i64::from(most));
        Self { most, scale: FINEST, start: 0, buckets, zeros: 0, count: 0, sum: 0.0, least: 0.0, greatest: 0.0 }
    }

    /// Takes up a value `times` times.
    pub fn observe(&mut self, value: f64, times: u64) {
        let first = self.count == 0;
        self.least = if first { value } else { self.least.min(value) };
        self.greatest = if first { value } else { self.greatest.max(value) };
        self.count = self.count.saturating_add(times);
        if value == 0.0 {
            self.zeros = self.zeros.saturating_add(times);
            return;
        }
        self.sum += value * times as f64;
        self.make_room(index(value, self.scale));
        let index = index(value, self.scale);
        while self.buckets.is_empty() || index < self.start {
            self.start = if self.buckets.is_empty() { index } else { self.start - 1 };
            self.buckets.push_front(0);
        }
        let Ok(place) = usize::try_from(index - self.start) else { return };
        if place >= self.buckets.len() {
            self.buckets.resize(place + 1, 0);
        }
        self.buckets[place] = self.buckets[place].saturating_add(times);
    }

    /// Gives up as much resolution as it takes for the bucket of this index.
    fn make_room(&mut self, index: i64) {
        let Some(end) = self.end() else { return };
        let (mut low, mut high, mut change) = (index.min(self.start), index.max(end), 0);
        while high - low >= self.most {
            (low, high, change) = (low >> 1, high >> 1, change + 1);
        }
        if change == 0 {
            return;
        }
        let start = self.start >> change;
        let mut buckets: VecDeque<u64> = VecDeque::new();
        for (place, count) in (self.start..).zip(self.buckets.drain(..)) {
            let place = usize::try_from((place >> change) - start).unwrap_or_default();
            buckets.resize(buckets.len().max(place + 1), 0);
            buckets[place] = buckets[place].saturating_add(count);
        }
        (self.start, self.buckets, self.scale) = (start, buckets, self.scale - change);
    }

    /// The index of the last bucket.
    fn end(&self) -> Option<i64> {
        let length = i64::try_from(self.buckets.len()).ok().filter(|length| *length > 0)?;
        Some(self.start + length - 1)
    }

    /// The scale; without values above zero it does not matter.
    pub fn scale(&self) -> i32 {
        if self.count == self.zeros { 0 } else { self.scale }
    }

    /// The index of the first bucket.
    pub fn offset(&self) -> i32 {
        i32::try_from(self.start).unwrap_or_default()
    }

    /// The counts, from the first bucket on.
    pub fn buckets(&self) -> impl Iterator<Item = u64> {
        self.buckets.iter().copied()
    }

    /// How many values were zero.
    pub fn zeros(&self) -> u64 {
        self.zeros
    }

    /// How many values there are.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// Their sum.
    pub fn sum(&self) -> f64 {
        self.sum
    }

    /// The least and the greatest.
    pub fn range(&self) -> (f64, f64) {
        (self.least, self.greatest)
    }
}

/// The bucket of a positive value.
#[expect(clippy::cast_possible_truncation, reason = "the logarithm of a double is below 1024, the scale at most 20")]
fn index(value: f64, scale: i32) -> i64 {
    let bits = value.to_bits();
    let exponent = (bits >> 52).cast_signed() - 1023;
    let is_power = bits & ((1 << 52) - 1) == 0;
    if scale > 0 {
        if value <= SMALLEST_NORMAL {
            return (-1022 << scale) - 1;
        }
        if is_power {
            return (exponent << scale) - 1;
        }
        let factor = std::f64::consts::LOG2_E * 2_f64.powi(scale);
        return ((value.ln() * factor).floor() as i64).min((1024 << scale) - 1);
    }
    if value < SMALLEST_NORMAL {
        let lowest = -1022_i64 >> -scale;
        return if scale > -2 { lowest - 1 } else { lowest };
    }
    (exponent - i64::from(is_power)) >> -scale
}

#[cfg(test)]
mod tests {
    use super::{Exponential, index};

    fn filled(most: i32, values: &[f64]) -> Exponential {
        let mut histogram = Exponential::new(most);
        for value in values {
            histogram.observe(*value, 1);
        }
        histogram
    }

    #[test]
    fn one_value_has_the_finest_scale() {
        let one = filled(8, &[8.0]);
        assert_eq!((one.scale(), one.offset(), one.buckets().collect::<Vec<_>>()), (20, 3_145_727, vec![1]));
        assert_eq!((one.count(), one.sum(), one.range(), one.zeros()), (1, 8.0, (8.0, 8.0), 0));
    }

    #[test]
    fn resolution_is_given_up_for_room() {
        let many = filled(4, &[0.0, 1.0, 2.0, 4.0, 1000.0, 2.0]);
        assert_eq!((many.scale(), many.offset()), (-2, -1));
        assert_eq!(many.buckets().collect::<Vec<_>>(), [1, 3, 0, 1]);
        assert_eq!((many.count(), many.zeros(), many.sum(), many.range()), (6, 1, 1009.0, (0.0, 1000.0)));
        // In any order.
        let other = filled(4, &[1000.0, 2.0, 1.0, 4.0, 2.0, 0.0]);
        assert_eq!(other.buckets().collect::<Vec<_>>(), [1, 3, 0, 1]);
        assert_eq!(other.offset(), -1);
    }

    #[test]
    fn only_zeros() {
        let zeros = filled(160, &[0.0, 0.0]);
        assert_eq!((zeros.scale(), zeros.offset(), zeros.buckets().count(), zeros.zeros()), (0, 0, 0, 2));
    }

    #[test]
    fn each_bucket_holds_what_is_above_its_lower_bound_up_to_its_upper_one() {
        for scale in [-3, -1, 0, 1, 3, 10] {
            let base = 2_f64.powf(2_f64.powi(-scale));
            for value in [1e-9, 0.3, 0.999, 1.001, 1.7, 3.0, 1e6, 12345.678] {
                let place = index(value, scale) as f64;
                assert!(base.powf(place) < value && value <= base.powf(place + 1.0) * (1.0 + 1e-9), "{value} {scale}");
            }
        }
        assert_eq!([index(1.0, 0), index(2.0, 0), index(4.0, 1), index(2.0, -1)], [-1, 0, 3, 0]);
    }

    #[test]
    fn many_times_at_once() {
        let mut histogram = Exponential::new(160);
        histogram.observe(3.0, 4);
        assert_eq!((histogram.count(), histogram.sum()), (4, 12.0));
        assert_eq!(histogram.buckets().collect::<Vec<_>>(), [4]);
    }
}
