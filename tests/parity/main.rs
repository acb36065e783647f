//! The collector beside the reference: both get the same configuration and the same input, and what they answer and
//! write must be the same.
//!
//! A case is a configuration and a script ([`bed::both`]): the script is carried out on both sides, each with ports, a
//! folder and an HTTP target of its own, and every step adds to the side's record. The two records are compared after
//! [`normalise`] has sorted what has no order and named what is random. Needs the reference (`GYMRUN_TEST_OTELCOL`).

#![expect(clippy::disallowed_methods, reason = "tests start the programs under test themselves")]

mod batches;
#[allow(dead_code, reason = "a bed for cases of all kinds")]
mod bed;
mod chain;
mod encodings;
mod forms;
mod forward;
#[path = "../harness/mod.rs"]
mod harness;
mod normalise;
mod oddities;
mod otlp;
mod ottl;
mod own;
mod quickstart;
mod requests;
mod rpc;
mod scrapes;
mod scripts;
#[allow(dead_code, reason = "a bed for cases of all kinds")]
mod side;
mod span_metrics;
#[allow(dead_code, reason = "a bed for cases of all kinds")]
mod target;
mod values;
mod variables;
