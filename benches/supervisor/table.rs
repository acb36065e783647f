//! Tables, in Markdown.

use crate::statistics::Series;

/// Rows and remarks about the same programs.
pub struct Table {
    title: &'static str,
    /// gymrun first, then what nobody undercuts, then the peers.
    columns: Vec<String>,
    rows: Vec<Row>,
    notes: Vec<String>,
}

/// One thing that was measured.
pub struct Row {
    /// What, with its unit.
    pub name: String,
    /// Digits behind the point.
    pub digits: usize,
    /// Of each column, where it took part.
    pub cells: Vec<Option<Series>>,
    /// What is wanted of gymrun.
    pub goals: Vec<Goal>,
}

/// What is wanted of gymrun.
pub enum Goal {
    /// At most so many times something.
    Times { most: f64, of: f64, name: String },
    /// At most this, in the unit of the row.
    Value(f64),
}

impl Goal {
    /// At most so many times another.
    pub fn times(most: f64, of: f64, name: impl Into<String>) -> Self {
        Self::Times { most, of, name: name.into() }
    }
}

impl Table {
    /// An empty one.
    pub fn new(title: &'static str, columns: impl IntoIterator<Item = impl Into<String>>) -> Self {
        let columns = columns.into_iter().map(Into::into).collect();
        Self { title, columns, rows: Vec::new(), notes: Vec::new() }
    }

    pub fn add(&mut self, row: Row) {
        self.rows.push(row);
    }

    pub fn note(&mut self, text: impl Into<String>) {
        self.notes.push(text.into());
    }

    pub fn print(&self) {
        println!("\n### {}\n", self.title);
        println!("| median (least) | {} | gymrun is | goal |", self.columns.join(" | "));
        println!("|---{}|---|---|", "|---".repeat(self.columns.len()));
        for row in &self.rows {
            println!("{}", row.line());
        }
        println!();
        for note in &self.notes {
            println!("- {note}");
        }
    }
}

impl Row {
    fn line(&self) -> String {
        let digits = self.digits;
        let cell = |series: &Option<Series>| match series {
            Some(series) => format!("{:.digits$} ({:.digits$})", series.median(), series.least()),
            None => String::new(),
        };
        let mut cells = vec![self.name.clone()];
        cells.extend(self.cells.iter().map(cell));
        let ours = self.cells.first().and_then(Option::as_ref).map_or(f64::NAN, Series::median);
        let list = |say: &dyn Fn(&Goal) -> String| self.goals.iter().map(say).collect::<Vec<_>>().join(", ");
        cells.push(list(&|goal| goal.is(ours)));
        cells.push(list(&|goal| goal.verdict(ours)));
        format!("| {} |", cells.join(" | "))
    }
}

impl Goal {
    fn is(&self, ours: f64) -> String {
        match self {
            Self::Times { of, name, .. } => format!("{}x {name}", short(ours / of)),
            Self::Value(_) => String::new(),
        }
    }

    fn verdict(&self, ours: f64) -> String {
        let (text, reached) = match self {
            Self::Times { most, of, name } => (format!("≤ {}x {name}", short(*most)), ours <= most * of),
            Self::Value(most) => (format!("≤ {most}"), ours <= *most),
        };
        format!("{text}: {}", if reached { "reached" } else { "**missed**" })
    }
}

/// Three digits that count, at most four behind the point.
fn short(value: f64) -> f64 {
    let scale = if value < 0.1 { 1e4 } else { 1e2 };
    (value * scale).round() / scale
}

/// The load of the machine over 1, 5 and 15 minutes.
pub fn load_average() -> String {
    let text = std::fs::read_to_string("/proc/loadavg").unwrap_or_default();
    text.split(' ').take(3).collect::<Vec<_>>().join(" ")
}
