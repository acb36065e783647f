//! What is made before gymrun is compiled: Lua of our own as bytecode.

use std::error::Error;
use std::path::Path;
use std::{env, fs};

use mlua::Lua;

fn main() -> Result<(), Box<dyn Error>> {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-changed=lua");
    // Messages name lines of the policy, whose modules people may replace. The prelude has no lines that could tell anybody
    // anything, and without them the hook that looks at each line of an author's file passes it by.
    compile("policy", "=policy.", false)?;
    compile("prelude", "=gymrun.", true)
}

/// Compiles each Lua file of a folder: reading the source again at each start would be a fifth of `gymrun plan`.
fn compile(folder: &str, prefix: &str, strip: bool) -> Result<(), Box<dyn Error>> {
    let made = Path::new(&env::var("OUT_DIR")?).join(folder);
    fs::create_dir_all(&made)?;
    // Bytecode is of one kind of machine. For another one the text is kept, which Lua tells apart by the first byte.
    let same_machine = env::var("HOST")? == env::var("TARGET")?;
    let lua = Lua::new();
    for entry in fs::read_dir(Path::new("lua").join(folder))? {
        let path = entry?.path();
        if path.extension().is_none_or(|extension| extension != "lua") {
            continue;
        }
        let stem = path.file_stem().unwrap_or_default().to_string_lossy();
        let text = fs::read_to_string(&path)?;
        let function = lua.load(&text).set_name(format!("{prefix}{stem}")).into_function()?;
        fs::write(made.join(&*stem), if same_machine { function.dump(strip) } else { text.into_bytes() })?;
    }
    Ok(())
}
