//! JSON and YAML documents.
#![expect(clippy::needless_pass_by_value, reason = "the signatures that mlua asks for")]

use mlua::{Lua, Value};
use serde_json::Value as Json;

use super::entry::{LuaFn, param};
use crate::plan::{Encoding, Tree};
use crate::policy::convert::tree_of;
use crate::policy::failure::raise;
use crate::policy::late::Late;

fn json(lua: &Lua, value: Value) -> mlua::Result<Value> {
    encode(lua, &value, Encoding::Json)
}

fn yaml(lua: &Lua, value: Value) -> mlua::Result<Value> {
    encode(lua, &value, Encoding::Yaml)
}

/// Text where nothing is late, else a document that is encoded at launch, so that what is filled in is escaped.
fn encode(lua: &Lua, value: &Value, encoding: Encoding) -> mlua::Result<Value> {
    let tree = tree_of(lua, value)?;
    let Some(json) = literal(&tree) else {
        return Ok(Value::UserData(lua.create_userdata(Late::Encoded { encoding, value: tree.into() })?));
    };
    let text = match encoding {
        Encoding::Json => serde_json::to_string(&json).map_err(|error| raise(lua, error.to_string()))?,
        Encoding::Yaml | Encoding::Collector => crate::yaml::write(&json),
    };
    Ok(Value::String(lua.create_string(text)?))
}

/// The document without references, or nothing if it has one.
pub fn literal(tree: &Tree) -> Option<Json> {
    Some(match tree {
        Tree::Null => Json::Null,
        Tree::Bool(value) => Json::Bool(*value),
        Tree::Int(value) => Json::from(*value),
        Tree::Float(value) => serde_json::Number::from_f64(*value).map_or(Json::Null, Json::Number),
        Tree::Text(text) => Json::String(text.as_literal()?.to_owned()),
        Tree::List(list) => Json::Array(list.iter().map(literal).collect::<Option<_>>()?),
        Tree::Map(map) => Json::Object(map.iter().map(|(k, v)| Some((k.clone(), literal(v)?))).collect::<Option<_>>()?),
    })
}

/// Entries of this group.
pub const FUNCTIONS: &[LuaFn] = &[
    LuaFn {
        name: "json",
        params: Some(&[param("value", "any")]),
        returns: "string|gymrun.Late",
        doc: "One JSON document, keys sorted. With late values in it, it may stand where a whole value of `env` or `files` \
              is due.",
        value: |lua| Ok(Value::Function(lua.create_function(json)?)),
    },
    LuaFn {
        name: "yaml",
        params: Some(&[param("value", "any")]),
        returns: "string|gymrun.Late",
        doc: "The same as YAML.",
        value: |lua| Ok(Value::Function(lua.create_function(yaml)?)),
    },
];
