//! Recorded cases of the reference collector (v0.161.0), run against `gymrun collector`.
//!
//! A case of `tests/golden` has a configuration, steps and what the reference answered and wrote; `run.py` carries the
//! steps out and compares. Every case here must be met exactly (after the normalisation that `normalise.py` documents).

#![expect(clippy::disallowed_methods, reason = "tests start the program under test themselves")]
#![expect(clippy::print_stderr, reason = "a skipped test says why")]

use std::path::Path;
use std::process::Command;

/// Runs these cases; skipped where there is no python3, unless it is required.
fn meet(cases: &[&str]) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden");
    let collector = format!("{} collector --config {{config}}", env!("CARGO_BIN_EXE_gymrun"));
    let run = Command::new("python3")
        .arg(folder.join("run.py"))
        .args(["--collector", &collector])
        .args(cases)
        .env("PYTHONDONTWRITEBYTECODE", "1")
        .output();
    match run {
        Err(error) => {
            let required = std::env::var("GYMRUN_TEST_REQUIRE").unwrap_or_default();
            assert!(!required.split(',').any(|component| component == "python3"), "python3 is required: {error}");
            eprintln!("skipped: no python3 ({error})");
        }
        Ok(output) => {
            let said = String::from_utf8_lossy(&output.stdout);
            assert!(output.status.success(), "{said}{}", String::from_utf8_lossy(&output.stderr));
            assert_eq!(said.lines().filter(|line| line.starts_with("PASS ")).count(), cases.len(), "{said}");
        }
    }
}

#[test]
fn pages_of_text() {
    meet(&["text_types", "text_escapes", "text_timestamps", "text_layout", "text_long_line", "text_invalid"]);
}

#[test]
fn histograms_and_summaries() {
    meet(&["text_histograms", "text_histogram_le", "text_summaries"]);
}

#[test]
fn pages_of_openmetrics() {
    meet(&["om_counters", "om_histogram_exemplars", "om_info_stateset"]);
}

#[test]
fn requests_and_answers() {
    meet(&["scrape_content_type", "scrape_http_answers", "scrape_timeout", "scrape_request"]);
}

#[test]
fn targets_over_time() {
    meet(&["scrape_down_up", "scrape_shutdown", "scrape_honor_labels", "scrape_default_discovery"]);
}

#[test]
fn span_metrics_without_spans() {
    meet(&["spanm_empty_flush"]);
}
