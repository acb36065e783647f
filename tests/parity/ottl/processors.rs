//! Whole processors: `transform`, `filter`, `attributes` and `resource`, all at once, each in pipelines of its own.

use std::fmt::Write as _;

use gymrun::otlp::Signal;
use serde_json::json;

use super::super::bed::{Case, both};
use super::acceptance::{Asked, accepted, signals};
use super::tables::{in_order, request, send, table, whole};

/// A line of the table: `KIND {settings}`, or `KIND@SIGNAL {settings}` for what is made for one signal only; `! ` stands
/// before what the reference alone takes.
fn read(line: &str) -> Asked<'_> {
    let (ours_refuses, text) = line.strip_prefix("! ").map_or((false, line), |text| (true, text));
    let (kind, settings) = text.split_once(' ').expect(text);
    Asked { text, processor: (kind, settings.to_owned()), ours_refuses }
}

/// A file of its own for each processor, with what comes out of it; mutations of one pipeline do not show in another.
#[tokio::test]
async fn settings_of_all_kinds() {
    let table = table("processors");
    let asked: Vec<Asked<'_>> =
        table.lines().filter(|line| !line.is_empty() && !line.starts_with('#')).map(read).collect();
    let Some(places) = accepted(&asked) else { return };
    let processors: Vec<&Asked<'_>> = places.iter().map(|place| &asked[*place]).collect();
    let (mut exporters, mut pipelines) =
        ("nop: {}\n".to_owned(), "traces: {receivers: [otlp], exporters: [nop]}\n".to_owned());
    let mut settings = Vec::new();
    for (number, asked) in processors.iter().enumerate() {
        let (kind, signals) = signals(&asked.processor);
        let name = format!("{kind}/{number}");
        settings.push((name.clone(), asked.processor.1.clone()));
        writeln!(exporters, "  file/{number}: {{path: $OUT/{number}.jsonl, flush_interval: 50ms}}").expect("memory");
        for signal in signals {
            writeln!(
                pipelines,
                "    {signal}/{number}: {{receivers: [otlp], processors: [{name}], exporters: [file/{number}]}}"
            )
            .expect("memory");
        }
    }
    let config = whole(settings.into_iter(), exporters.trim(), pipelines.trim());
    both(Case::new(config), async |side| {
        for signal in Signal::ALL {
            send(side, signal, &request(signal, 1)).await;
        }
        side.stop().await;
        for (number, asked) in processors.iter().enumerate() {
            for message in side.messages(&format!("{number}.jsonl")) {
                side.row(json!({ asked.text: in_order(message) }));
            }
            side.row(json!({"end of": asked.text}));
        }
    })
    .await;
}
