//! How a function of `require "gymrun"` is described.

use mlua::{Lua, Table, Value};

/// A parameter as an editor shows it.
#[derive(Clone, Copy, Debug)]
pub struct Param {
    /// Its name; `...` for the rest; a `?` at the end makes it optional.
    pub name: &'static str,
    /// Its type in the language server's words.
    pub kind: &'static str,
}

/// One entry of the module: everything about it in one place.
#[derive(Clone, Copy, Debug)]
pub struct LuaFn {
    /// The name in the module.
    pub name: &'static str,
    /// `None`: a value, not a function.
    pub params: Option<&'static [Param]>,
    /// The type of what it gives.
    pub returns: &'static str,
    /// What it is for, in one paragraph.
    pub doc: &'static str,
    /// Makes the value that scripts get.
    pub value: fn(&Lua) -> mlua::Result<Value>,
}

/// A group of entries and its heading in the reference.
pub type Module = (&'static str, &'static [LuaFn]);

/// Every group, in the order of the reference.
pub const MODULES: &[Module] = &[
    ("Constructors", super::constructors::FUNCTIONS),
    ("Values that are known at launch", super::references::FUNCTIONS),
    ("Lists and text", super::lists::FUNCTIONS),
    ("Documents", super::documents::FUNCTIONS),
    ("The machine and the run", super::machine::FUNCTIONS),
];

/// Puts every entry into the module's table.
pub fn register(lua: &Lua, module: &Table) -> mlua::Result<()> {
    for (_, entries) in MODULES {
        for entry in *entries {
            module.raw_set(entry.name, (entry.value)(lua)?)?;
        }
    }
    Ok(())
}

/// A parameter.
pub const fn param(name: &'static str, kind: &'static str) -> Param {
    Param { name, kind }
}
