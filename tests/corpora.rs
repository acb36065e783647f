//! The corpora of the fuzz targets as tests: what was found once is not found again.

#[path = "../fuzz/src/lib.rs"]
mod targets;

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use targets::TARGETS;

fn folder(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("fuzz").join(name)
}

/// The names in a folder, without their endings.
fn names(folder: &Path) -> BTreeSet<String> {
    let entries = fs::read_dir(folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
    let stem = |path: PathBuf| path.file_stem().expect("a name").to_string_lossy().into_owned();
    entries.map(|entry| stem(entry.expect("readable").path())).collect()
}

#[test]
fn every_target_has_its_program_and_its_corpus() {
    let targets: BTreeSet<String> = TARGETS.iter().map(|(name, _)| (*name).to_owned()).collect();
    assert_eq!(names(&folder("corpora")), targets);
    assert_eq!(names(&folder("fuzz_targets")), targets);
    assert!(names(&folder("dictionaries")).is_subset(&targets));
}

/// Runs a target on all that its corpus holds. Test threads have the stacks that the collector's threads have, so
/// nothing here may need more.
fn replay(name: &str) {
    let (_, target) = TARGETS.into_iter().find(|(known, _)| *known == name).expect("a target");
    let folder = folder("corpora").join(name);
    let entries = fs::read_dir(&folder).expect("a corpus");
    let mut inputs: Vec<PathBuf> = entries.map(|entry| entry.expect("readable").path()).collect();
    inputs.sort();
    assert!(inputs.len() >= 10, "{}", folder.display());
    let harmful = |path: &PathBuf| {
        let input = fs::read(path).expect("readable");
        std::panic::catch_unwind(|| target(&input)).is_err()
    };
    let harmful: Vec<PathBuf> = inputs.into_iter().filter(harmful).collect();
    assert!(harmful.is_empty(), "{harmful:?}");
}

/// A test for each target.
macro_rules! replays {
    ($($target:ident),*) => {
        #[test]
        fn every_target_is_replayed() {
            let mut known = TARGETS.map(|(name, _)| name);
            known.sort_unstable();
            assert_eq!(known.as_slice(), [$(stringify!($target)),*]);
        }

        $(#[test]
        fn $target() {
            replay(stringify!($target));
        })*
    };
}

replays!(answers, bodies, config, exposition, formats, otlp_json, otlp_wire, ottl, patterns, stored);
