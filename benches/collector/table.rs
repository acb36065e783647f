//! The table, in Markdown.

use crate::bed::{Program, Requests, SPANS_PER_REQUEST};
use crate::options::Options;
use crate::statistics::Series;

/// Rows and remarks, printed at the end.
pub struct Table {
    rows: Vec<Row>,
    notes: Vec<String>,
}

/// One thing that was measured, of all programs.
pub struct Row {
    /// What, with its unit.
    pub name: String,
    /// Digits behind the point.
    pub digits: usize,
    /// Who took part.
    pub measured: Vec<(Program, Series)>,
    /// What is wanted of gymrun.
    pub goal: Goal,
    /// What cannot be undercut, where that is not a program of its own.
    pub floor: Option<f64>,
}

/// What is wanted of gymrun.
#[derive(Clone, Copy)]
pub enum Goal {
    /// Nothing; the row is there to be known.
    None,
    /// At most so many times each of these.
    AtMost(&'static [(Program, f64)]),
    /// At least so many times this.
    AtLeast(Program, f64),
    /// At most this, in the unit of the row.
    Value(f64),
}

impl Table {
    /// An empty one, with the circumstances.
    pub fn begin(options: &Options) -> Self {
        let requests = Requests::make();
        let mut notes = vec![
            format!("Load average at the start: {}.", load_average()),
            format!(
                "{} repetitions of {} spans; requests of {SPANS_PER_REQUEST} spans with 5 to 20 attributes, {:.0} bytes a span.",
                options.repetitions(),
                options.requests() * SPANS_PER_REQUEST as u64,
                requests.bytes_per_span
            ),
        ];
        for (program, variable) in [(Program::Otelcol, "GYMRUN_TEST_OTELCOL"), (Program::Rotel, "GYMRUN_BENCH_ROTEL")] {
            if program.path().is_none() {
                notes.push(format!(
                    "{} is absent: {variable} does not name it, and it is not on the path.",
                    program.name()
                ));
            }
        }
        Self { rows: Vec::new(), notes }
    }

    pub fn add(&mut self, row: Row) {
        self.rows.push(row);
    }

    pub fn note(&mut self, text: impl Into<String>) {
        self.notes.push(text.into());
    }

    pub fn print(&mut self) {
        println!("\n| measured: median (least–most) | gymrun | otelcol | rotel | floor | gymrun is | goal |");
        println!("|---|---|---|---|---|---|---|");
        for row in &self.rows {
            println!("{}", row.line());
        }
        self.note(format!("Load average at the end: {}.", load_average()));
        println!();
        for note in &self.notes {
            println!("- {note}");
        }
    }
}

impl Row {
    fn line(&self) -> String {
        let cell = |program: Program| match self.series(program) {
            Some(series) => self.spread(series),
            None if program.path().is_none() => "absent".to_owned(),
            None => String::new(),
        };
        let floor = match (self.series(Program::Discard), self.floor) {
            (Some(series), _) => self.spread(series),
            (None, Some(value)) => format!("{value:.*}", self.digits),
            (None, None) => String::new(),
        };
        let [ours, reference, rotel] = [Program::Gymrun, Program::Otelcol, Program::Rotel].map(cell);
        let cells = [&self.name, &ours, &reference, &rotel, &floor, &self.ratios(), &self.goal()];
        format!("| {} |", cells.map(String::as_str).join(" | "))
    }

    /// What a program gave.
    pub fn series(&self, program: Program) -> Option<&Series> {
        self.measured.iter().find(|(known, _)| *known == program).map(|(_, series)| series)
    }

    fn spread(&self, series: &Series) -> String {
        let [median, least, most] = [series.median(), series.least(), series.most()];
        format!("{median:.0$} ({least:.0$}–{most:.0$})", self.digits)
    }

    fn ratios(&self) -> String {
        let Some(ours) = self.series(Program::Gymrun).map(Series::median) else { return String::new() };
        let peers = [Program::Otelcol, Program::Rotel, Program::Discard];
        let ratio = |peer| Some((peer, ours / self.series(peer)?.median()));
        let floor = self.floor.map(|floor| format!("{:.2}x floor", ours / floor));
        let ratios = peers.into_iter().filter_map(ratio).map(|(peer, ratio)| format!("{ratio:.2}x {}", peer.name()));
        ratios.chain(floor).collect::<Vec<_>>().join(", ")
    }

    fn goal(&self) -> String {
        let ours = self.series(Program::Gymrun).map(Series::median);
        let times = |peer| Some(ours? / self.series(peer)?.median());
        let (text, reached) = match self.goal {
            Goal::None => return String::new(),
            Goal::AtMost(peers) => (
                peers
                    .iter()
                    .map(|(peer, most)| format!("≤ {}x {}", short(*most), peer.name()))
                    .collect::<Vec<_>>()
                    .join(", "),
                peers.iter().map(|(peer, most)| Some(times(*peer)? <= *most)).collect::<Option<Vec<_>>>(),
            ),
            Goal::AtLeast(peer, least) => {
                (format!("≥ {least}x {}", peer.name()), times(peer).map(|times| vec![times >= least]))
            }
            Goal::Value(most) => (format!("≤ {most}"), ours.map(|ours| vec![ours <= most])),
        };
        match reached {
            None => text,
            Some(reached) if reached.iter().all(|reached| *reached) => format!("{text}: reached"),
            Some(_) => format!("{text}: **missed**"),
        }
    }
}

/// At most three digits behind the point.
fn short(value: f64) -> f64 {
    (value * 1e3).round() / 1e3
}

/// The load of the machine over 1, 5 and 15 minutes.
fn load_average() -> String {
    let text = std::fs::read_to_string("/proc/loadavg").unwrap_or_default();
    text.split(' ').take(3).collect::<Vec<_>>().join(" ")
}
