//! Late values: text that is known at launch only, as Lua sees it.

use std::sync::Arc;

use mlua::{Lua, MetaMethod, UserData, UserDataMethods, Value};

use super::failure::raise;
use crate::plan::{Encoding, Reference, Segment, Text, Tree};

/// The largest text that `..` makes; doubling a late value forty times must not take the machine's memory.
const MAXIMUM_BYTES: usize = 16 * 1024 * 1024;

/// A late value in Lua's hands.
#[derive(Clone, Debug)]
pub enum Late {
    /// Text with references.
    Text(Text),
    /// A whole document that is encoded at launch.
    Encoded {
        /// As what.
        encoding: Encoding,
        /// The document.
        value: Arc<Tree>,
    },
}

/// `gym.unset`.
#[derive(Clone, Copy, Debug)]
pub struct Unset;

/// `gym.peer`: the name of another server.
#[derive(Clone, Debug)]
pub struct Peer(pub String);

impl UserData for Peer {}

impl UserData for Unset {
    fn add_methods<M: UserDataMethods<Self>>(methods: &mut M) {
        methods.add_meta_function(MetaMethod::ToString, |_, _: Value| Ok("gym.unset"));
    }
}

impl UserData for Late {
    fn add_methods<M: UserDataMethods<Self>>(methods: &mut M) {
        methods.add_meta_function(MetaMethod::Concat, |lua, (left, right): (Value, Value)| {
            let mut text = text_of(lua, &left)?;
            text.push(&text_of(lua, &right)?);
            late(lua, text)
        });
        for (method, what) in [
            (MetaMethod::ToString, "turned into text now: use `..`, gym.join or gym.format"),
            (MetaMethod::Len, "measured"),
            (MetaMethod::Lt, "compared"),
            (MetaMethod::Le, "compared"),
            (MetaMethod::Index, "indexed or asked for a method"),
            (MetaMethod::Call, "called"),
        ] {
            methods.add_meta_function(method, move |lua, _: mlua::Variadic<Value>| {
                Err::<Value, _>(raise(lua, format!("a value that is known at launch only cannot be {what}")))
            });
        }
    }
}

/// `text` as Lua gets it: a string where nothing of it is late.
pub fn late(lua: &Lua, text: Text) -> mlua::Result<Value> {
    if let Some(literal) = text.as_literal() {
        return Ok(Value::String(lua.create_string(literal)?));
    }
    let size: usize = text
        .segments()
        .iter()
        .map(|s| match s {
            Segment::Literal(literal) => literal.len(),
            Segment::Reference(_) => 64,
        })
        .sum();
    if size > MAXIMUM_BYTES {
        return Err(raise(lua, "the text is larger than 16 MiB"));
    }
    Ok(Value::UserData(lua.create_userdata(Late::Text(text))?))
}

/// One reference as Lua gets it.
pub fn reference(lua: &Lua, reference: Reference) -> mlua::Result<Value> {
    late(lua, Text::reference(reference))
}

/// A string, an integer or a late value as text.
pub fn text_of(lua: &Lua, value: &Value) -> mlua::Result<Text> {
    match value {
        Value::String(string) => match string.to_str() {
            Ok(string) => Ok(Text::literal(&*string)),
            Err(_) => Err(raise(lua, "text is not UTF-8")),
        },
        Value::Integer(number) => Ok(Text::literal(number.to_string())),
        Value::UserData(userdata) => match userdata.borrow::<Late>() {
            Ok(late) => match &*late {
                Late::Text(text) => Ok(text.clone()),
                Late::Encoded { .. } => Err(raise(
                    lua,
                    "a document with late values cannot be part of a longer text: give it as a whole value of `env` or \
                     `files`",
                )),
            },
            Err(_) => Err(raise(lua, "expected text, got gym.unset")),
        },
        other => Err(raise(lua, format!("expected text, an integer or a late value, got {}", other.type_name()))),
    }
}
