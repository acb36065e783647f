//! Lists, joining, quoting.
#![expect(clippy::needless_pass_by_value, reason = "the signatures that mlua asks for")]

use mlua::{Function, Lua, Table, Value, Variadic};

use super::entry::{LuaFn, param};
use crate::plan::Text;
use crate::policy::convert::data_of;
use crate::policy::failure::raise;
use crate::policy::host::{mark_list, prelude};
use crate::policy::late::{Late, Unset, late, text_of};

/// How deep lists may stand in lists of `gym.args`.
const MAXIMUM_DEPTH: usize = 32;

fn args(lua: &Lua, parts: Variadic<Value>) -> mlua::Result<Value> {
    let list = lua.create_table()?;
    for part in parts.iter() {
        flatten(lua, part, &list, 0)?;
    }
    mark_list(lua, list).map(Value::Table)
}

fn flatten(lua: &Lua, part: &Value, list: &Table, depth: usize) -> mlua::Result<()> {
    match part {
        Value::Nil | Value::Boolean(false) => Ok(()),
        Value::Table(table) => {
            if depth == MAXIMUM_DEPTH {
                return Err(raise(lua, "gym.args: lists are nested too deep, or a list contains itself"));
            }
            let data = data_of(lua, table)?;
            let mut items = Vec::new();
            for pair in data.pairs::<Value, Value>() {
                match pair? {
                    (Value::Integer(index), item) => items.push((index, item)),
                    (Value::String(key), _) => {
                        let key = key.to_string_lossy();
                        return Err(raise(lua, format!("gym.args: a list has the named key `{key}`")));
                    }
                    (key, _) => return Err(raise(lua, format!("gym.args: a list has a {} as key", key.type_name()))),
                }
            }
            items.sort_by_key(|(index, _)| *index);
            items.iter().try_for_each(|(_, item)| flatten(lua, item, list, depth + 1))
        }
        Value::String(_) => list.raw_push(part),
        Value::Integer(number) => list.raw_push(number.to_string()),
        Value::UserData(userdata) if userdata.is::<Late>() => list.raw_push(part),
        other => Err(raise(
            lua,
            format!("gym.args takes text, integers, late values and lists of them, got {}", other.type_name()),
        )),
    }
}

fn join(lua: &Lua, (list, separator): (Value, Option<Value>)) -> mlua::Result<Value> {
    let Value::Table(list) = list else {
        return Err(raise(lua, format!("gym.join takes a list, got {}", list.type_name())));
    };
    let separator = match &separator {
        None | Some(Value::Nil) => Text::default(),
        Some(separator) => text_of(lua, separator)?,
    };
    let mut text = Text::default();
    for index in 1..=list.len()? {
        if index > 1 {
            text.push(&separator);
        }
        text.push(&text_of(lua, &list.get(index)?)?);
    }
    late(lua, text)
}

/// `string.format` in which `%s` also takes late values.
fn format(lua: &Lua, (pattern, arguments): (String, Variadic<Value>)) -> mlua::Result<Value> {
    let string: Table = lua.globals().raw_get("string")?;
    let native: Function = string.raw_get("format")?;
    let mut arguments = arguments.into_iter();
    let mut text = Text::default();
    let mut rest = pattern.as_str();
    while let Some(percent) = rest.find('%') {
        text.push_literal(&rest[..percent]);
        let after = &rest[percent + 1..];
        if let Some(more) = after.strip_prefix('%') {
            text.push_literal("%");
            rest = more;
            continue;
        }
        let Some(end) = after.find(|c: char| c.is_ascii_alphabetic()) else {
            return Err(raise(lua, "gym.format: a `%` at the end; write `%%` for the sign itself"));
        };
        let directive = &rest[percent..=percent + 1 + end];
        let Some(argument) = arguments.next() else {
            return Err(raise(lua, format!("gym.format: no value for `{directive}`")));
        };
        match &argument {
            Value::UserData(userdata) if userdata.is::<Late>() => {
                if directive != "%s" {
                    return Err(raise(lua, format!("gym.format: a late value needs `%s`, not `{directive}`")));
                }
                text.push(&text_of(lua, &argument)?);
            }
            _ => {
                let formatted: mlua::LuaString = native.call((directive, argument))?;
                text.push_literal(&formatted.to_str()?);
            }
        }
        rest = &after[end + 1..];
    }
    text.push_literal(rest);
    late(lua, text)
}

fn quote(lua: &Lua, value: Value) -> mlua::Result<String> {
    match &value {
        Value::String(text) => match text.to_str() {
            Ok(text) => match shlex::try_quote(&text) {
                Ok(quoted) => Ok(quoted.into_owned()),
                Err(_) => Err(raise(lua, "gym.quote: text with a NUL byte cannot stand in a command")),
            },
            Err(_) => Err(raise(lua, "gym.quote: text is not UTF-8")),
        },
        Value::Integer(number) => Ok(number.to_string()),
        Value::UserData(_) => {
            Err(raise(lua, "gym.quote: a late value cannot stand in shell text; put it into `env` and write \"$NAME\""))
        }
        other => Err(raise(lua, format!("gym.quote takes text, got {}", other.type_name()))),
    }
}

fn list(lua: &Lua, value: Value) -> mlua::Result<Value> {
    match value {
        Value::Table(table) => prelude(lua, "list")?.call(table),
        other => Err(raise(lua, format!("gym.list takes a table, got {}", other.type_name()))),
    }
}

fn filter(lua: &Lua, (list, keep): (Value, Value)) -> mlua::Result<Value> {
    match (list, keep) {
        (Value::Table(list), Value::Function(keep)) => prelude(lua, "filter")?.call((list, keep)),
        _ => Err(raise(lua, "gym.filter takes a list and a function")),
    }
}

const TEXT: &str = "string|gymrun.Late";

/// Entries of this group.
pub const FUNCTIONS: &[LuaFn] = &[
    LuaFn {
        name: "args",
        params: Some(&[param("...", "any")]),
        returns: "list",
        doc: "One flat list of everything given; lists are opened, `nil` and `false` dropped, integers become text.",
        value: |lua| Ok(Value::Function(lua.create_function(args)?)),
    },
    LuaFn {
        name: "join",
        params: Some(&[param("list", "list"), param("separator?", "string")]),
        returns: TEXT,
        doc: "The parts of a list as one text; late values may be among them.",
        value: |lua| Ok(Value::Function(lua.create_function(join)?)),
    },
    LuaFn {
        name: "format",
        params: Some(&[param("text", "string"), param("...", "any")]),
        returns: TEXT,
        doc: "`string.format` in which `%s` also takes late values.",
        value: |lua| Ok(Value::Function(lua.create_function(format)?)),
    },
    LuaFn {
        name: "quote",
        params: Some(&[param("text", "string")]),
        returns: "string",
        doc: "The text as one word of a shell.",
        value: |lua| Ok(Value::Function(lua.create_function(quote)?)),
    },
    LuaFn {
        name: "filter",
        params: Some(&[param("list", "list"), param("keep", "fun(item: any): boolean")]),
        returns: "list",
        doc: "A new list of the items for which `keep` is true.",
        value: |lua| Ok(Value::Function(lua.create_function(filter)?)),
    },
    LuaFn {
        name: "list",
        params: Some(&[param("items", "table")]),
        returns: "list",
        doc: "A copy that is a list even if it is empty.",
        value: |lua| Ok(Value::Function(lua.create_function(list)?)),
    },
    LuaFn {
        name: "unset",
        params: None,
        returns: "gymrun.Unset",
        doc: "The removal mark: takes away what the layers below say.",
        value: |lua| Ok(Value::UserData(lua.create_userdata(Unset)?)),
    },
];
