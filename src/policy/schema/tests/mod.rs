//! What layers become: precedence, defaults by kind, telemetry and its variables, hooks.
#![expect(clippy::unwrap_used, reason = "tests")]
#![expect(clippy::float_cmp, reason = "numbers that were written, not computed")]

mod arbitrary;
mod case;
mod hooks;
mod logs;
mod processes;
mod telemetry;
