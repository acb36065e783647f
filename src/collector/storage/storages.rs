//! The folders that extensions opened, by their ids.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use super::{Credentials, Spool};
use crate::collector::component::Context;
use crate::diag::Problem;
use crate::otlp::Signal;

/// All storages of one collector ([`Shared::get`](crate::collector::component::Shared::get)).
#[derive(Default)]
pub struct Storages {
    folders: Mutex<HashMap<String, PathBuf>>,
    spools: Mutex<Vec<(String, Arc<Spool>)>>,
}

impl Storages {
    /// Makes a folder known under the id of its extension.
    pub fn add(&self, id: &str, folder: PathBuf) {
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
        let name: String = context.name.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '_' }).collect();
        let folder = folder.join(format!("{name}_{}", signal.name()));
        let spool = Spool::open(&folder, context.shared.get::<Credentials>().all())
            .map_err(|error| Problem::new(format!("cannot open the storage {}: {error}", folder.display())))?;
        let spool = Arc::new(spool);
        let mut spools = self.spools.lock().unwrap_or_else(PoisonError::into_inner);
        spools.push((format!("{} {}", context.name, signal.name()), spool.clone()));
        Ok(spool)
    }

    /// All that were opened, with the names of their users.
    pub fn opened(&self) -> Vec<(String, Arc<Spool>)> {
        self.spools.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}
