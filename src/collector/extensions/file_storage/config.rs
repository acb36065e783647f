//! What the extension is told, and how it starts.

use std::fs::{self, OpenOptions};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::PathBuf;

use futures_util::future::BoxFuture;
use nix::fcntl::{Flock, FlockArg};

use crate::collector::component::{Context, Extension, Factory, Running, Signals};
use crate::collector::config::section::Section;
use crate::collector::deadline::Deadline;
use crate::collector::storage::{Folder, Storages};
use crate::diag::Problem;

/// The kind.
pub const FACTORY: Factory<dyn Extension> =
    Factory { names: &["file_storage"], signals: Signals::None, configure: read };

struct Settings {
    directory: PathBuf,
    /// Make the directory if it is not there.
    create: bool,
    /// What is stored outlives the machine.
    synced: bool,
}

#[expect(clippy::unnecessary_wraps, reason = "the form of a factory")]
fn read(section: &mut Section<'_>) -> Option<Box<dyn Extension>> {
    let directory = section.text("directory").unwrap_or_else(|| "/var/lib/otelcol/file_storage".to_owned());
    let create = section.boolean("create_directory").unwrap_or(false);
    let synced = section.boolean("fsync").unwrap_or(false);
    section.text("directory_permissions");
    // Of the reference's own format: its files are one database.
    section.duration("timeout");
    for key in ["compaction", "recreate", "max_size"] {
        section.has(key);
    }
    Some(Box::new(Settings { directory: directory.into(), create, synced }))
}

impl Extension for Settings {
    fn start(self: Box<Self>, context: Context) -> BoxFuture<'static, Result<Box<dyn Running>, Problem>> {
        Box::pin(async move {
            let refused = |what: String| Problem::new(format!("{what}: {}", self.directory.display()));
            if self.create {
                let made = fs::DirBuilder::new().recursive(true).mode(0o700).create(&self.directory);
                made.map_err(|error| refused(format!("cannot make the directory ({error})")))?;
            }
            let lock = OpenOptions::new().create(true).append(true).mode(0o600).open(self.directory.join("lock"));
            let lock = lock.map_err(|error| {
                let problem = refused(format!("cannot use the directory ({error})"));
                problem.hint("make it first, or set `create_directory: true`")
            })?;
            let lock = Flock::lock(lock, FlockArg::LockExclusiveNonblock).map_err(|_| {
                let problem = refused("another process uses the directory".to_owned());
                problem.hint("a collector that still runs, or a `gymrun collector flush`: wait for its end")
            })?;
            let id = context.name.strip_prefix("extensions/").unwrap_or(&context.name);
            context.shared.get::<Storages>().add(id, Folder { path: self.directory.clone(), synced: self.synced });
            Ok(Box::new(Locked { _lock: lock }) as Box<dyn Running>)
        })
    }
}

struct Locked {
    _lock: Flock<fs::File>,
}

impl Running for Locked {
    fn shutdown(self: Box<Self>, _deadline: Deadline) -> BoxFuture<'static, ()> {
        Box::pin(std::future::ready(()))
    }
}
