//! What the compatibility module for nemo-lens (`lua/policy/python/sitecustomize.py`) says in the logs of Gym servers.
//!
//! It writes one line to standard error, `gymrun: lens-compat: <state> <details>`, before its server is ready. The line
//! stays in the server's log; read back, it becomes a warning of the job with the way out.

use std::io::{BufRead as _, BufReader, Read as _};
use std::path::Path;

use indexmap::IndexMap;

use crate::events::EventKind;
use crate::files::open_file;
use crate::plan::{Kind, Plan};

/// What the line begins with.
const MARK: &str = "gymrun: lens-compat: ";
/// How much of a log is looked at, in bytes: the line stands at its beginning.
const LIMIT: u64 = 1 << 20;

/// The warnings that the logs of a job's Gym servers give by now, one for each thing said, naming those who said it.
#[must_use]
pub fn lens_warnings(job_dir: &Path, plan: &Plan) -> Vec<EventKind> {
    let mut said: IndexMap<(String, String), Vec<&str>> = IndexMap::new();
    for unit in plan.units.iter().filter(|unit| unit.kind == Kind::Server) {
        if let Some(line) = marked_line(&job_dir.join(unit.log_file())) {
            said.entry(line).or_default().push(&unit.name);
        }
    }
    said.into_iter().map(|((state, details), servers)| warning(&state, &details, &servers)).collect()
}

/// State and details of the first marked line of a log. A log that cannot be read says nothing.
fn marked_line(log: &Path) -> Option<(String, String)> {
    let reader = BufReader::new(open_file(log).ok()?.take(LIMIT));
    let line = reader.split(b'\n').map_while(Result::ok).find(|line| line.starts_with(MARK.as_bytes()))?;
    let line = String::from_utf8_lossy(&line[MARK.len()..]).trim_end().to_owned();
    let (state, details) = line.split_once(' ')?;
    Some((state.to_owned(), details.to_owned()))
}

fn warning(state: &str, details: &str, servers: &[&str]) -> EventKind {
    let servers = servers.join(", ");
    let (message, hint) = if state == "patched" {
        (
            format!("{details} (in {servers})"),
            "a newer nemo-lens needs no help; `telemetry.lens_compat = false` leaves the installed one as it is, and \
             NeMo Gym then sends no telemetry",
        )
    } else {
        (
            format!("no telemetry will come from {servers}: {details}"),
            "install what is missing, or say `telemetry.enabled = false`",
        )
    };
    EventKind::Warning { process: None, message, hint: Some(hint.to_owned()) }
}

#[cfg(test)]
mod tests {
    use super::{marked_line, warning};
    use crate::events::EventKind;

    #[test]
    fn the_marked_line_is_found_between_others() {
        let folder = tempfile::tempdir().expect("a folder");
        let log = folder.path().join("agent.log");
        std::fs::write(
            &log,
            b"\xff\xfe\nsays gymrun: lens-compat: no\ngymrun: lens-compat: patched nemo-lens 0.1.0 lacks X\nready\n",
        )
        .expect("writable");
        assert_eq!(marked_line(&log), Some(("patched".into(), "nemo-lens 0.1.0 lacks X".into())));
        std::fs::write(&log, "ready\n").expect("writable");
        assert_eq!(marked_line(&log), None);
        assert_eq!(marked_line(&folder.path().join("none.log")), None);
    }

    #[test]
    fn both_states_have_a_way_out() {
        for (state, expected) in [
            ("patched", "nemo-lens 0.1.0 lacks X (in agent, model)"),
            ("no-telemetry", "no telemetry will come from agent, model: nemo-lens 0.1.0 lacks X"),
        ] {
            let EventKind::Warning { message, hint, process } =
                warning(state, "nemo-lens 0.1.0 lacks X", &["agent", "model"])
            else {
                unreachable!("it makes warnings")
            };
            assert_eq!(message, expected);
            assert!(hint.is_some_and(|hint| hint.contains("telemetry.")) && process.is_none());
        }
    }
}
