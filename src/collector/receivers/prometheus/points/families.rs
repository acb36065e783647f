//! The families of one scope: which of them a series belongs to.

use std::collections::HashMap;
use std::sync::Arc;

use super::family::Family;
use super::group::Broken;
use super::metadata::Metadata;
use super::series::Series;
use crate::otlp::Metric;

/// The families of one scope.
#[derive(Debug, Default)]
pub struct Families {
    list: Vec<Family>,
    /// By the name of the metric. A family that was opened anew has taken the place of the former one.
    open: HashMap<Arc<str>, usize>,
    /// By the name of the series, where it would lead to the same family again.
    resolved: HashMap<Arc<str>, usize>,
    last: Option<(Arc<str>, usize)>,
    /// What is resolved is of this generation.
    generation: u64,
}

impl Families {
    /// The place of the family that a series belongs to, opened if it is the first one.
    ///
    /// A series whose name leads to a family that does not take it opens the family anew, and what the former one held
    /// is given up: so does the reference (`x` and `x_sum` under `# TYPE x gauge` end as one gauge `x`).
    ///
    /// What names lead to is found out anew when the generation is another one.
    pub fn of(&mut self, series: &Series, metadata: &Metadata, generation: u64) -> usize {
        if self.generation != generation {
            self.generation = generation;
            self.resolve_anew();
        }
        let name = series.shared_name();
        match &self.last {
            Some((last, place)) if last == name => *place,
            _ => self.find(name, metadata),
        }
    }

    /// All families, by their places.
    pub(super) fn list(&mut self) -> &mut [Family] {
        &mut self.list
    }

    /// What names lead to has changed.
    fn resolve_anew(&mut self) {
        // A table that is cleared keeps its size, and would be gone through as a whole each time.
        self.resolved = HashMap::new();
        self.last = None;
    }

    fn find(&mut self, name: &Arc<str>, metadata: &Metadata) -> usize {
        if let Some(place) = self.resolved.get(name) {
            self.last = Some((Arc::clone(name), *place));
            return *place;
        }
        let key = metadata.opened_as(name);
        let by_key = || self.open.get(key.as_str()).copied().filter(|place| self.list[*place].includes(name));
        let place = match self.open.get(name).copied().or_else(by_key) {
            Some(place) => place,
            None => self.open_family(name, metadata),
        };
        let opened = self.list[place].name();
        if opened == &**name || opened == key && self.list[place].includes(name) {
            self.resolved.insert(Arc::clone(name), place);
            self.last = Some((Arc::clone(name), place));
        }
        place
    }

    fn open_family(&mut self, name: &str, metadata: &Metadata) -> usize {
        let family = Family::new(metadata.family_of(name));
        let place = self.list.len();
        let former = self.open.insert(family.name().into(), place);
        if former.is_some() || self.resolved.contains_key(family.name()) {
            self.resolve_anew();
        }
        self.list.push(family);
        place
    }

    /// All families that have points, as metrics in the order in which they were opened. `trim` cuts type and unit off
    /// their names.
    #[must_use]
    pub fn write(&self, trim: bool, broken: &mut Broken) -> Vec<Metric> {
        let current = |(place, family): &(usize, &Family)| self.open.get(family.name()) == Some(place);
        self.list.iter().enumerate().filter(current).filter_map(|(_, family)| family.write(trim, broken)).collect()
    }
}
