//! Every key that people can write, once: its name, what it takes, its default, its meaning.

mod driver;
mod job;
mod otel;
mod process;
mod server;
mod service;
mod telemetry;

pub use driver::DRIVER;
pub use job::{ATTRIBUTES, EITHER, HOOKS, JOB, PORTS, PROCESS_DEFAULTS, SITE, TARGET, TARGETS};
pub use otel::OTEL;
pub use process::{
    COLLECTOR_DEFAULTS, DEFAULTS_ALL, DEFAULTS_SERVERS, DEFAULTS_SERVICES, ENV, HEALTH_CHECK, LIVENESS, METRICS,
    RESTART,
};
pub use server::SERVER;
pub use service::SERVICE;
pub use telemetry::TELEMETRY;

use super::kinds::Table;

/// All tables, in the order of the reference.
pub const ALL: [&Table; 28] = [
    &JOB,
    &PROCESS_DEFAULTS,
    &PORTS,
    &TARGET,
    &process::PROCESS,
    &METRICS,
    &HEALTH_CHECK,
    &LIVENESS,
    &RESTART,
    &service::VLLM,
    &service::COMMAND,
    &service::TASK,
    &server::SERVER_BASE,
    &driver::COMMAND,
    &driver::EVAL,
    &TELEMETRY,
    &telemetry::MEMORY_PROFILING,
    &OTEL,
    &otel::TLS,
    &otel::PORTS,
    &SITE,
    &job::LAUNCH,
    &job::RELABEL,
    &DEFAULTS_ALL,
    &DEFAULTS_SERVICES,
    &DEFAULTS_SERVERS,
    &driver::DEFAULTS,
    &COLLECTOR_DEFAULTS,
];
