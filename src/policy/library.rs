//! The shipped policy, embedded: `lua/policy/*.lua` and the built-in site fragments.

use crate::inputs::{BuiltIn, Language};

/// A chunk of Lua of our own as `build.rs` leaves it: compiled, or as text where it could not be.
macro_rules! chunk {
    ($name:literal) => {
        include_bytes!(concat!(env!("OUT_DIR"), "/", $name)).as_slice()
    };
}

macro_rules! policy {
    ($($name:literal),*) => {
        &[$(($name, include_bytes!(concat!(env!("OUT_DIR"), "/policy/", $name)).as_slice())),*]
    };
}

/// The modules `policy.NAME`.
const LIBRARY: &[(&str, &[u8])] =
    policy!("attributes", "collector", "command", "gym", "scrape", "telemetry_env", "vllm");

/// The prelude's values, which authors see behind proxies.
pub const VALUES: &[u8] = chunk!("prelude/values");
/// The prelude's globals.
pub const GLOBALS: &[u8] = chunk!("prelude/globals");

/// Fragments that are found after all folders.
const FRAGMENTS: &[(&str, &str)] = &[("local", include_str!("../../site-fragments/local.lua"))];

/// The module that makes nemo-lens 0.1.0 work inside a Gym server, a Python file.
pub const SITECUSTOMIZE: &str = include_str!("../../lua/policy/python/sitecustomize.py");

/// The chunk of `policy.NAME`.
#[must_use]
pub fn chunk(name: &str) -> Option<&'static [u8]> {
    LIBRARY.iter().find(|(known, _)| *known == name).map(|(_, chunk)| *chunk)
}

/// The names of all modules.
pub fn names() -> impl Iterator<Item = &'static str> {
    LIBRARY.iter().map(|(name, _)| *name)
}

/// The built-in fragments.
#[must_use]
pub fn fragments() -> Vec<BuiltIn> {
    FRAGMENTS.iter().map(|&(name, text)| BuiltIn { name, language: Language::Lua, text }).collect()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    fn on_disk(folder: &str) -> BTreeSet<String> {
        std::fs::read_dir(std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join(folder))
            .expect("the folder is in the repository")
            .filter_map(|entry| Some(entry.ok()?.file_name().to_str()?.strip_suffix(".lua")?.to_owned()))
            .collect()
    }

    #[test]
    fn every_shipped_file_is_embedded() {
        assert_eq!(super::names().map(str::to_owned).collect::<BTreeSet<_>>(), on_disk("lua/policy"));
        assert_eq!(
            super::fragments().iter().map(|f| f.name.to_owned()).collect::<BTreeSet<_>>(),
            on_disk("site-fragments")
        );
    }
}
