//! Readiness and liveness probes: HTTP, TCP, exec, gRPC.
//!
//! A probe is asked again and again until it is good: after 20 ms at first, then after a fiftieth of the time waited so
//! far, a second at most, or at a fixed interval. Every request has its own limit. Nothing here goes through a proxy.

mod ask;
mod exec;
mod grpc;
mod http;
mod schedule;

pub use ask::{Target, TargetKind, ask};
pub use exec::Command;
pub use schedule::{Schedule, wait_until_good, wait_until_hung};
