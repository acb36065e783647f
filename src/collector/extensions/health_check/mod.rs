//! The `health_check` extension: is the collector ready, and requests to it.
//!
//! It listens before the pipelines start and until they have drained, so starting and stopping are seen as 503. Beside
//! what the reference has, the same port takes `POST /-/scrape` (every receiver that scrapes does so once, the answer
//! comes when the points have been handed on; with `?last=true` no scrape comes after it) and `POST /-/stop?seconds=N`
//! (the limit of the coming stop), from loopback peers only.

mod config;
mod server;

pub use config::FACTORY;
