//! Label sets: what a target says about a series, and what the scrape adds.

/// The label that holds the name of the metric.
pub const METRIC_NAME: &str = "__name__";

/// Labels that start so are for the scrape itself, never for a series.
const RESERVED_PREFIX: &str = "__";

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

    /// Gives the label this value, whatever it was; an empty value removes it.
    pub fn set(&mut self, name: &str, value: &str) {
        self.list.retain(|label| label.0 != name);
        if !value.is_empty() {
            let at = self.list.partition_point(|label| label.0.as_str() < name);
            self.list.insert(at, (name.to_owned(), value.to_owned()));
        }
    }

    /// Removes every name that has an empty value: the same as not being there.
    fn remove_empty(&mut self) {
        let empty: Vec<String> = self.list.iter().filter(|label| label.1.is_empty()).map(|l| l.0.clone()).collect();
        self.list.retain(|label| !empty.contains(&label.0));
    }

    /// The label set of a series as it is recorded: the target's labels added.
    ///
    /// Where both have a label, the exposed one wins if `honor` is set; else the target's wins and the exposed one is
    /// renamed to `exported_<name>`, with as many prefixes as it takes.
    #[must_use]
    pub fn with_target(mut self, target: &Labels, honor: bool) -> Self {
        let exposed = self.clone();
        self.remove_empty();
        let mut conflicts: Vec<(String, String)> = Vec::new();
        for (name, value) in target.iter().filter(|(name, _)| !name.starts_with(RESERVED_PREFIX)) {
            if honor {
                if !exposed.has(name) {
                    self.set(name, value);
                }
            } else {
                if !exposed.get(name).is_empty() {
                    conflicts.push((name.to_owned(), exposed.get(name).to_owned()));
                }
                self.set(name, value);
            }
        }
        conflicts.sort_by_key(|(name, _)| name.len());
        for (name, value) in conflicts {
            let mut renamed = format!("exported_{name}");
            while !self.get(&renamed).is_empty() {
                renamed = format!("exported_{renamed}");
            }
            self.set(&renamed, &value);
        }
        self
    }
}

#[cfg(test)]
mod tests {
    use super::Labels;

    fn labels(list: &[(&str, &str)]) -> Labels {
        Labels::new(list.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect())
    }

    #[test]
    fn the_target_wins_and_the_exposed_label_is_renamed() {
        let target = labels(&[("instance", "h:1"), ("job", "j"), ("team", "rl"), ("__address__", "h:1")]);
        let exposed = labels(&[("__name__", "a"), ("job", "mine"), ("exported_job", "taken"), ("team", "")]);
        assert_eq!(
            exposed.clone().with_target(&target, false),
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
            exposed.with_target(&target, true),
            labels(&[("__name__", "a"), ("exported_job", "taken"), ("instance", "h:1"), ("job", "mine")])
        );
    }

    #[test]
    fn an_empty_value_is_no_label_and_a_name_twice_is_seen() {
        let target = labels(&[("job", "j")]);
        assert_eq!(labels(&[("a", ""), ("b", "x")]).with_target(&target, false), labels(&[("b", "x"), ("job", "j")]));
        assert_eq!(labels(&[("a", "1"), ("a", "1")]).with_target(&target, false).duplicate(), Some("a"));
        assert_eq!(labels(&[("a", "1"), ("b", "1")]).duplicate(), None);
    }
}
