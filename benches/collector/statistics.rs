//! Medians and the least of repetitions.

/// The repetitions of one number.
#[derive(Clone, Debug, Default)]
pub struct Series(Vec<f64>);

impl Series {
    pub fn push(&mut self, value: f64) {
        self.0.push(value);
    }

    pub fn newest(&self) -> f64 {
        self.0.last().copied().unwrap_or(f64::NAN)
    }

    /// The middle one; of an even number, the mean of the middle two.
    pub fn median(&self) -> f64 {
        let mut sorted = self.0.clone();
        sorted.sort_by(f64::total_cmp);
        let middle = sorted.len() / 2;
        match sorted.len() {
            0 => f64::NAN,
            length if length % 2 == 1 => sorted[middle],
            _ => f64::midpoint(sorted[middle - 1], sorted[middle]),
        }
    }

    /// Each repetition less another's same one.
    #[allow(dead_code, reason = "not every bench compares so")]
    pub fn less(&self, other: &Self) -> Self {
        Self(self.0.iter().zip(&other.0).map(|(one, other)| one - other).collect())
    }

    pub fn least(&self) -> f64 {
        self.0.iter().copied().fold(f64::INFINITY, f64::min)
    }

    pub fn most(&self) -> f64 {
        self.0.iter().copied().fold(f64::NEG_INFINITY, f64::max)
    }
}
