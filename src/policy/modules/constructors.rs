//! Constructors: they copy what the author wrote, note the line, and make it read-only. What they hold is checked with
//! the whole job, so that every problem is said at once.
#![expect(clippy::needless_pass_by_value, reason = "the signatures that mlua asks for")]

use mlua::{Lua, Value};

use super::entry::{LuaFn, Param, param};
use crate::inputs::merge;
use crate::policy::convert::{to_lua, to_node};
use crate::policy::failure::raise;
use crate::policy::host::{author_line, host, prelude};
use crate::policy::late::Peer;

const FIELDS: Option<&[Param]> = Some(&[param("fields", "table")]);

/// A constructor's function: `KIND` is what the value is, `TYPE` the `type` it sets (empty: none).
fn constructor(lua: &Lua, kind: &'static str, type_name: Option<&'static str>) -> mlua::Result<Value> {
    let function = lua.create_function(move |lua, fields: Value| finish(lua, kind, type_name, &fields))?;
    Ok(Value::Function(function))
}

fn finish(lua: &Lua, kind: &str, type_name: Option<&str>, fields: &Value) -> mlua::Result<Value> {
    let Value::Table(fields) = fields else {
        return Err(raise(lua, format!("gym.{kind} takes one table, got {}", fields.type_name())));
    };
    let location = author_line(lua);
    prelude(lua, "finish")?.call((fields, kind, type_name, &*location.file, location.line))
}

fn peer(lua: &Lua, name: Value) -> mlua::Result<Value> {
    let Value::String(text) = &name else {
        return Err(raise(lua, format!("gym.peer takes the name of a server, got {}", name.type_name())));
    };
    Ok(Value::UserData(lua.create_userdata(Peer(text.to_string_lossy()))?))
}

fn extend(lua: &Lua, (base, changes): (Value, Value)) -> mlua::Result<Value> {
    let (Value::Table(_), Value::Table(_)) = (&base, &changes) else {
        return Err(raise(lua, "gym.extend takes two tables"));
    };
    let location = author_line(lua);
    let mut layers = Vec::new();
    for layer in [base, changes] {
        let before = host(lua)?.problems.borrow().iter().count();
        let node = to_node(lua, &layer, &location, "", true)?;
        if let Some(problem) = host(lua)?.problems.borrow().iter().nth(before).cloned() {
            return Err(mlua::Error::external(crate::policy::failure::Raised(problem)));
        }
        layers.extend(node);
    }
    let merged = layers.into_iter().reduce(merge);
    merged.map_or(Ok(Value::Nil), |merged| to_lua(lua, &merged))
}

/// Entries of this group.
pub const FUNCTIONS: &[LuaFn] = &[
    LuaFn {
        name: "job",
        params: FIELDS,
        returns: "table",
        doc: "A job: what a job file returns.",
        value: |lua| constructor(lua, "job", None),
    },
    LuaFn {
        name: "site",
        params: FIELDS,
        returns: "table",
        doc: "A site fragment: what a file in `site-fragments` returns.",
        value: |lua| constructor(lua, "site", None),
    },
    LuaFn {
        name: "server",
        params: FIELDS,
        returns: "table",
        doc: "A NeMo Gym server; `type` is `resources_servers`, `responses_api_agents`, `responses_api_models` or \
              `environment_servers`.",
        value: |lua| constructor(lua, "server", None),
    },
    LuaFn {
        name: "vllm",
        params: FIELDS,
        returns: "table",
        doc: "A vLLM server: a service of type `vllm`.",
        value: |lua| constructor(lua, "vllm", Some("vllm")),
    },
    LuaFn {
        name: "vllm_pd",
        params: FIELDS,
        returns: "table",
        doc: "vLLM with prefill and decode apart: a service of type `vllm_pd`. Not supported yet.",
        value: |lua| constructor(lua, "vllm_pd", Some("vllm_pd")),
    },
    LuaFn {
        name: "ray",
        params: FIELDS,
        returns: "table",
        doc: "A Ray cluster: a service of type `ray`. Not supported yet.",
        value: |lua| constructor(lua, "ray", Some("ray")),
    },
    LuaFn {
        name: "task",
        params: FIELDS,
        returns: "table",
        doc: "A command that is ready when it has ended with 0: a service of type `task`.",
        value: |lua| constructor(lua, "task", Some("task")),
    },
    LuaFn {
        name: "environment",
        params: FIELDS,
        returns: "table",
        doc: "Servers from Gym's own config files. Not supported yet.",
        value: |lua| constructor(lua, "environment", None),
    },
    LuaFn {
        name: "eval",
        params: FIELDS,
        returns: "table",
        doc: "A driver that runs `gym eval run --no-serve` against the servers of the job: a driver of type `eval`.",
        value: |lua| constructor(lua, "eval", Some("eval")),
    },
    LuaFn {
        name: "sandbox",
        params: FIELDS,
        returns: "table",
        doc: "Sandboxes that the job asks for. Not supported yet.",
        value: |lua| constructor(lua, "sandbox", None),
    },
    LuaFn {
        name: "opensandbox",
        params: FIELDS,
        returns: "table",
        doc: "A sandbox provider. Not supported yet.",
        value: |lua| constructor(lua, "opensandbox", Some("opensandbox")),
    },
    LuaFn {
        name: "peer",
        params: Some(&[param("name", "string")]),
        returns: "gymrun.Peer",
        doc: "In the `config` of a server: a reference to another server, which also makes it a dependency.",
        value: |lua| Ok(Value::Function(lua.create_function(peer)?)),
    },
    LuaFn {
        name: "extend",
        params: Some(&[param("base", "table"), param("changes", "table")]),
        returns: "table",
        doc: "A new table: `changes` laid over `base` as one layer over another (maps are merged, lists replaced, \
              `gym.unset` removes). `base` may be a finished value.",
        value: |lua| Ok(Value::Function(lua.create_function(extend)?)),
    },
];
