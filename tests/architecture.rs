//! The map of the program as a test: who may import whom, and a few walls beside it.
//!
//! To add an edge, change the table here and in `docs/design.md`, and say why in the commit.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

/// Module -> modules of this crate that it may name. `cli` may name all.
const MAY_IMPORT: &[(&str, &[&str])] = &[
    ("diag", &[]),
    ("files", &[]),
    ("yaml", &["diag"]),
    ("plan", &["diag"]),
    // Text with references is a noun of the plan, and YAML can say it.
    ("inputs", &["yaml", "plan", "diag"]),
    ("policy", &["inputs", "plan", "yaml", "diag"]),
    ("procfs", &["diag"]),
    ("process", &["plan", "procfs", "events", "files", "diag"]),
    ("health", &["plan", "process", "procfs", "diag"]),
    ("events", &["plan", "diag"]),
    ("supervisor", &["plan", "process", "health", "procfs", "events", "yaml", "files", "diag"]),
    ("jobdir", &["plan", "events", "files", "diag"]),
    ("otlp", &["diag"]),
    ("telemetry", &["events", "plan", "otlp", "diag"]),
    ("collector", &["otlp", "yaml", "files", "procfs", "diag"]),
    ("report", &["jobdir", "events", "plan", "otlp", "diag"]),
];

/// Files longer than this are split by purpose.
const LONGEST_FILE: usize = 400;

#[test]
fn modules_import_only_what_the_map_allows() {
    let allowed: BTreeMap<&str, &[&str]> = MAY_IMPORT.iter().copied().collect();
    let mut wrong = Vec::new();
    for (file, text) in sources("src", "rs") {
        let module = module_of(&file);
        if matches!(module.as_str(), "cli" | "lib" | "main") {
            continue;
        }
        let Some(may) = allowed.get(module.as_str()) else {
            wrong.push(format!("{}: module `{module}` is not on the map", file.display()));
            continue;
        };
        for name in imported(&text) {
            let known = allowed.contains_key(name.as_str()) || name == "cli";
            if known && name != module && !may.contains(&name.as_str()) {
                wrong.push(format!("{}: `{module}` may not import `{name}`", file.display()));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn every_module_of_the_library_is_on_the_map() {
    let library = fs::read_to_string(root().join("src/lib.rs")).expect("src/lib.rs is there");
    let modules: BTreeSet<&str> =
        library.lines().filter_map(|l| l.strip_prefix("pub mod ")).map(|l| l.trim_end_matches(';')).collect();
    let mapped: BTreeSet<&str> = MAY_IMPORT.iter().map(|(name, _)| *name).chain(["cli"]).collect();
    assert_eq!(modules, mapped);
}

#[test]
fn files_are_short_and_unsafe_stays_in_its_rooms() {
    let mut wrong = Vec::new();
    let folders = [("src", "rs"), ("tests", "rs"), ("benches", "rs"), ("lua", "lua")];
    for (file, text) in folders.into_iter().flat_map(|(folder, extension)| sources(folder, extension)) {
        let lines = text.lines().count();
        if lines > LONGEST_FILE {
            wrong.push(format!("{}: {lines} lines, split it by purpose", file.display()));
        }
        let module = module_of(&file);
        let in_program = file.starts_with("src");
        let unsafe_code =
            in_program && text.lines().any(|l| !l.trim_start().starts_with("//") && l.contains("unsafe {"));
        if unsafe_code && !matches!(module.as_str(), "process" | "procfs") {
            wrong.push(format!("{}: unsafe code lives in `process` and `procfs` only", file.display()));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Where the wall clock may be read, and what for. It may be set at any time, so it decides nothing: limits, pauses, graces,
/// intervals and durations are of the monotonic clock.
const MAY_READ_THE_WALL_CLOCK: &[(&str, &str)] = &[
    ("src/events/sink.rs", "the time of an event, for people"),
    ("src/inputs/world.rs", "the default job id"),
    ("src/telemetry/trace.rs", "where the first span begins"),
    ("src/collector/log.rs", "the time of a line, for people"),
    ("src/collector/log_writer.rs", "the time of a line, for people"),
    ("src/collector/run.rs", "since when it is healthy, for people"),
    ("src/collector/own/gather.rs", "timestamps of data"),
    ("src/collector/receivers/prometheus/scrape/receiver.rs", "timestamps of data"),
    ("src/collector/connectors/span_metrics/connector.rs", "timestamps of data"),
    ("src/collector/exporters/file/output.rs", "names of rotated files, and their age in days"),
    ("src/collector/exporters/otlp_http/answer.rs", "a pause that an endpoint gives as a date"),
    ("src/supervisor/log_watch.rs", "whether a directory has the same time as before, and no more"),
];

#[test]
fn the_wall_clock_is_read_in_few_places_and_decides_nothing() {
    let readings = [
        "SystemTime::now",
        "Timestamp::now",
        "Zoned::now",
        "CLOCK_REALTIME",
        "gettimeofday",
        ".modified()",
        ".accessed()",
        ".created()",
        "mtime(",
        "atime(",
        "ctime(",
    ];
    let reads = |text: &str| {
        let code = text.lines().filter(|line| !line.trim_start().starts_with("//"));
        code.into_iter().any(|line| readings.iter().any(|reading| line.contains(reading)))
    };
    let found: BTreeSet<String> = sources("src", "rs")
        .into_iter()
        .filter(|(_, text)| reads(text))
        .map(|(file, _)| file.display().to_string())
        .collect();
    let allowed: BTreeSet<String> = MAY_READ_THE_WALL_CLOCK.iter().map(|(file, _)| (*file).to_owned()).collect();
    assert_eq!(found, allowed);
}

#[test]
fn the_design_page_has_the_same_map() {
    let page = fs::read_to_string(root().join("docs/design.md")).expect("docs/design.md is there");
    for (module, may) in MAY_IMPORT {
        let imports = if may.is_empty() { "nothing".to_owned() } else { may.join(", ") };
        let row = page.lines().find(|l| l.starts_with(&format!("| `{module}` |")));
        let row = row.unwrap_or_else(|| panic!("docs/design.md has no row for `{module}`"));
        assert!(row.ends_with(&format!("| {imports} |")), "docs/design.md: `{module}` should import {imports}: {row}");
    }
}

fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
}

fn module_of(file: &Path) -> String {
    let mut parts = file.components().skip(1);
    let first = parts.next().map(|p| p.as_os_str().to_string_lossy().into_owned()).unwrap_or_default();
    first.trim_end_matches(".rs").to_owned()
}

fn sources(folder: &str, extension: &str) -> Vec<(PathBuf, String)> {
    let mut found = Vec::new();
    let mut folders = vec![root().join(folder)];
    while let Some(folder) = folders.pop() {
        let Ok(entries) = fs::read_dir(&folder) else { continue };
        for entry in entries {
            let path = entry.expect("readable").path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|e| e == extension) {
                let text = fs::read_to_string(&path).expect("source files are UTF-8");
                found.push((path.strip_prefix(root()).expect("below the root").to_owned(), text));
            }
        }
    }
    found.sort();
    found
}

/// In `tests/README.md`: a case of `supervisor/` by its name, or `FILE::FUNCTION`.
#[test]
fn the_tests_that_the_table_of_failures_names_are_there() {
    let text = fs::read_to_string(root().join("tests/README.md")).expect("it is there");
    let (_, table) = text.split_once("## What goes wrong in the field").expect("its table");
    let all: Vec<(PathBuf, String)> = ["src", "tests"].into_iter().flat_map(|folder| sources(folder, "rs")).collect();
    let has = |file: &Path, name: &str| {
        let function = format!("fn {name}(");
        all.iter().any(|(path, text)| path.starts_with(file) && text.contains(&function))
    };
    let mut wrong = Vec::new();
    let mut named = 0;
    for row in table.lines().filter(|line| line.starts_with("| ") && !line.starts_with("| **")) {
        let tests = row.trim_end_matches(" |").rsplit(" | ").next().unwrap_or_default();
        for test in tests.split('`').skip(1).step_by(2) {
            named += 1;
            let (file, function) = match test.split_once("::") {
                None => (PathBuf::from("tests/supervisor"), test),
                Some((file, function)) if file.starts_with("src/") => (PathBuf::from(file), function),
                Some((file, function)) => (Path::new("tests").join(file), function),
            };
            if !has(&file, function) {
                wrong.push(format!("`{test}` is not in {}", file.display()));
            }
        }
    }
    assert!(named > 100, "{named} tests are named");
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Every `X` of `crate::X` outside of comments, groups (`crate::{a, b::C}`) included.
fn imported(text: &str) -> BTreeSet<String> {
    let code: Vec<&str> = text.lines().map(|l| l.split("//").next().unwrap_or_default()).collect();
    let code = code.join("\n");
    let mut names = BTreeSet::new();
    for part in code.split("crate::").skip(1) {
        let Some(group) = part.strip_prefix('{') else {
            names.insert(part.chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect());
            continue;
        };
        let mut depth = 1;
        let mut word = String::new();
        for c in group.chars() {
            match c {
                '{' => depth += 1,
                '}' => depth -= 1,
                _ => {}
            }
            if depth == 1 && (c.is_alphanumeric() || c == '_') {
                word.push(c);
            } else if !word.is_empty() {
                names.insert(std::mem::take(&mut word));
            }
            if depth == 0 {
                break;
            }
        }
    }
    names
}
