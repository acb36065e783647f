//! Who runs the job, where its files lie, what is said on the way.

use std::path::Path;

use mlua::{Lua, Table, Value};

use super::entry::{LuaFn, param};
use crate::policy::failure::raise;
use crate::policy::host::{author_line, host};
use crate::policy::sandbox::print;

fn user(lua: &Lua, (): ()) -> mlua::Result<Table> {
    let host = host(lua)?;
    let user = lua.create_table()?;
    user.raw_set("name", host.world.user.as_str())?;
    user.raw_set("uid", host.world.uid)?;
    Ok(user)
}

fn here(lua: &Lua, below: Option<String>) -> mlua::Result<String> {
    let folder = host(lua)?.world.directory_of(&author_line(lua));
    let path = match below {
        Some(below) => folder.join(Path::new(below.trim_start_matches('/'))),
        None => folder,
    };
    match path.to_str() {
        Some(path) => Ok(path.to_owned()),
        None => Err(raise(lua, "gym.here: the path of this file is not UTF-8")),
    }
}

/// Entries of this group.
pub const FUNCTIONS: &[LuaFn] = &[
    LuaFn {
        name: "user",
        params: Some(&[]),
        returns: "{name: string, uid: integer}",
        doc: "Who runs the job.",
        value: |lua| Ok(Value::Function(lua.create_function(user)?)),
    },
    LuaFn {
        name: "here",
        params: Some(&[param("path?", "string")]),
        returns: "string",
        doc: "The directory of this file, or the path of something beside it.",
        value: |lua| Ok(Value::Function(lua.create_function(here)?)),
    },
    LuaFn {
        name: "log",
        params: Some(&[param("...", "any")]),
        returns: "nil",
        doc: "A line on standard error when gymrun runs with `-v`. `print` is the same.",
        value: |lua| Ok(Value::Function(lua.create_function(print)?)),
    },
];
