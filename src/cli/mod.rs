//! The command line: one file per subcommand; the only place where modules meet.

pub mod collector;
