//! The receiver's section of the configuration: Prometheus's own, under `config`.
//!
//! Prometheus reads it strictly, and so does this: an unknown key is an error. What it knows and this receiver does not
//! do (service discovery, native histograms, proxies) is an error too; what has no effect there has none here.

pub mod duration;
mod global;
mod http;
mod job;
mod limits;
mod protocols;
mod receiver;
mod rules;
mod scalars;

pub use job::TargetSettings;
pub use receiver::FACTORY;

#[cfg(test)]
mod tests;
