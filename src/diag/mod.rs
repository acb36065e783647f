//! Problems with their place and a way out; exit codes.
//!
//! Every module turns its own errors into [`Problem`]s; [`render`] is the one renderer. A message is a lower-case
//! fragment without a full stop, with literals in backticks; a hint names the key or flag that helps.

mod amount;
mod excerpt;
pub mod exit;
mod names;
mod problem;

pub use amount::{bytes, counted};
pub use excerpt::excerpt;
pub use names::{is_secret_name, nearest};
pub use problem::{Location, Problem, Problems, Severity, render};
