//! TLS of whatever connects: exporters and scrapes.
//!
//! `client` makes a configuration of rustls from what was read, `trust` decides about the other side's certificate as the
//! reference does, `words` says what went wrong on a connection without the words of the libraries.

mod client;
mod trust;
mod words;

pub use client::{Material, Version, is_name};
pub use words::{Keys, connection_words};
