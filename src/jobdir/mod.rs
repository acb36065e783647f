//! The files of a job directory, written and read back.
//!
//! `<output_path>/<job id>/<name>/`, 0700, locked while the job lives. A former attempt's files move to `attempts/N/`,
//! which is `attempts/.N/` until it was said that it did not end as it should, or is seen that it did.
//! [`JobDir`] makes and locks it, [`EventLog`] appends `events.jsonl` line by line, and [`Summary`] folds the events
//! into what `result.json` and the final table show. [`lens_warnings`] reads what Gym servers say about nemo-lens.

mod directory;
mod event_log;
mod former;
mod lens;
mod summary;

pub use directory::JobDir;
pub use event_log::EventLog;
pub use former::Former;
pub use lens::lens_warnings;
pub use summary::{ProcessSummary, State, Summary};
