//! The plan: every noun of the program, as complete and printable data.
//!
//! Nothing right of a [`Plan`] knows Lua; nothing left of it starts a process, binds a port or writes a file. A value in it
//! is [`Text`] with [`Reference`]s for what only the launch knows (chosen ports, secrets, inherited variables).

mod checks;
mod compile;
mod draft;
mod job;
mod log;
mod order;
mod process;
mod references;
mod text;
mod tree;

pub use compile::compile;
pub use draft::Draft;
pub use job::{
    CollectorPlan, MemoryPlan, MemoryScope, OUTPUT_PATH, Plan, PlannedFile, PortPolicy, ScrapeTarget, Source,
    TelemetryPlan,
};
pub use log::{LogMode, Rotation, older_log};
pub use process::{
    COLLECTOR, DRIVER, Exhausted, Kind, Liveness, OnExit, PROCESS_MARK, PortChoice, Probe, ProbeKind, Question,
    Readiness, RestartPolicy, ShownValue, Stdin, StopPolicy, StopSignal, Unit, Variable, VariableValue, process_mark,
};
pub use text::{Reference, Segment, Text};
pub use tree::{Encoding, Tree, Value, escape_for_collector};
