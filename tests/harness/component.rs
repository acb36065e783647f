//! Programs that are not part of every machine. Without one a test is skipped and says so; if `GYMRUN_TEST_REQUIRE` (a list
//! with commas) names the program, the test fails instead.

use std::io::Write as _;
use std::path::PathBuf;
use std::process::Command;

/// The path of a component, from its variable.
pub fn component(name: &str, variable: &str) -> Option<PathBuf> {
    let path = std::env::var_os(variable).map(PathBuf::from).filter(|path| path.exists());
    if path.is_none() {
        skip(name, &format!("{variable} names no file"));
    }
    path
}

/// `python3`, if it is there.
pub fn python() -> Option<&'static str> {
    let there = Command::new("python3").arg("--version").output().is_ok_and(|output| output.status.success());
    if !there {
        skip("python3", "it is not on PATH");
    }
    there.then_some("python3")
}

/// Says that something is not here; fails if it must be. It is said past the test harness, which keeps to itself what a
/// test that passes prints.
pub fn skip(name: &str, why: &str) {
    let required = std::env::var("GYMRUN_TEST_REQUIRE").unwrap_or_default();
    assert!(!required.split(',').any(|word| word.trim() == name), "{name} is required: {why}");
    let test = std::thread::current().name().map_or_else(String::new, |test| format!("{test}: "));
    // Nobody may be there to read it.
    let _ = writeln!(std::io::stderr(), "skipped: {test}{name} is not here ({why})");
}
