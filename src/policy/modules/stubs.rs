//! The editor's stubs and the reference page, made from the same list as the module itself.

use std::fmt::Write as _;

use super::entry::{LuaFn, MODULES};

/// `lua/types/gymrun.d.lua`: definitions for the Lua language server.
#[must_use]
pub fn definitions() -> String {
    let mut out = String::from(
        "---@meta gymrun\n\
         -- Generated from the functions themselves; `GYMRUN_BLESS=1 cargo test --lib stubs` writes it anew.\n\n\
         ---Text that is known at launch only. It can be joined with `..` and looked at in no other way.\n\
         ---@class gymrun.Late\n---@operator concat(string|integer|gymrun.Late): gymrun.Late\n\n\
         ---The removal mark.\n---@class gymrun.Unset\n\n\
         ---Another server, in a server's `config`.\n---@class gymrun.Peer\n\n\
         ---A sequence without holes.\n---@alias list any[]\n\n\
         ---@class gymrun\nlocal gymrun = {}\n",
    );
    for (_, entries) in MODULES {
        for entry in *entries {
            out.push('\n');
            out.push_str(&definition(entry));
        }
    }
    out.push_str("\nreturn gymrun\n");
    out
}

fn definition(entry: &LuaFn) -> String {
    let mut out = format!("---{}\n", entry.doc);
    let Some(params) = entry.params else {
        return format!("{out}---@type {}\ngymrun.{} = nil\n", entry.returns, entry.name);
    };
    for param in params {
        let _ = writeln!(out, "---@param {} {}", param.name, param.kind);
    }
    if entry.returns != "nil" {
        let _ = writeln!(out, "---@return {}", entry.returns);
    }
    let names: Vec<&str> = params.iter().map(|param| param.name.trim_end_matches('?')).collect();
    format!("{out}function gymrun.{}({}) end\n", entry.name, names.join(", "))
}

/// `docs/reference/lua.md`: the same for people.
#[must_use]
pub fn reference() -> String {
    let mut out = String::from(
        "# Functions of `require \"gymrun\"`\n\n\
         Generated from the functions themselves; `GYMRUN_BLESS=1 cargo test --lib stubs` writes it anew.\n\n\
         A *late* value is text that is known at launch only. `..` joins it with text and integers; `tostring`,\n\
         `string.format`, `table.concat`, `#` and `<` on it are errors, and `==` is never true of two of them.\n",
    );
    for (heading, entries) in MODULES {
        let _ = writeln!(out, "\n## {heading}\n\n| function | result | meaning |\n|---|---|---|");
        for entry in *entries {
            let call = match entry.params {
                None => format!("gym.{}", entry.name),
                Some(params) => {
                    let names: Vec<&str> = params.iter().map(|param| param.name).collect();
                    format!("gym.{}({})", entry.name, names.join(", "))
                }
            };
            let returns = entry.returns.replace('|', "\\|").replace("gymrun.Late", "late");
            let _ = writeln!(out, "| `{call}` | {returns} | {} |", entry.doc);
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    #[test]
    fn stubs_and_reference_are_as_generated() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR"));
        for (file, text) in
            [("lua/types/gymrun.d.lua", super::definitions()), ("docs/reference/lua.md", super::reference())]
        {
            let path = root.join(file);
            if std::env::var_os("GYMRUN_BLESS").is_some() {
                std::fs::create_dir_all(path.parent().expect("a file has a folder")).expect("the folder can be made");
                std::fs::write(&path, &text).expect("the file can be written");
            }
            let found = std::fs::read_to_string(&path).unwrap_or_default();
            assert!(found == text, "{file} differs from the functions; GYMRUN_BLESS=1 writes it anew");
        }
    }
}
