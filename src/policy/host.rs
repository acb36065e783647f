//! What functions of ours need to know inside the VM.

use std::cell::{Cell, RefCell};
use std::fmt;
use std::sync::Arc;

use mlua::{Function, Lua, Table};

use super::watch::Watch;
use crate::diag::{Location, Problem, Problems};
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
    /// What the prelude gave back: freezing, copying, globals.
    pub prelude: RefCell<Option<Table>>,
    /// Problems of values that were given up on, said together with all others.
    pub problems: RefCell<Problems>,
    /// Number of values that were converted, against structures that grow by sharing.
    pub converted: Cell<usize>,
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
            prelude: RefCell::default(),
            problems: RefCell::default(),
            converted: Cell::default(),
        }
    }

    /// The folder with a site's own `policy/NAME.lua`, which are used instead of those that are shipped.
    #[must_use]
    pub fn policy_folder(&self) -> Option<&str> {
        self.world.variable("GYMRUN_LUA_PATH").filter(|path| !path.is_empty())
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
    let host = host(lua)?;
    let table = host.prelude.borrow();
    match &*table {
        Some(table) => table.raw_get(name),
        None => Err(mlua::Error::runtime("the prelude has not run; this is a bug of gymrun")),
    }
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

/// A problem of a value, kept until all are said.
pub fn note_problem(lua: &Lua, problem: Problem) {
    if let Some(host) = lua.app_data_ref::<Host>() {
        host.problems.borrow_mut().push(problem);
    }
}
