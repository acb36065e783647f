//! Configurations.

use std::ffi::OsString;

use gymrun::collector::fuzzing::load_config;
use gymrun::diag::Severity;

/// The value of a variable that is named like a secret.
const SECRET: &str = "s3cr3t-0f-the-fuzz";

fn variable(name: &str) -> Option<OsString> {
    let value = match name {
        "API_TOKEN" => SECRET,
        "NUMBER" => "123456",
        "ENDPOINT" => "http://127.0.0.1:4318",
        "EMPTY" => "",
        "LIST" => "[a, {b: c}]",
        "AGAIN" => "${env:AGAIN}",
        "DOLLAR" => "a$$b${env:NUMBER}",
        _ => return None,
    };
    Some(value.into())
}

/// Arbitrary text as a configuration.
///
/// What is refused has an error, every problem says where it stands, and none shows a secret.
pub fn config(input: &[u8]) {
    let Ok(text) = std::str::from_utf8(input) else { return };
    let problems = match load_config(text, &variable) {
        Ok(config) => config.warnings,
        Err(problems) => {
            assert!(problems.any_error(), "refused without an error");
            problems
        }
    };
    let lines = u32::try_from(text.split(['\n', '\r']).count()).expect("short");
    for problem in &problems {
        assert!(!problem.message.is_empty());
        assert!(!problem.location.is_unknown(), "no place: {problem}");
        if let Some(line) = problem.location.line {
            assert!((1..=lines + 1).contains(&line), "line {line} of {lines}: {problem}");
        } else {
            assert_eq!(problem.severity, Severity::Error, "no line: {problem}");
        }
        assert!(text.contains(SECRET) || !problem.to_string().contains(SECRET), "a secret: {problem}");
    }
}
