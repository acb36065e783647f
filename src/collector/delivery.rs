//! `delivery.json`: what became of the data, for whoever reports the run.
//!
//! Per signal: `received` (what receivers and connectors put into the pipelines, once), `refused` (not taken by the
//! pipelines: a client was told, or it is among the dropped), `written` (sum over file exporters), `sent` and
//! `rejected` (sums over network exporters), `dropped` by reason (sum over all components); only if there is any:
//! `stored` (on disk at the end, to be sent later), `resumed` (on disk at the start). Two exporters of one kind that
//! get the same data count it twice; `components` has each on its own. Counts are spans, data points, log records.

use std::collections::BTreeMap;
use std::path::Path;

use serde_json::{Map, Value, json};

use super::counters::{Counters, Tally};
use super::items::items_word;
use crate::files::Reserved;
use crate::otlp::Signal;

/// The name of the file.
pub const FILE_NAME: &str = "delivery.json";

/// The report as JSON.
#[must_use]
pub fn report(counters: &Counters) -> Value {
    let all = counters.all();
    let mut report = Map::new();
    for signal in Signal::ALL {
        let rows = all.iter().filter(|(_, of, ..)| *of == signal).map(|(_, _, tally, n)| (tally, *n));
        report.insert(signal.name().to_owned(), counts(rows, true));
    }
    if let Some(error) = counters.last_error() {
        report.insert("last_error".to_owned(), Value::String(error));
    }
    let mut components = Map::new();
    for (component, signal, ..) in &all {
        let of_component = components.entry(component.clone()).or_insert_with(|| json!({}));
        let rows = all.iter().filter(|(other, of, ..)| other == component && of == signal);
        of_component[signal.name()] = counts(rows.map(|(_, _, tally, n)| (tally, *n)), false);
    }
    report.insert("components".to_owned(), Value::Object(components));
    Value::Object(report)
}

fn counts<'a>(rows: impl Iterator<Item = (&'a Tally, u64)>, zeros: bool) -> Value {
    let mut counts = Map::new();
    let mut dropped = Map::new();
    if zeros {
        for key in ["received", "refused", "written", "sent", "rejected"] {
            counts.insert(key.to_owned(), json!(0));
        }
    }
    for (tally, n) in rows {
        let (map, key) = match tally {
            Tally::Received => (&mut counts, "received"),
            Tally::Refused => (&mut counts, "refused"),
            Tally::Written => (&mut counts, "written"),
            Tally::Sent => (&mut counts, "sent"),
            Tally::Rejected => (&mut counts, "rejected"),
            Tally::Stored => (&mut counts, "stored"),
            Tally::Resumed => (&mut counts, "resumed"),
            Tally::Dropped(reason) => (&mut dropped, reason.as_ref()),
        };
        let former = map.get(key).and_then(Value::as_u64).unwrap_or(0);
        map.insert(key.to_owned(), json!(former + n));
    }
    if zeros || !dropped.is_empty() {
        counts.insert("dropped".to_owned(), Value::Object(dropped));
    }
    Value::Object(counts)
}

/// One line for people: what was received, written, sent, rejected, dropped.
#[must_use]
pub fn summary(counters: &Counters) -> String {
    let mut parts = Vec::new();
    for signal in Signal::ALL {
        let total = |tally: &Tally| counters.total(signal, tally);
        let counts = [
            (total(&Tally::Received), "received"),
            (total(&Tally::Refused), "refused"),
            (total(&Tally::Written), "written"),
            (total(&Tally::Sent), "sent"),
            (total(&Tally::Rejected), "rejected"),
            (total(&Tally::Stored), "stored"),
            (total(&Tally::Resumed), "resumed"),
        ];
        let mut said: Vec<String> =
            counts.iter().filter(|(n, _)| *n > 0).map(|(n, word)| format!("{n} {word}")).collect();
        said.extend(dropped(counters, signal));
        if !said.is_empty() {
            parts.push(format!("{}: {}", items_word(signal), said.join(", ")));
        }
    }
    let mut text = if parts.is_empty() { "nothing was received".to_owned() } else { parts.join("; ") };
    if let Some(error) = counters.last_error() {
        text.push_str("; last error: ");
        text.push_str(&error);
    }
    text
}

/// `5 dropped (2 http_400, 3 shutdown)`.
fn dropped(counters: &Counters, signal: Signal) -> Option<String> {
    let mut reasons: BTreeMap<String, u64> = BTreeMap::new();
    for (_, of, tally, count) in counters.all() {
        if let (true, Tally::Dropped(reason)) = (of == signal, tally) {
            *reasons.entry(reason.into_owned()).or_default() += count;
        }
    }
    let parts: Vec<String> = reasons.iter().map(|(reason, count)| format!("{count} {reason}")).collect();
    let all: u64 = reasons.values().sum();
    (all > 0).then(|| format!("{all} dropped ({})", parts.join(", ")))
}

/// How many bytes the report will hardly exceed.
const ROOM: u32 = 32 << 10;

/// Room for the report in `directory`.
#[must_use]
pub fn reserve(directory: &Path) -> Reserved {
    Reserved::new(&directory.join(FILE_NAME), ROOM)
}

/// Writes the report into its room, whole or not at all.
pub fn write(counters: &Counters, mut room: Reserved) -> std::io::Result<()> {
    let mut text = serde_json::to_vec_pretty(&report(counters))?;
    text.push(b'\n');
    room.write(&text)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::collector::config::secrets::Secrets;

    #[test]
    fn sums_and_parts() {
        let counters = Counters::default();
        counters.add("receivers/otlp", Signal::Traces, Tally::Received, 10);
        counters.add("exporters/file/a", Signal::Traces, Tally::Written, 10);
        counters.add("exporters/otlp_http", Signal::Traces, Tally::Sent, 4);
        counters.add("exporters/otlp_http", Signal::Traces, Tally::Rejected, 1);
        counters.add("exporters/otlp_http", Signal::Traces, Tally::Dropped("http_400".into()), 2);
        counters.add("exporters/otlp_http", Signal::Traces, Tally::Dropped("shutdown".into()), 1);
        counters.add("processors/batch", Signal::Traces, Tally::Dropped("shutdown".into()), 2);
        counters.set_last_error("exporters/otlp_http", "400", &Secrets::default());
        let report = report(&counters);
        assert_eq!(
            report["traces"],
            json!({"received": 10, "refused": 0, "written": 10, "sent": 4, "rejected": 1, "dropped": {"http_400": 2, "shutdown": 3}})
        );
        assert_eq!(report["logs"]["dropped"], json!({}));
        assert_eq!(report["components"]["exporters/file/a"], json!({"traces": {"written": 10}}));
        assert_eq!(
            summary(&counters),
            "spans: 10 received, 10 written, 4 sent, 1 rejected, 5 dropped (2 http_400, 3 shutdown); last error: exporters/otlp_http: 400"
        );
    }

    #[test]
    fn the_file_is_written_whole() {
        let directory = tempfile::tempdir().expect("directory");
        write(&Counters::default(), reserve(directory.path())).expect("writes");
        let text = std::fs::read_to_string(directory.path().join(FILE_NAME)).expect("reads");
        assert!(serde_json::from_str::<Value>(&text).is_ok());
    }
}
