//! What scripts see: Lua without files, processes, C and bytecode; `require` of what is shipped and of neighbours.

use std::path::Path;

use mlua::chunk::ChunkMode;
use mlua::{Function, Lua, Table, Value, Variadic};

use super::failure::{LimitReached, Raised, raise, raise_problem};
use super::host::{Prelude, host, prelude};
use super::vm::line_by_line;
use super::{library, modules};
use crate::diag::{Location, Problem, nearest};
use crate::inputs::{Language, SourceFile};

/// What compiled Lua begins with.
const BYTECODE: char = '\u{1b}';

/// The names under which the VM keeps its tables in the registry.
const MODULE: &str = "gymrun.module";
const LOADED: &str = "gymrun.loaded";
const POLICY_GLOBALS: &str = "gymrun.policy_globals";

/// Puts the sandbox in place; nothing of an author's has run before.
pub fn install(lua: &Lua) -> mlua::Result<()> {
    let natives = natives(lua)?;
    let values: Table = lua.load(library::VALUES).set_name("=gymrun").call(&natives)?;
    let globals: Table = lua.load(library::GLOBALS).set_name("=gymrun").call((&natives, &values))?;
    for name in ["author", "policy"] {
        values.raw_set(name, globals.raw_get::<Function>(name)?)?;
    }
    // Nothing has run before: it is not there yet.
    let _ = host(lua)?.prelude.set(Prelude::new(values)?);

    lua.set_named_registry_value(LOADED, lua.create_table()?)?;
    let module = lua.create_table_with_capacity(0, 64)?;
    modules::register(lua, &module)?;
    lua.set_named_registry_value(MODULE, module)?;
    let require = lua.create_function(|lua, name: String| require_for_policy(lua, &name))?;
    lua.set_named_registry_value(POLICY_GLOBALS, prelude(lua, "policy")?.call::<Table>(require)?)
}

/// Functions that the prelude itself needs.
fn natives(lua: &Lua) -> mlua::Result<Table> {
    let natives = lua.create_table()?;
    natives.raw_set(
        "fail",
        lua.create_function(|lua, (message, hint): (String, Option<String>)| -> mlua::Result<()> {
            let problem = Problem::new(message);
            Err(raise_problem(lua, if let Some(hint) = hint { problem.hint(hint) } else { problem }))
        })?,
    )?;
    natives.raw_set("unknown_field", lua.create_function(unknown_field)?)?;
    natives.raw_set("expired", lua.create_function(|lua, ()| Ok(host(lua)?.watch.expired()))?)?;
    natives.raw_set(
        "stop",
        lua.create_function(|_, ()| -> mlua::Result<()> { Err(mlua::Error::external(LimitReached)) })?,
    )?;
    natives.raw_set(
        "getenv",
        lua.create_function(|lua, name: String| Ok(host(lua)?.world.variable(&name).map(str::to_owned)))?,
    )?;
    natives.raw_set("print", lua.create_function(print)?)?;
    Ok(natives)
}

fn unknown_field(lua: &Lua, (label, key, fields): (String, Value, Table)) -> mlua::Result<()> {
    let key = match key {
        Value::String(key) => key.to_string_lossy(),
        other => other.type_name().to_owned(),
    };
    let mut known = Vec::new();
    for pair in fields.pairs::<String, Value>() {
        known.push(pair?.0);
    }
    known.sort();
    let problem = Problem::new(format!("{label} has no field `{key}`"));
    let problem = match nearest(&key, known.iter().map(String::as_str)) {
        Some(name) => problem.hint(format!("did you mean `{name}`?")),
        None => problem.hint(format!("known: {}", known.join(", "))),
    };
    Err(raise_problem(lua, problem))
}

/// `print` and `gym.log`: one line for people, blanks between the parts.
#[expect(clippy::needless_pass_by_value, reason = "the signature that mlua asks for")]
pub fn print(lua: &Lua, parts: Variadic<Value>) -> mlua::Result<()> {
    let mut words = Vec::new();
    for part in parts.iter() {
        words.push(match part {
            Value::UserData(userdata) => match userdata.borrow::<super::late::Late>() {
                Ok(late) => match &*late {
                    super::late::Late::Text(text) => text.to_string(),
                    super::late::Late::Encoded { .. } => "<document>".to_owned(),
                },
                Err(_) => part.to_string()?,
            },
            other => other.to_string()?,
        });
    }
    host(lua)?.log.write(&words.join(" "));
    Ok(())
}

/// A module of the shipped policy, `policy.NAME`.
pub fn policy(lua: &Lua, name: &str) -> mlua::Result<Table> {
    match require_for_policy(lua, name)? {
        Value::Table(table) => Ok(table),
        other => Err(raise(lua, format!("module `{name}` gives a {} instead of a table", other.type_name()))),
    }
}

fn require_for_policy(lua: &Lua, name: &str) -> mlua::Result<Value> {
    if name == "gymrun" {
        return lua.named_registry_value(MODULE);
    }
    let Some(stem) = name.strip_prefix("policy.") else {
        return Err(raise(lua, format!("module `{name}` not found")));
    };
    once(lua, name, |lua| {
        let globals: Table = lua.named_registry_value(POLICY_GLOBALS)?;
        policy_function(lua, name, stem, globals)?.call(name)
    })
}

/// A policy module that is ready to run: from `$GYMRUN_LUA_PATH/policy` if it is there, else from the binary. Its name
/// begins with `=`: frames of policy are skipped where an author is told of a line.
fn policy_function(lua: &Lua, name: &str, stem: &str, globals: Table) -> mlua::Result<Function> {
    if let Some(folder) = host(lua)?.policy_folder() {
        let file = host(lua)?.world.absolute(Path::new(folder)).join("policy").join(format!("{stem}.lua"));
        if is_name(stem) && file.is_file() {
            let file = read(lua, &file)?;
            let chunk = lua.load(text_of(lua, &file)?).set_name(format!("={}", file.display));
            return chunk.set_mode(ChunkMode::Text).set_environment(globals).into_function();
        }
    }
    match library::chunk(stem) {
        Some(chunk) => lua.load(chunk).set_name(format!("={name}")).set_environment(globals).into_function(),
        None => Err(raise_problem(
            lua,
            Problem::new(format!("module `policy.{stem}` not found")).suggest(stem, library::names()),
        )),
    }
}

fn read(lua: &Lua, file: &Path) -> mlua::Result<SourceFile> {
    SourceFile::read(file, Language::Lua, &host(lua)?.world).map_err(|problem| mlua::Error::external(Raised(problem)))
}

/// The globals of a job or fragment whose neighbours lie in `folder`.
fn author_globals(lua: &Lua, folder: &Path) -> mlua::Result<Table> {
    let folder = folder.to_owned();
    let environment: std::rc::Rc<std::cell::RefCell<Option<Table>>> = std::rc::Rc::default();
    let shared = std::rc::Rc::clone(&environment);
    let require = lua.create_function(move |lua, name: String| {
        let environment = shared.borrow().clone();
        require_for_author(lua, &name, &folder, environment.as_ref())
    })?;
    let table: Table = prelude(lua, "author")?.call(require)?;
    environment.replace(Some(table.clone()));
    Ok(table)
}

fn require_for_author(lua: &Lua, name: &str, folder: &Path, globals: Option<&Table>) -> mlua::Result<Value> {
    if name == "gymrun" || name.starts_with("policy.") {
        return match require_for_policy(lua, name)? {
            Value::Table(table) => prelude(lua, "library")?.call((table, name)),
            other => Ok(other),
        };
    }
    let relative = name.replace('.', "/");
    let candidates = [folder.join(format!("{relative}.lua")), folder.join(&relative).join("init.lua")];
    let found = candidates.iter().find(|file| is_name(name) && file.is_file());
    let Some(file) = found else {
        let shown = host(lua)?.world.display(&candidates[0]);
        let problem = Problem::new(format!("module `{name}` not found")).hint(format!(
            "`require` finds `gymrun`, `policy.*` and files beside the job or fragment; {shown} does not exist"
        ));
        return Err(raise_problem(lua, problem));
    };
    once(lua, &file.display().to_string(), |lua| load(lua, &read(lua, file)?, globals.cloned())?.call(name))
}

/// Names of modules: words joined by dots, so that nothing outside of the folder is meant.
fn is_name(name: &str) -> bool {
    !name.is_empty()
        && name
            .split('.')
            .all(|part| !part.is_empty() && part.chars().all(|c| c.is_ascii_alphanumeric() || c == '_' || c == '-'))
}

/// Runs a module once; later calls get its first result. A module that needs itself is an error.
fn once(lua: &Lua, key: &str, load: impl FnOnce(&Lua) -> mlua::Result<Value>) -> mlua::Result<Value> {
    let loaded: Table = lua.named_registry_value(LOADED)?;
    match loaded.raw_get::<Value>(key)? {
        Value::Nil => {}
        Value::Boolean(false) => return Err(raise(lua, format!("module `{key}` requires itself"))),
        value => return Ok(value),
    }
    loaded.raw_set(key, false)?;
    let value = load(lua);
    match &value {
        Ok(Value::Nil | Value::Boolean(false)) => loaded.raw_set(key, true)?,
        Ok(value) => loaded.raw_set(key, value)?,
        Err(_) => loaded.raw_set(key, Value::Nil)?,
    }
    value
}

/// Runs a job or a fragment and gives what it returns.
pub fn run_author(lua: &Lua, file: &SourceFile) -> mlua::Result<Value> {
    let folder = match &file.path {
        Some(path) => path.parent().map(Path::to_owned).unwrap_or_default(),
        None => host(lua)?.world.working_directory.clone(),
    };
    let globals = author_globals(lua, &folder)?;
    let chunk = load(lua, file, Some(globals))?;
    line_by_line(lua, || chunk.call(()))
}

/// The text of a file that is about to be loaded. A first line that begins with `#` is for the shell.
fn text_of(lua: &Lua, file: &SourceFile) -> mlua::Result<String> {
    host(lua)?.add_chunk(&file.display);
    if file.text.starts_with(BYTECODE) {
        let problem = Problem::new("the file is bytecode, not text").in_file(Location::file(file.display.clone()));
        return Err(mlua::Error::external(Raised(problem.hint("give the Lua source that it was compiled from"))));
    }
    Ok(match file.text.strip_prefix('#') {
        Some(rest) => format!("-- {rest}"),
        None => file.text.clone(),
    })
}

/// A file as a function that is ready to run.
fn load(lua: &Lua, file: &SourceFile, globals: Option<Table>) -> mlua::Result<Function> {
    let text = text_of(lua, file)?;
    let chunk = lua.load(text).set_name(format!("@{}", file.display)).set_mode(ChunkMode::Text);
    match globals {
        Some(globals) => chunk.set_environment(globals),
        None => chunk,
    }
    .into_function()
}
