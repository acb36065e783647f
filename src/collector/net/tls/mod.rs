//! TLS of whatever connects: exporters and scrapes.
//!
//! `client` makes a configuration of rustls from what was read (`pem`), `trust` decides about the other side's certificate as the
//! reference does, with `chain` for those who signed it and `statement` for what a certificate says about itself, and
//! `words` says what went wrong on a connection without the words of the libraries.

mod chain;
mod client;
mod pem;
mod statement;
mod trust;
mod words;

pub use client::{Material, Version, is_name};
pub use words::{Keys, connection_words};

#[cfg(test)]
mod tests;
