//! The `transform` processor: statements such as `set(resource.attributes["a"], "b") where ...`.
//!
//! `lexer` and `parser` know the grammar of the statements and nothing of telemetry; `statement` gives the parts of a
//! parsed statement their meaning in a context, and refuses what this collector does not do; `config` reads the groups;
//! `processor` applies them. A new editor or path is a new arm in `statement`.

mod config;
mod lexer;
mod parser;
mod processor;
mod statement;

pub use config::FACTORY;
