//! The logs of a job's processes: who writes them, and what became of those that gymrun writes.

use std::path::{Path, PathBuf};

use super::machine::UnitId;
use crate::diag::counted;
use crate::events::{EventKind, Sink};
use crate::plan::{Kind, LogMode, Plan, Unit, older_log};
use crate::process::{Log, Output, in_words};

/// The logs of all units.
#[derive(Debug)]
pub(super) struct Logs {
    job_dir: PathBuf,
    sink: Sink,
    /// Those that gymrun writes. A unit that is started again goes on with its own.
    piped: Vec<Option<Log>>,
}

impl Logs {
    /// Nothing is open yet.
    pub(super) fn new(units: usize, job_dir: &Path, sink: Sink) -> Self {
        Self { job_dir: job_dir.to_owned(), sink, piped: vec![None; units] }
    }

    /// Where a unit's log is.
    pub(super) fn path(&self, unit: &Unit) -> PathBuf {
        self.job_dir.join(unit.log_file())
    }

    /// What a unit's output becomes, and the log that gymrun writes for it.
    pub(super) fn output(&mut self, id: UnitId, unit: &Unit) -> (Output, Option<Log>) {
        let path = self.path(unit);
        if unit.log == LogMode::File {
            return (Output::File(path), None);
        }
        let log = self.piped[id].get_or_insert_with(|| {
            let (sink, name, path_text) = (self.sink.clone(), unit.name.clone(), path.display().to_string());
            let failed = move |error: &std::io::Error| {
                let message = format!("its log `{path_text}` cannot be written: {}", in_words(error));
                let hint = "it runs on and its output is shown; what gets into the log again begins with a whole line, \
                            and at the end it is said how much is missing";
                sink.warn(Some(&name), message, Some(hint.to_owned()));
            };
            Log::open(&path, unit.log_rotation, Box::new(failed))
        });
        let output = if unit.kind == Kind::Driver { Output::Pipes } else { Output::Pipe };
        (output, Some(log.clone()))
    }

    /// Says what became of the logs, once nothing is written any more.
    pub(super) fn finish(&self, plan: &Plan) {
        for (unit, log) in plan.units.iter().zip(&self.piped) {
            let Some(kept) = log.as_ref().and_then(Log::kept) else { continue };
            let path = self.path(unit);
            if kept.lost > 0 {
                let message = format!(
                    "{} not in its log `{}`, since it could not be written",
                    counted(kept.lost, "byte of its output is", "bytes of its output are"),
                    path.display()
                );
                self.sink.warn(Some(&unit.name), message, None);
            }
            if kept.lost > 0 || kept.older > 0 {
                let older = |number| older_log(Path::new(&unit.log_file()), number).display().to_string();
                self.sink.emit(EventKind::LogEnded {
                    process: unit.name.clone(),
                    older: (1..=kept.older).map(older).collect(),
                    rotated_out_bytes: kept.rotated_out,
                    lost_bytes: kept.lost,
                });
            }
        }
    }
}
