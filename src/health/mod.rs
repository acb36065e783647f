//! Readiness and liveness probes: HTTP, TCP, exec, gRPC.
//!
//! A probe is asked again and again until it is good ([`Schedule`] says how often). Every request has its own limit, and
//! every address of a host is asked. Nothing here goes through a proxy. Who it was that answered is for the caller to
//! judge: a good answer comes with its address.

mod addresses;
mod ask;
mod exec;
mod grpc;
mod http;
mod lookout;
mod schedule;
#[cfg(test)]
mod tests;

pub use ask::{Bad, Effort, Prober, Target, TargetKind};
pub use exec::Command;
pub use schedule::{Schedule, wait_until_good, wait_until_hung};
