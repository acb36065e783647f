//! What functions of ours need to know inside the VM.

use std::cell::{Cell, OnceCell, RefCell};
use std::fmt;
use std::sync::Arc;

use mlua::{Function, Lua, Table};

use super::watch::Watch;
use crate::diag::{Location, Problems};
use crate::inputs::World;

/// `LUA_IDSIZE` without the closing zero.
const LONGEST_NAME: usize = 59;

/// Where `gym.log` and `print` go.
#[derive(Clone)]
pub struct LogSink(Arc<dyn Fn(&str) + Send + Sync>);

impl LogSink {
    /// Calls `write` with each line.
    pub fn new(write: impl Fn(&str) + Send + Sync + 'static) -> Self {
        Self(Arc::new(write))
    }

    /// Says nothing.
    #[must_use]
    pub fn silent() -> Self {
        Self::new(|_| {})
    }

    /// One line.
    pub fn write(&self, line: &str) {
        (self.0)(line);
    }
}

impl fmt::Debug for LogSink {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("LogSink")
    }
}

/// What the prelude gave back.
#[derive(Debug)]
pub struct Prelude {
    /// Freezing, copying, globals, by name.
    pub functions: Table,
    /// What stands behind each proxy: `data`, `kind`, `file`, `line`.
    pub hidden: Table,
    /// The tables that are lists even if they are empty.
    pub lists: Table,
}

impl Prelude {
    /// From the table of the prelude's values.
    pub fn new(values: Table) -> mlua::Result<Self> {
        Ok(Self { hidden: values.raw_get("hidden")?, lists: values.raw_get("lists")?, functions: values })
    }
}

/// The VM's own data: set once, read by every function of ours.
#[derive(Debug)]
pub struct Host {
    /// The machine as far as policy may see it.
    pub world: Arc<World>,
    /// The clock.
    pub watch: Arc<Watch>,
    /// Known before policy runs.
    pub job_id: String,
    /// For `gym.log`.
    pub log: LogSink,
    /// Functions of fragments, by the number that stands in their `Node`.
    pub functions: RefCell<Vec<Function>>,
    /// Names of the loaded chunks, as messages name them.
    chunks: RefCell<Vec<String>>,
    /// What the prelude gave back.
    pub prelude: OnceCell<Prelude>,
    /// Problems of values that were given up on, said together with all others.
    pub problems: RefCell<Problems>,
    /// Number of values that were converted, against structures that grow by sharing.
    pub converted: Cell<usize>,
    /// The fields that processes have for hooks.
    pub process_fields: OnceCell<Table>,
    /// Lua looks for what is not needed any more.
    pub collects: Cell<bool>,
}

impl Host {
    /// A host that has not run anything.
    #[must_use]
    pub fn new(world: Arc<World>, watch: Arc<Watch>, job_id: String, log: LogSink) -> Self {
        Self {
            world,
            watch,
            job_id,
            log,
            functions: RefCell::default(),
            chunks: RefCell::default(),
            prelude: OnceCell::new(),
            problems: RefCell::default(),
            converted: Cell::default(),
            process_fields: OnceCell::new(),
            collects: Cell::default(),
        }
    }

    /// The folder with a site's own `policy/NAME.lua`, which are used instead of those that are shipped.
    #[must_use]
    pub fn policy_folder(&self) -> Option<&str> {
        self.world.variable("GYMRUN_LUA_PATH").filter(|path| !path.is_empty())
    }

    /// What the prelude gave back. It is the first that runs.
    pub fn prelude(&self) -> mlua::Result<&Prelude> {
        self.prelude.get().ok_or_else(|| mlua::Error::runtime("the prelude has not run; this is a bug of gymrun"))
    }

    /// Notes that a file is about to be loaded.
    pub fn add_chunk(&self, file: &str) {
        self.chunks.borrow_mut().push(file.to_owned());
    }
}

/// The host of a VM. Every VM of ours has one.
pub fn host(lua: &Lua) -> mlua::Result<mlua::AppDataRef<'_, Host>> {
    lua.app_data_ref::<Host>().ok_or_else(|| mlua::Error::runtime("the VM has no host; this is a bug of gymrun"))
}

/// A function that the prelude gave back.
pub fn prelude(lua: &Lua, name: &str) -> mlua::Result<Function> {
    host(lua)?.prelude()?.functions.raw_get(name)
}

/// Marks a table that nobody else holds yet as a list, even if it is empty.
pub fn mark_list(lua: &Lua, table: Table) -> mlua::Result<Table> {
    host(lua)?.prelude()?.lists.raw_set(&table, true)?;
    Ok(table)
}

/// The innermost line of an author's file on the stack; frames of the shipped policy are skipped.
pub fn author_line(lua: &Lua) -> Location {
    for level in 0..200 {
        let found = lua.inspect_stack(level, |debug| {
            let source = debug.source();
            let file = source.source.as_deref()?.strip_prefix('@')?.to_owned();
            let line = u32::try_from(debug.current_line()?).ok()?;
            Some(Location::new(file, line))
        });
        match found {
            None => break,
            Some(Some(location)) => return location,
            Some(None) => {}
        }
    }
    lua.app_data_ref::<Host>().map(|host| host.watch.last_line()).unwrap_or_default()
}

/// The loaded file that a message means by `name`, which Lua shortens if it is long: from the left, and for policy from the
/// right.
pub fn chunk_named(lua: &Lua, name: &str) -> Option<String> {
    let host = lua.app_data_ref::<Host>()?;
    let chunks = host.chunks.borrow();
    if let Some(end) = name.strip_prefix("...") {
        return chunks.iter().rev().find(|chunk| chunk.ends_with(end)).cloned();
    }
    let is_meant = |chunk: &&String| *chunk == name || name.len() == LONGEST_NAME && chunk.starts_with(name);
    chunks.iter().find(is_meant).cloned()
}
