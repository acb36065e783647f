//! The running receiver: loops that fetch pages and hand payloads on.

mod client;
mod credentials;
mod fetch;
mod receiver;
#[cfg(test)]
mod tests;

pub use client::{ClientSettings, Tls};
pub use credentials::{Authorization, Secret, header_value};
pub use fetch::Request;
pub use receiver::PrometheusReceiver;
