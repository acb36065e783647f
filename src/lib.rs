//! gymrun runs an evaluation or RL job of NVIDIA NeMo Gym as one supervised whole.
//!
//! The one flow, left to right: people's files ([`inputs`]) go through Lua policy ([`policy`]) into a
//! complete, printable [`plan::Plan`]; the [`supervisor`] carries it out and says what happens only as
//! [`events`]; [`report`] and [`telemetry`] read those. `tests/architecture.rs` holds who may import whom.

pub mod cli;
pub mod collector;
pub mod diag;
pub mod events;
pub mod files;
pub mod health;
pub mod inputs;
pub mod jobdir;
pub mod otlp;
pub mod plan;
pub mod policy;
pub mod process;
pub mod procfs;
pub mod report;
pub mod supervisor;
pub mod telemetry;
pub mod yaml;
