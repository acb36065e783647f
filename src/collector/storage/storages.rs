//! The folders that extensions opened, by their ids.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::{fmt, fs};

use super::spool::requests_in;
use super::{Credentials, Spool};
use crate::collector::component::Context;
use crate::collector::text::percent;
use crate::diag::{Problem, counted};
use crate::otlp::Signal;

/// All storages of one collector ([`Shared::get`](crate::collector::component::Shared::get)).
#[derive(Default)]
pub struct Storages {
    folders: Mutex<HashMap<String, Folder>>,
    spools: Mutex<Vec<(String, Arc<Spool>)>>,
}

/// What an extension opened.
#[derive(Clone)]
pub struct Folder {
    /// Where it is.
    pub path: PathBuf,
    /// Whether what is stored has to outlive the machine; see [`Spool::synced`].
    pub synced: bool,
}

impl Storages {
    /// Makes a folder known under the id of its extension.
    pub fn add(&self, id: &str, folder: Folder) {
        self.folders.lock().unwrap_or_else(PoisonError::into_inner).insert(id.to_owned(), folder);
    }

    /// The stored requests of a component and signal.
    pub fn open(&self, id: &str, context: &Context, signal: Signal) -> Result<Arc<Spool>, Problem> {
        let folders = self.folders.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(folder) = folders.get(id) else {
            let problem = Problem::new(format!("`sending_queue.storage`: no extension `{id}` was started"));
            return Err(
                problem.hint("declare it under `extensions`, as `file_storage`, and name it in `service.extensions`")
            );
        };
        let synced = folder.synced;
        let folder = folder.path.join(format!("{}~{}", file_name(&context.name), signal.name()));
        let spool = Spool::open(&folder, context.shared.get::<Credentials>().all()).and_then(|spool| {
            // Its folder, and the one in which it is, may be new.
            for holder in folder.ancestors().skip(1).take(if synced { 2 } else { 0 }) {
                fs::File::open(holder)?.sync_all()?;
            }
            Ok(spool.synced(synced))
        });
        let spool =
            spool.map_err(|error| Problem::new(format!("cannot open the storage {}: {error}", folder.display())))?;
        let spool = Arc::new(spool);
        let mut spools = self.spools.lock().unwrap_or_else(PoisonError::into_inner);
        spools.push((format!("{} {}", context.name, signal.name()), spool.clone()));
        Ok(spool)
    }

    /// All that were opened, with the names of their users.
    pub fn opened(&self) -> Vec<(String, Arc<Spool>)> {
        self.spools.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Folders with requests that nobody here sends: of an exporter that was renamed or left out, or of a signal that it
    /// does not get any more. In the order of their names.
    pub fn unclaimed(&self) -> Vec<Unclaimed> {
        let folders: Vec<Folder> =
            self.folders.lock().unwrap_or_else(PoisonError::into_inner).values().cloned().collect();
        let opened = self.opened();
        let mut unclaimed = Vec::new();
        for entry in folders.iter().filter_map(|folder| fs::read_dir(&folder.path).ok()).flatten().flatten() {
            let folder = entry.path();
            if !opened.iter().any(|(_, spool)| spool.folder() == folder) {
                let requests = requests_in(&folder);
                unclaimed.extend((requests > 0).then_some(Unclaimed { folder, requests }));
            }
        }
        unclaimed.sort_by(|one, other| one.folder.cmp(&other.folder));
        unclaimed
    }
}

/// A folder with requests that no exporter has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unclaimed {
    /// Where they are.
    pub folder: PathBuf,
    /// How many.
    pub requests: usize,
}

impl fmt::Display for Unclaimed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { folder, requests } = self;
        write!(
            f,
            "{} in {} that no exporter and signal of this configuration sends: name the exporter as it was, or the folder \
             as the exporter that should",
            counted(*requests, "request stays", "requests stay"),
            folder.display()
        )
    }
}

/// The name of a component as that of a folder. No two have the same: requests are never sent by another exporter than the
/// one that stored them.
fn file_name(component: &str) -> String {
    percent::encode(component, b"-_./").replace('/', "~")
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::file_name;

    #[test]
    fn each_component_has_a_folder_of_its_own() {
        let names = ["a/b-c", "a/b_c", "a/b.c", "a/b/c", "a/b~c", "a/b%7Ec", "a/b c", "a/bc", "a/B-c", "a/é"];
        let folders: BTreeSet<String> = names.into_iter().map(file_name).collect();
        assert_eq!(folders.len(), names.len(), "{folders:?}");
        assert!(folders.iter().all(|folder| !folder.contains('/')), "{folders:?}");
        assert_eq!(file_name("exporters/otlp_http/team-a"), "exporters~otlp_http~team-a");
    }
}
