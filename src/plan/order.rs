//! Start and stop order, as pure functions of the units.

use std::collections::BTreeMap;

use super::job::Plan;
use super::process::{Kind, Unit};

impl Plan {
    /// Groups of units in stop order: the driver, then services and servers in reverse dependency order (those of one
    /// group side by side, each after all that depend on it), the collector last.
    #[must_use]
    pub fn stop_levels(&self) -> Vec<Vec<String>> {
        let mut levels = Vec::new();
        if let Some(driver) = self.driver() {
            levels.push(vec![driver.name.clone()]);
        }
        let middle: Vec<&Unit> = self.units.iter().filter(|u| u.kind.in_middle()).collect();
        // Units stand in start order, so in reverse every dependant comes before what it depends on.
        let mut depth: BTreeMap<&str, usize> = BTreeMap::new();
        for unit in middle.iter().rev() {
            let own = depth.get(unit.name.as_str()).copied().unwrap_or_default();
            for dependency in &unit.depends_on {
                let below = depth.entry(dependency).or_default();
                *below = (*below).max(own + 1);
            }
            depth.entry(&unit.name).or_insert(own);
        }
        let deepest = middle.iter().map(|u| depth[u.name.as_str()]).max();
        for level in 0..deepest.map_or(0, |d| d + 1) {
            levels.push(middle.iter().filter(|u| depth[u.name.as_str()] == level).map(|u| u.name.clone()).collect());
        }
        levels.extend(self.units.iter().filter(|u| u.kind == Kind::Collector).map(|u| vec![u.name.clone()]));
        levels
    }
}
