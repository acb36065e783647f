//! The shipped policy, embedded: `lua/policy/*.lua` and the built-in site fragments.

use crate::inputs::{BuiltIn, Language};

macro_rules! files {
    ($folder:literal: $($name:literal),* $(,)?) => {
        &[$(($name, include_str!(concat!("../../", $folder, "/", $name, ".lua")))),*]
    };
}

/// The modules `policy.NAME`.
const LIBRARY: &[(&str, &str)] =
    files!("lua/policy": "attributes", "collector", "command", "gym", "scrape", "telemetry_env", "vllm");

/// Fragments that are found after all folders.
const FRAGMENTS: &[(&str, &str)] = files!("site-fragments": "local");

/// The module that makes nemo-lens 0.1.0 work inside a Gym server, a Python file.
pub const SITECUSTOMIZE: &str = include_str!("../../lua/policy/python/sitecustomize.py");

/// The source of `policy.NAME`.
#[must_use]
pub fn source(name: &str) -> Option<&'static str> {
    LIBRARY.iter().find(|(known, _)| *known == name).map(|(_, text)| *text)
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
