//! The logs of a job's processes: who writes them, and what became of those that gymrun writes.

use std::path::{Path, PathBuf};
use std::sync::mpsc::Receiver;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::task::spawn_blocking;
use tokio::time::timeout;

use super::files::last_lines;
use super::log_watch::LogWatch;
use super::machine::UnitId;
use crate::diag::counted;
use crate::events::{EventKind, Sink};
use crate::files::LogPlace;
use crate::plan::{Kind, LogMode, Plan, Unit, older_log};
use crate::process::{Log, Output, Turn, in_words};

/// How long it may take to learn what became of all logs.
const LIMIT: Duration = Duration::from_secs(2);

/// The logs of all units.
#[derive(Debug, Clone)]
pub(super) struct Logs {
    sink: Sink,
    /// Those that gymrun writes. A unit that is started again goes on with its own.
    piped: Vec<Option<Log>>,
    /// Where the lives of all units begin in them.
    lives: Vec<Arc<Lives>>,
}

/// Where the lives of one unit begin in its log, one after another.
#[derive(Debug)]
pub(super) struct Lives {
    /// The unit.
    pub(super) name: String,
    pub(super) path: PathBuf,
    begins: Mutex<Vec<Begin>>,
}

#[derive(Clone, Copy, Debug)]
enum Begin {
    /// All that the former lives have written is not in the log yet, and nothing of this one is.
    Later,
    At(LogPlace),
    Unknown,
}

impl From<Option<LogPlace>> for Begin {
    fn from(place: Option<LogPlace>) -> Self {
        place.map_or(Self::Unknown, Self::At)
    }
}

impl Begin {
    fn place(self) -> Option<LogPlace> {
        match self {
            Self::At(place) => Some(place),
            Self::Later | Self::Unknown => None,
        }
    }
}

impl Lives {
    /// Where the last one begins.
    pub(super) fn latest(&self) -> Option<LogPlace> {
        self.all().last().and_then(|begin| begin.place())
    }

    fn all(&self) -> MutexGuard<'_, Vec<Begin>> {
        self.begins.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The log of a process that is being started.
pub(super) struct NewLife {
    lives: Arc<Lives>,
    /// The log that gymrun writes, and what ends once all that the former life has written is in it.
    piped: Option<(Log, Option<Receiver<()>>)>,
}

impl NewLife {
    /// The process runs; `at` is where it begins to write, if the file is its own. Otherwise its copier is given the log, and
    /// its turn.
    pub(super) fn begin(self, at: Option<LogPlace>) -> (LifeLog, Option<(Log, Turn)>) {
        let number = {
            let mut begins = self.lives.all();
            begins.push(if self.piped.is_some() { Begin::Later } else { at.into() });
            begins.len() - 1
        };
        let own = LifeLog { lives: self.lives, number };
        let life = own.clone();
        let turn = |after| Turn { after, begins: Box::new(move |at| life.begins(at)) };
        (own, self.piped.map(|(log, after)| (log, turn(after))))
    }
}

/// What one process has written to the log of its unit.
#[derive(Debug, Clone)]
pub(super) struct LifeLog {
    lives: Arc<Lives>,
    number: usize,
}

impl LifeLog {
    /// From here on the log has what the process writes; `None` if it is not known where that is.
    fn begins(&self, at: Option<LogPlace>) {
        self.lives.all()[self.number] = at.into();
    }

    /// The end of it. Reads files.
    pub(super) fn last_lines(&self) -> Vec<String> {
        let [begin, end] = {
            let begins = self.lives.all();
            [self.number, self.number + 1].map(|life| begins.get(life).copied().unwrap_or(Begin::Later))
        };
        if matches!(begin, Begin::Later) {
            return Vec::new();
        }
        let (begin, end) = (begin.place(), end.place());
        last_lines(&self.lives.path, begin, end)
    }
}

impl Logs {
    /// Nothing is open yet.
    pub(super) fn new(units: &[Unit], job_dir: &Path, sink: Sink) -> Self {
        let lives = |unit: &Unit| {
            let path = job_dir.join(unit.log_file());
            Arc::new(Lives { name: unit.name.clone(), path, begins: Mutex::default() })
        };
        Self { sink, piped: vec![None; units.len()], lives: units.iter().map(lives).collect() }
    }

    /// Watches those that processes own, and says to `sink` what becomes of them.
    pub(super) fn watch(&self, plan: &Plan, job_dir: &Path, sink: Sink) -> LogWatch {
        let all = plan.units.iter().zip(&self.lives);
        let owned = all.filter(|(unit, _)| unit.log == LogMode::File).map(|(_, lives)| Arc::clone(lives));
        LogWatch::new(job_dir.join("logs"), sink, owned.collect())
    }

    /// What a unit's output becomes, and the log of its next process; `former` ends once what the last one has written is in
    /// the log.
    pub(super) fn output(&mut self, id: UnitId, unit: &Unit, former: Option<Receiver<()>>) -> (Output, NewLife) {
        let lives = Arc::clone(&self.lives[id]);
        let path = &lives.path;
        if unit.log == LogMode::File {
            return (Output::File(path.clone()), NewLife { lives, piped: None });
        }
        let log = self.piped[id].get_or_insert_with(|| {
            let (sink, name, path_text) = (self.sink.clone(), unit.name.clone(), path.display().to_string());
            let failed = move |error: &std::io::Error| {
                let message = format!("its log `{path_text}` cannot be written: {}", in_words(error));
                let hint = "it runs on and its output is shown; what gets into the log again begins with a whole line, \
                            and at the end it is said how much is missing";
                sink.warn(Some(&name), message, Some(hint.to_owned()));
            };
            Log::new(path, unit.log_rotation, Box::new(failed))
        });
        let piped = Some((log.clone(), former));
        (if unit.kind == Kind::Driver { Output::Pipes } else { Output::Pipe }, NewLife { lives, piped })
    }

    /// Says what became of the logs, once nothing is written any more; nothing of a file system that does not answer.
    pub(super) async fn finish(&self, plan: &Arc<Plan>) {
        let (logs, plan) = (self.clone(), Arc::clone(plan));
        let _ = timeout(LIMIT, spawn_blocking(move || logs.say(&plan))).await;
    }

    /// Asks files.
    fn say(&self, plan: &Plan) {
        for ((unit, log), lives) in plan.units.iter().zip(&self.piped).zip(&self.lives) {
            let Some(kept) = log.as_ref().and_then(Log::kept) else { continue };
            if kept.lost > 0 {
                let message = format!(
                    "{} not in its log `{}`, since it could not be written",
                    counted(kept.lost, "byte of its output is", "bytes of its output are"),
                    lives.path.display()
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
