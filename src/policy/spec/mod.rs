//! A job and its site after merging and checking: everything that people wrote, typed, with the place of each thing.
//!
//! Defaults are filled in, `process_defaults` and the defaults by kind are applied, and who wins in the `telemetry` block
//! is settled, except for what only hooks decide. What is late is a [`Text`](crate::plan::Text); the process `self` in it
//! is still `self`.

mod hook;
mod job;
mod otel;
mod process;
mod telemetry;

pub use hook::{FragmentSpec, Hook, HookForm, HookSpec};
pub use job::{Containers, Spec, TargetSpec};
pub use otel::{OtelPorts, OtelSpec, Protocol, TlsSpec};
pub use process::{
    CommandSpec, Detail, DriverSpec, EnvSpec, EnvValue, EvalSpec, Gpus, MetricsSpec, ProcessSpec, ServerSpec,
    ServerType, VllmSpec,
};
pub use telemetry::{Exporter, FieldSource, MemorySpec, Sourced, TelemetrySpec};

use crate::diag::Location;

/// A value and where its author wrote it.
#[derive(Clone, Debug, PartialEq)]
pub struct Placed<T> {
    /// The value.
    pub value: T,
    /// Its place.
    pub location: Location,
}
