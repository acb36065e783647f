//! Starts, watches, samples and stops what the plan says.
//!
//! [`run`] chooses ports, fills in references and writes files; then the engine, one task that owns all state, asks the
//! pure table in `state` what to do about each report and has a host do it. The host of this machine runs children
//! through `process`, probes them through `health`, samples them on a thread of their own, and stops each with its whole
//! tree. What happens is said as events only.

mod answer;
mod budget;
mod cause;
mod claims;
mod client;
mod collector;
mod coroner;
mod counter;
mod delivery;
mod disk;
mod engine;
mod files;
mod former;
mod held;
mod host;
mod limits;
mod local;
mod log_watch;
mod logs;
mod looks;
mod machine;
mod outbox;
mod outcome;
mod ports;
mod pss_schedule;
mod resolve;
mod restarts;
mod run;
mod sampler;
mod sampling;
mod show;
mod slot;
mod state;
mod teardown;
mod watch;

pub use former::end_former;
pub use outcome::Outcome;
pub use ports::{Ports, port_name};
pub use resolve::Resolver;
pub use run::{RunOptions, run};
pub use show::{DriverOutput, ShowOutput};
