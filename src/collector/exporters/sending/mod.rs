//! What the exporters that send have in common: a queue, batches, retries, and what happens to data that cannot be sent.
//!
//! `queue` and `backoff` read what they are told, `room` says what may wait, `batcher` joins requests, `sender` tries until
//! it is decided, `store` keeps what cannot be sent, `lane` leads a payload through all of them. How a request travels is the [`Transport`]'s part.

mod backoff;
mod batcher;
mod compression;
mod headers;
mod lane;
mod meter;
mod outcome;
mod queue;
mod room;
mod sender;
mod store;
#[cfg(test)]
mod store_tests;
mod tls;

pub(super) use backoff::Retry;
pub(super) use compression::Compression;
pub(super) use headers::read_headers;
pub(super) use lane::{Lanes, Way};
pub(super) use outcome::{Outcome, PartialSuccess, for_each_field, shown};
pub(super) use queue::Queue;
pub(super) use sender::Transport;
pub(super) use tls::{Pem, TLS_KEYS, Tls};
