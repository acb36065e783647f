//! Lua errors as problems with the author's line.

use mlua::{Error, Lua};

use super::host::{Host, author_line, chunk_named};
use super::vm::MEMORY_LIMIT;
use crate::diag::{Location, Problem, Problems};

/// Raised by the hook once the time is over; never reaches an author as it is.
#[derive(Debug, thiserror::Error)]
#[error("the script took too long")]
pub struct LimitReached;

/// A problem that a function of ours raises inside a script.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct Raised(pub Problem);

/// An error to return from a function of ours: `message`, at the author's line.
pub fn raise(lua: &Lua, message: impl Into<String>) -> Error {
    raise_problem(lua, Problem::new(message))
}

/// The same for a problem that has a hint.
pub fn raise_problem(lua: &Lua, problem: Problem) -> Error {
    let location = if problem.location.is_unknown() { author_line(lua) } else { problem.location.clone() };
    Error::external(Raised(problem.in_file(location)))
}

/// What a script's error means for its author.
pub fn problem_of(lua: &Lua, error: &Error) -> Problems {
    if let Some(Raised(problem)) = error.downcast_ref::<Raised>() {
        return problem.clone().into();
    }
    let Some(host) = lua.app_data_ref::<Host>() else {
        return Problem::new(error.to_string()).into();
    };
    if error.downcast_ref::<LimitReached>().is_some() || host.watch.expired() {
        return host.watch.problem().into();
    }
    let problem = match root_of(error) {
        Error::MemoryError(_) => {
            Problem::new(format!("the script used more than {} MiB of memory", MEMORY_LIMIT / (1024 * 1024)))
                .in_file(host.watch.last_line())
        }
        Error::SyntaxError { message, .. } | Error::RuntimeError(message) => from_message(lua, message),
        other => Problem::new(other.to_string()).in_file(host.watch.last_line()),
    };
    problem.into()
}

/// The error itself, without the layers that Lua's calls put around it.
fn root_of(error: &Error) -> &Error {
    match error {
        Error::CallbackError { cause, .. } | Error::WithContext { cause, .. } | Error::BadArgument { cause, .. } => {
            root_of(cause)
        }
        other => other,
    }
}

/// `job.lua:3: text`, with a traceback below, as message and place. Without a place in front, the first line of an
/// author's file in the traceback is taken.
fn from_message(lua: &Lua, message: &str) -> Problem {
    let (text, traceback) = message.split_once("\nstack traceback:").unwrap_or((message, ""));
    if let Some((location, rest)) = split_place(lua, text) {
        return Problem::new(rest).in_file(location);
    }
    let location = traceback
        .lines()
        .find_map(|line| split_place(lua, line.trim()).map(|(l, _)| l))
        .unwrap_or_else(|| lua.app_data_ref::<Host>().map(|host| host.watch.last_line()).unwrap_or_default());
    let text = if text.starts_with("table: 0x") || text.starts_with("userdata: 0x") || text == "nil" {
        let kind = text.split(':').next().unwrap_or(text);
        format!("the script raised an error that is no text but a {kind}")
    } else {
        text.to_owned()
    };
    Problem::new(text).in_file(location)
}

/// Takes `FILE:LINE: ` off the front, if it names a chunk that was loaded.
fn split_place<'a>(lua: &Lua, text: &'a str) -> Option<(Location, &'a str)> {
    let mut from = 0;
    while let Some(colon) = text[from..].find(':').map(|at| from + at) {
        let rest = &text[colon + 1..];
        let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
        if digits > 0
            && rest[digits..].starts_with(':')
            && let (Some(file), Ok(line)) = (chunk_named(lua, &text[..colon]), rest[..digits].parse())
        {
            return Some((Location::new(file, line), rest[digits + 1..].trim_start()));
        }
        from = colon + 1;
    }
    None
}
