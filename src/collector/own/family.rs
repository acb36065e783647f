//! What the instruments say at one moment.

use std::borrow::Cow;

use super::instruments::{Detail, Instrument};

/// A label's value.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Label {
    /// Text.
    Text(String),
    /// A number, which OTLP keeps apart from its text.
    Integer(i64),
}

impl From<&str> for Label {
    fn from(text: &str) -> Self {
        Self::Text(text.to_owned())
    }
}

/// Names with values.
pub type Labels = Vec<(Cow<'static, str>, Label)>;

/// A number.
#[derive(Clone, Debug, PartialEq)]
pub enum Number {
    /// Whole.
    Integer(u64),
    /// Any.
    Double(f64),
    /// Counts for each bound and one more, with the sum of what was counted.
    Buckets {
        /// Upper bounds.
        bounds: &'static [u64],
        /// One more than bounds.
        counts: Vec<u64>,
        /// The sum of all values.
        sum: u64,
    },
}

impl Number {
    /// Adds what another instance of the same component counted.
    fn add(&mut self, other: Self) {
        match (self, other) {
            (Self::Integer(sum), Self::Integer(more)) => *sum += more,
            (Self::Double(sum), Self::Double(more)) => *sum += more,
            (Self::Buckets { counts, sum, .. }, Self::Buckets { counts: more, sum: more_sum, .. }) => {
                counts.iter_mut().zip(more).for_each(|(count, more)| *count += more);
                *sum += more_sum;
            }
            (number, other) => *number = other,
        }
    }
}

/// A number with its labels.
#[derive(Clone, Debug, PartialEq)]
pub struct Point {
    /// In the order of their names.
    pub labels: Labels,
    /// How much.
    pub number: Number,
}

/// An instrument with its points.
pub struct Family {
    /// What they are.
    pub instrument: &'static Instrument,
    /// In the order of their labels.
    pub points: Vec<Point>,
}

/// Everything that is said at one moment.
pub struct Families {
    detail: Detail,
    all: Vec<Family>,
}

impl Families {
    /// Nothing yet; what needs more than `detail` is left out.
    #[must_use]
    pub fn new(detail: Detail) -> Self {
        Self { detail, all: Vec::new() }
    }

    /// Adds a number. Equal labels are of instances of one component in several pipelines: their numbers are added up.
    pub fn add(&mut self, instrument: &'static Instrument, mut labels: Labels, number: Number) {
        if instrument.least > self.detail {
            return;
        }
        labels.sort();
        let place = self.all.iter().position(|family| std::ptr::eq(family.instrument, instrument));
        let place = place.unwrap_or_else(|| {
            self.all.push(Family { instrument, points: Vec::new() });
            self.all.len() - 1
        });
        let points = &mut self.all[place].points;
        match points.iter_mut().find(|point| point.labels == labels) {
            Some(point) => point.number.add(number),
            None => points.push(Point { labels, number }),
        }
    }

    /// The families by name, each with its points by label.
    #[must_use]
    pub fn sorted(mut self) -> Vec<Family> {
        self.all.sort_by_key(|family| family.instrument.name);
        for family in &mut self.all {
            family.points.sort_by(|one, other| one.labels.cmp(&other.labels));
        }
        self.all
    }
}

/// Labels of these texts.
#[must_use]
pub fn labels<const N: usize>(pairs: [(&'static str, &str); N]) -> Labels {
    pairs.into_iter().map(|(name, value)| (Cow::Borrowed(name), Label::from(value))).collect()
}
