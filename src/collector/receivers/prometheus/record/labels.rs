//! Label sets: what a target says about a series, and what the scrape adds.

use super::super::relabel::Builder;

/// The label that holds the name of the metric.
pub const METRIC_NAME: &str = "__name__";

/// Put before the name of an exposed label that the target has too.
const EXPORTED: &str = "exported_";

/// A label set, sorted by name. A name may stand twice: then the sample is invalid.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Labels {
    list: Vec<(String, String)>,
}

impl Labels {
    /// A label set of these names and values, in any order.
    #[must_use]
    pub fn new(mut list: Vec<(String, String)>) -> Self {
        list.sort_by(|a, b| a.0.cmp(&b.0));
        Self { list }
    }

    /// The value of a label; an absent one has the empty value.
    #[must_use]
    pub fn get(&self, name: &str) -> &str {
        self.list.iter().find(|label| label.0 == name).map_or("", |label| &label.1)
    }

    /// Whether the label is there, be its value empty or not.
    #[must_use]
    pub fn has(&self, name: &str) -> bool {
        self.list.iter().any(|label| label.0 == name)
    }

    /// Names and values, by name.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        self.list.iter().map(|(name, value)| (name.as_str(), value.as_str()))
    }

    /// A name that stands twice.
    #[must_use]
    pub fn duplicate(&self) -> Option<&str> {
        self.list.windows(2).find(|pair| pair[0].0 == pair[1].0).map(|pair| pair[0].0.as_str())
    }
}

/// Adds a target's labels to those that a series was exposed with; `labels` began with the exposed ones.
///
/// Where both have a label, the exposed one wins if `honor` is set; else the target's wins and the exposed one is
/// renamed to `exported_<name>`, with as many prefixes as it takes.
pub fn add_target(labels: &mut Builder, exposed: &Labels, target: &Labels, honor: bool) {
    if honor {
        // An exposed label that is empty is honoured as well.
        for (name, value) in target.iter().filter(|(name, _)| !exposed.has(name)) {
            labels.set(name, value);
        }
        return;
    }
    let mut conflicts: Vec<(&str, &str)> = Vec::new();
    for (name, value) in target.iter() {
        if !exposed.get(name).is_empty() {
            conflicts.push((name, exposed.get(name)));
        }
        labels.set(name, value);
    }
    conflicts.sort_by_key(|(name, _)| name.len());
    for (name, value) in conflicts {
        let mut renamed = format!("{EXPORTED}{name}");
        while !labels.get(&renamed).is_empty() {
            renamed.insert_str(0, EXPORTED);
        }
        labels.set(&renamed, value);
    }
}

/// The labels of a series that a scrape reports about its target. A target's own `exported_x` gives way if it has an
/// `x`: so does the reference.
#[must_use]
pub fn of_report(metric: &str, target: &Labels) -> Labels {
    let mut labels = Builder::new(Labels::new(vec![(METRIC_NAME.to_owned(), metric.to_owned())]));
    for (name, value) in target.iter() {
        labels.remove(&format!("{EXPORTED}{name}"));
        labels.set(name, value);
    }
    labels.finish()
}

#[cfg(test)]
mod tests {
    use super::{Builder, Labels, add_target, of_report};

    fn labels(list: &[(&str, &str)]) -> Labels {
        Labels::new(list.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect())
    }

    fn with_target(exposed: &Labels, target: &Labels, honor: bool) -> Labels {
        let mut builder = Builder::new(exposed.clone());
        add_target(&mut builder, exposed, target, honor);
        builder.finish()
    }

    #[test]
    fn the_target_wins_and_the_exposed_label_is_renamed() {
        let target = labels(&[("instance", "h:1"), ("job", "j"), ("team", "rl")]);
        let exposed = labels(&[("__name__", "a"), ("job", "mine"), ("exported_job", "taken"), ("team", "")]);
        assert_eq!(
            with_target(&exposed, &target, false),
            labels(&[
                ("__name__", "a"),
                ("exported_exported_job", "mine"),
                ("exported_job", "taken"),
                ("instance", "h:1"),
                ("job", "j"),
                ("team", "rl"),
            ])
        );
        // An exposed label that is empty is honoured as well: it removes the target's.
        assert_eq!(
            with_target(&exposed, &target, true),
            labels(&[("__name__", "a"), ("exported_job", "taken"), ("instance", "h:1"), ("job", "mine")])
        );
    }

    #[test]
    fn an_empty_value_is_no_label_and_a_name_twice_is_seen() {
        let target = labels(&[("job", "j")]);
        let exposed = labels(&[("a", ""), ("b", "x")]);
        assert_eq!(with_target(&exposed, &target, false), labels(&[("b", "x"), ("job", "j")]));
        assert_eq!(with_target(&labels(&[("a", "1"), ("a", "1")]), &target, false).duplicate(), Some("a"));
        assert_eq!(labels(&[("a", "1"), ("b", "1")]).duplicate(), None);
    }

    #[test]
    fn reports_have_the_labels_of_the_target() {
        let target = labels(&[("exported_job", "e"), ("instance", "i"), ("job", "j")]);
        assert_eq!(of_report("up", &target), labels(&[("__name__", "up"), ("instance", "i"), ("job", "j")]));
    }
}
