//! What people see: one line an event, a live view, the final table, a plan as text, JSON.
//!
//! All that gymrun says goes to stderr; with `--json`, stdout has the events and nothing else. Writing never fails the
//! job: a closed terminal is not an error of the run.

mod describe;
mod live;
mod plan_text;
mod reporter;
mod table;
mod terminal;

pub use plan_text::{PlanView, plan_text};
pub use reporter::{LineSink, Reporter, Style};
pub use table::table;
pub use terminal::Terminal;
