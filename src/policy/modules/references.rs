//! Values that only the launch knows, and those of gymrun's own environment.
#![expect(clippy::needless_pass_by_value, reason = "the signatures that mlua asks for")]

use mlua::{Lua, Value, Variadic};

use super::entry::{LuaFn, param};
use crate::diag::Problem;
use crate::plan::{Reference, Text};
use crate::policy::failure::{raise, raise_problem};
use crate::policy::host::host;
use crate::policy::late::{late, reference};

/// The process itself, until the plan is compiled.
const SELF: &str = "self";

/// An optional argument that must be text. A `nil` that was given on purpose is no argument that is missing.
fn name_of(lua: &Lua, function: &str, arguments: &Variadic<Value>, index: usize) -> mlua::Result<Option<String>> {
    match arguments.get(index) {
        None => Ok(None),
        Some(Value::String(text)) => match text.to_str() {
            Ok(text) => Ok(Some(text.to_owned())),
            Err(_) => Err(raise(lua, format!("gym.{function}: argument {} is not UTF-8", index + 1))),
        },
        Some(other) => {
            Err(raise(lua, format!("gym.{function}: argument {} must be text, got {}", index + 1, other.type_name())))
        }
    }
}

fn required(lua: &Lua, function: &str, arguments: &Variadic<Value>, index: usize) -> mlua::Result<String> {
    match name_of(lua, function, arguments, index)? {
        Some(name) if !name.is_empty() => Ok(name),
        _ => Err(raise(lua, format!("gym.{function} needs a name"))),
    }
}

fn env(lua: &Lua, arguments: Variadic<Value>) -> mlua::Result<String> {
    let name = required(lua, "env", &arguments, 0)?;
    let default = name_of(lua, "env", &arguments, 1)?;
    if let Some(value) = host(lua)?.world.variable(&name) {
        return Ok(value.to_owned());
    }
    default.ok_or_else(|| {
        let hint = format!("export {name}, or give a default: gym.env(\"{name}\", \"...\")");
        raise_problem(lua, Problem::new(format!("the environment variable `{name}` is not set")).hint(hint))
    })
}

fn secret(lua: &Lua, arguments: Variadic<Value>) -> mlua::Result<Value> {
    let name = required(lua, "secret", &arguments, 0)?;
    let default = name_of(lua, "secret", &arguments, 1)?;
    reference(lua, Reference::Secret { name, default })
}

fn runtime(lua: &Lua, arguments: Variadic<Value>) -> mlua::Result<Value> {
    let name = required(lua, "runtime", &arguments, 0)?;
    let default = name_of(lua, "runtime", &arguments, 1)?;
    reference(lua, Reference::Inherited { name, default })
}

fn port(lua: &Lua, arguments: Variadic<Value>) -> mlua::Result<Value> {
    let process = name_of(lua, "port", &arguments, 0)?.unwrap_or_else(|| SELF.to_owned());
    let key = name_of(lua, "port", &arguments, 1)?;
    reference(lua, Reference::Port { process, key })
}

fn host_of(lua: &Lua, arguments: Variadic<Value>) -> mlua::Result<Value> {
    let process = name_of(lua, "host", &arguments, 0)?.unwrap_or_else(|| SELF.to_owned());
    reference(lua, Reference::Host { process })
}

fn url(lua: &Lua, arguments: Variadic<Value>) -> mlua::Result<Value> {
    let process = name_of(lua, "url", &arguments, 0)?.unwrap_or_else(|| SELF.to_owned());
    let path = name_of(lua, "url", &arguments, 1)?.unwrap_or_default();
    let mut text = Text::reference(Reference::Url { process });
    text.push_literal(&path);
    late(lua, text)
}

fn job_dir(lua: &Lua, arguments: Variadic<Value>) -> mlua::Result<Value> {
    let mut text = Text::reference(Reference::JobDir);
    if let Some(below) = name_of(lua, "job_dir", &arguments, 0)? {
        text.push_literal("/");
        text.push_literal(below.trim_start_matches('/'));
    }
    late(lua, text)
}

fn file(lua: &Lua, arguments: Variadic<Value>) -> mlua::Result<Value> {
    let name = required(lua, "file", &arguments, 0)?;
    let mut text = Text::reference(Reference::JobDir);
    text.push_literal("/files/");
    text.push_literal(&name);
    late(lua, text)
}

fn job_id(lua: &Lua, (): ()) -> mlua::Result<String> {
    Ok(host(lua)?.job_id.clone())
}

const LATE: &str = "gymrun.Late";

/// Entries of this group.
pub const FUNCTIONS: &[LuaFn] = &[
    LuaFn {
        name: "env",
        params: Some(&[param("name", "string"), param("default?", "string")]),
        returns: "string",
        doc: "A variable of gymrun's own environment, read now. An unset one without a default is an error.",
        value: |lua| Ok(Value::Function(lua.create_function(env)?)),
    },
    LuaFn {
        name: "secret",
        params: Some(&[param("name", "string"), param("default?", "string")]),
        returns: LATE,
        doc: "A variable of gymrun's own environment that is read at launch and never printed or stored. Refused in \
              `command`, `shell`, `files`, `attributes` and `labels`.",
        value: |lua| Ok(Value::Function(lua.create_function(secret)?)),
    },
    LuaFn {
        name: "runtime",
        params: Some(&[param("name", "string"), param("default?", "string")]),
        returns: LATE,
        doc: "A variable of the environment where the process starts; `${env:NAME}` in collector.yaml.",
        value: |lua| Ok(Value::Function(lua.create_function(runtime)?)),
    },
    LuaFn {
        name: "port",
        params: Some(&[param("process?", "string"), param("key?", "string")]),
        returns: LATE,
        doc: "The port of a process (its own if none is named); with `key` one of its further `ports`.",
        value: |lua| Ok(Value::Function(lua.create_function(port)?)),
    },
    LuaFn {
        name: "host",
        params: Some(&[param("process?", "string")]),
        returns: LATE,
        doc: "The host of a process, seen from where the value is used: `127.0.0.1` on the same node.",
        value: |lua| Ok(Value::Function(lua.create_function(host_of)?)),
    },
    LuaFn {
        name: "url",
        params: Some(&[param("process?", "string"), param("path?", "string")]),
        returns: LATE,
        doc: "`http://HOST:PORT` of a process, and the path after it.",
        value: |lua| Ok(Value::Function(lua.create_function(url)?)),
    },
    LuaFn {
        name: "job_dir",
        params: Some(&[param("sub?", "string")]),
        returns: LATE,
        doc: "The absolute path of the job directory, or of something in it.",
        value: |lua| Ok(Value::Function(lua.create_function(job_dir)?)),
    },
    LuaFn {
        name: "file",
        params: Some(&[param("name", "string")]),
        returns: LATE,
        doc: "The absolute path of an entry of the job's `files`.",
        value: |lua| Ok(Value::Function(lua.create_function(file)?)),
    },
    LuaFn {
        name: "job_id",
        params: Some(&[]),
        returns: "string",
        doc: "The job id.",
        value: |lua| Ok(Value::Function(lua.create_function(job_id)?)),
    },
];
