//! What of a target's configuration decides how its pages are recorded.

use std::sync::Arc;
use std::time::Duration;

use super::super::exposition::Dialect;
use super::super::relabel::{Names, Rule};
use super::labels::Labels;

/// All of it.
#[derive(Clone, Debug, Default)]
pub struct Rules {
    /// Labels that every series of the target has: job, instance, those of the configuration.
    pub target: Labels,
    /// The scheme as it was configured, whatever relabelling made of it.
    pub scheme: String,
    /// Labels that every series gets, whatever it has; an empty value removes one.
    pub external: Arc<[(String, String)]>,
    /// Whether exposed labels win over the target's.
    pub honor_labels: bool,
    /// Whether exposed timestamps count.
    pub honor_timestamps: bool,
    /// Whether series with timestamps of their own are missed when they vanish.
    pub track_timestamps: bool,
    /// How a page without a known content type is read (instead of text 0.0.4).
    pub fallback: Option<Dialect>,
    /// Rules for each sample.
    pub relabel: Arc<[Rule]>,
    /// Names that a sample may have after those.
    pub names: Names,
    /// What a page may have at most.
    pub limits: Limits,
    /// The timeout, where it and the limits are to be reported with each scrape.
    pub extra_report: Option<Duration>,
    /// Whether `_total` and units are cut off the names of metrics.
    pub trim_suffixes: bool,
}

/// Limits of a page; 0 is none. A page beyond one of them fails as a whole.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Limits {
    /// Samples.
    pub samples: usize,
    /// Labels of one sample, its name and the target's labels included.
    pub labels: usize,
    /// Bytes of a label's name.
    pub name_length: usize,
    /// Bytes of a label's value.
    pub value_length: usize,
}

impl Limits {
    /// Which limit the labels of a sample exceed.
    ///
    /// # Errors
    /// A message without the value: it may be long.
    pub fn check(&self, labels: &Labels) -> Result<(), String> {
        let count = labels.iter().count();
        if self.labels > 0 && count > self.labels {
            return Err(format!("the sample has {count} labels, `label_limit` is {}", self.labels));
        }
        for (name, value) in labels.iter() {
            if self.name_length > 0 && name.len() > self.name_length {
                let (length, limit) = (name.len(), self.name_length);
                return Err(format!("a label's name has {length} bytes, `label_name_length_limit` is {limit}"));
            }
            if self.value_length > 0 && value.len() > self.value_length {
                let (length, limit) = (value.len(), self.value_length);
                return Err(format!("the label `{name}` has {length} bytes, `label_value_length_limit` is {limit}"));
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::{Labels, Limits};

    #[test]
    fn what_is_at_a_limit_passes() {
        let labels =
            Labels::new([("__name__", "abc"), ("b", "1234")].map(|(n, v)| (n.to_owned(), v.to_owned())).into());
        let none = Limits::default();
        assert!(none.check(&labels).is_ok());
        assert!(Limits { labels: 2, name_length: 8, value_length: 4, ..none }.check(&labels).is_ok());
        for (limits, word) in [
            (Limits { labels: 1, ..none }, "label_limit"),
            (Limits { name_length: 7, ..none }, "label_name_length_limit"),
            (Limits { value_length: 3, ..none }, "label_value_length_limit"),
        ] {
            assert!(limits.check(&labels).is_err_and(|why| why.contains(word)), "{word}");
        }
    }
}
