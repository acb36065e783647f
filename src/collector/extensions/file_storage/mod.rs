//! The `file_storage` extension: the folder where exporters keep what they could not send.
//!
//! The folder is one process's at a time. What is in it is [`crate::collector::storage`]'s.

mod config;

pub use config::FACTORY;
