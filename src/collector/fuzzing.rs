//! Doors to what reads foreign bytes and is private otherwise: for the fuzz targets in `fuzz/`, and for tests that hand the
//! same bytes in.

use std::ffi::OsString;
use std::io;
use std::sync::Arc;

use bytes::Bytes;

use super::counters::{Counters, Tally};
use super::ottl::{Conditions, ErrorMode, Group, Level, Scene, Style, walk};
use super::storage::{Credential, Spool, decode, encode};
use crate::collector::config::Config;
use crate::collector::config::load;
use crate::collector::config::source::Source;
use crate::collector::net::encoding::{ENCODINGS, Unreadable};
use crate::collector::net::grpc_message::unframe;
use crate::diag::Problems;
use crate::otlp::{Payload, Signal};

pub use super::exporters::fuzzing::{grpc_answer, http_answer};
pub use super::receivers::prometheus::fuzzing::{Scraped, relabel_pattern, scrape};
pub use crate::collector::text::go_format::{Printable, format};
pub use crate::collector::text::go_number::{parse_double, parse_integer};
pub use crate::collector::text::pattern::{Pattern, compile as compile_pattern};

/// Every name that a Content-Encoding may have.
pub fn encodings() -> impl Iterator<Item = &'static str> {
    ENCODINGS.iter().map(|(name, _)| *name)
}

/// A body as the OTLP/HTTP receiver decompresses it; None for an encoding that is not known.
#[must_use]
pub fn decompress(encoding: &str, body: Bytes, limit: usize) -> Option<Result<Bytes, String>> {
    let (_, encoding) = ENCODINGS.iter().find(|(name, _)| *name == encoding)?;
    Some(encoding.decode(body, limit).map_err(|why| match why {
        Unreadable::TooLarge => "too large".to_owned(),
        Unreadable::Broken(text) => text,
    }))
}

/// The message of a gRPC request with this body.
pub fn grpc_message(encoding: &str, body: Bytes, limit: usize) -> Result<Bytes, String> {
    let (_, encoding) = ENCODINGS.iter().find(|(name, _)| *name == encoding).ok_or("no such encoding")?;
    unframe(body, *encoding, limit).map_err(|status| status.to_string())
}

/// The request in a file of the on-disk queue; a credential is the name of a variable and its value.
pub fn stored_request(file: &[u8], signal: Signal, credentials: &[(&str, &str)]) -> Result<Payload, String> {
    decode(file, signal, &credentials_of(credentials)).map_err(|error| error.to_string())
}

/// The file of the on-disk queue for a request; an error if it may not be stored.
pub fn store_request(payload: Payload, credentials: &[(&str, &str)]) -> Result<Vec<u8>, String> {
    encode(payload, &credentials_of(credentials)).map_err(|error| error.to_string())
}

/// A folder in which each file is a stored request: how many there are and how many items they say to have, as a collector
/// that starts there finds and counts them.
pub fn stored_folder(files: &[&[u8]]) -> io::Result<(usize, u64)> {
    let folder = tempfile::tempdir()?;
    for (number, file) in files.iter().enumerate() {
        std::fs::write(folder.path().join(format!("{number:012}.otlp")), file)?;
    }
    let spool = Spool::open(folder.path(), Arc::default())?;
    let counters = Counters::default();
    for component in ["one", "other"] {
        counters.resume(component, Signal::Traces, spool.items());
    }
    Ok((spool.len(), counters.total(Signal::Traces, &Tally::Resumed)))
}

fn credentials_of(pairs: &[(&str, &str)]) -> Vec<Credential> {
    let credential =
        |(variable, value): &(&str, &str)| Credential { variable: (*variable).into(), value: (*value).into() };
    pairs.iter().map(credential).collect()
}

/// Reads and checks the text of a configuration; no file is read for it.
pub fn load_config(text: &str, environment: &dyn Fn(&str) -> Option<OsString>) -> Result<Config, Problems> {
    let no_files = |_: &str| Err(io::Error::other("there are no files here"));
    load::load_with(&[Source::Named(format!("yaml:{text}"))], environment, &no_files)
}

/// Runs a text as a statement, and as a condition, in every context of the payload's signal that takes it; gives what
/// the payload is after each run.
#[must_use]
pub fn run_statement(text: &str, payload: &Payload) -> Vec<Payload> {
    let styles = Level::of(payload.signal).iter().map(|level| Style::Given(*level)).chain([Style::Inferred]);
    let run = |style: Style| {
        let group = Group::compile(payload.signal, style, &[text], &[], ErrorMode::Propagate).ok()?;
        let mut payload = payload.clone();
        let mut scene = |scene: &mut Scene| group.run(scene, &|_| ()).map(|()| true);
        // A failing statement leaves a payload that must be sound, too.
        let _ = walk(&mut payload, group.context, &mut scene);
        Some(payload)
    };
    let filter = |level: &Level| {
        let conditions = Conditions::compile(*level, &[text], ErrorMode::Propagate).ok()?;
        let mut payload = payload.clone();
        let _ = walk(&mut payload, *level, &mut |scene| conditions.hold(scene, &|_| ()).map(|holds| !holds));
        Some(payload)
    };
    styles.filter_map(run).chain(Level::of(payload.signal).iter().filter_map(filter)).collect()
}
