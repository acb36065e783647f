//! Files that people write: their text, their name, their language.

use std::path::{Path, PathBuf};

use super::world::World;
use crate::diag::{Location, Problem};

/// What a file is written in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Language {
    /// `.lua`
    Lua,
    /// `.yaml` or `.yml`
    Yaml,
}

/// A file that has been read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SourceFile {
    /// Its name in problems and in the plan.
    pub display: String,
    /// Absolute; `None` for a file in the binary.
    pub path: Option<PathBuf>,
    /// What it is written in.
    pub language: Language,
    /// Its text, without a byte order mark.
    pub text: String,
}

impl SourceFile {
    /// Reads a job file.
    pub fn read_job(path: &Path, world: &World) -> Result<Self, Problem> {
        let language = match path.extension().and_then(|e| e.to_str()) {
            Some("lua") => Language::Lua,
            Some("yaml" | "yml") => Language::Yaml,
            _ => {
                return Err(Problem::new("a job file ends in `.lua`, `.yaml` or `.yml`")
                    .in_file(Location::file(world.display(path))));
            }
        };
        Self::read(path, language, world)
    }

    /// Reads a file of that language.
    pub fn read(path: &Path, language: Language, world: &World) -> Result<Self, Problem> {
        let path = world.absolute(path);
        let display = world.display(&path);
        let bytes = std::fs::read(&path).map_err(|error| {
            Problem::new(format!("cannot read the file: {}", reason(&error))).in_file(Location::file(display.clone()))
        })?;
        let text = String::from_utf8(bytes).map_err(|error| {
            let before = &error.as_bytes()[..error.utf8_error().valid_up_to()];
            let line = before.split(|byte| *byte == b'\n').count();
            Problem::new("the file is not UTF-8")
                .in_file(Location::new(display.clone(), u32::try_from(line).unwrap_or(u32::MAX)))
                .hint("save it as UTF-8")
        })?;
        let text = text.strip_prefix('\u{feff}').map(str::to_owned).unwrap_or(text);
        Ok(Self { display, path: Some(path), language, text })
    }
}

/// What the system says, without its error number.
fn reason(error: &std::io::Error) -> String {
    let text = error.to_string();
    let text = text.split(" (os error").next().unwrap_or(&text);
    let mut chars = text.chars();
    chars.next().map_or_else(String::new, |first| first.to_lowercase().chain(chars).collect())
}
