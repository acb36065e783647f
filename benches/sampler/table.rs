//! The table, in Markdown.

use crate::statistics::Series;

/// Rows and remarks, printed at the end.
#[derive(Default)]
pub struct Table {
    rows: Vec<String>,
    notes: Vec<String>,
}

/// One thing that was measured.
#[derive(Default)]
pub struct Row {
    /// What, with its unit.
    pub name: String,
    /// Digits behind the point.
    pub digits: usize,
    /// The floor, gymrun, the Python walk, psutil: those that took part.
    pub floor: Option<Series>,
    pub ours: Series,
    pub walk: Option<Series>,
    pub psutil: Option<Series>,
    /// What is wanted of gymrun: of which peer it may need so many times as much.
    pub goals: Vec<(Peer, f64)>,
}

/// Beside whom gymrun is measured.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Peer {
    Floor,
    Walk,
    Psutil,
}

impl Table {
    pub fn add(&mut self, row: &Row) {
        self.rows.push(row.line());
        eprintln!("{}", row.line());
    }

    pub fn note(&mut self, text: impl Into<String>) {
        self.notes.push(text.into());
    }

    pub fn print(&self) {
        println!("\n| measured: median (least–most) | floor | gymrun | Python walk | psutil | gymrun is | goal |");
        println!("|---|---|---|---|---|---|---|");
        self.rows.iter().for_each(|row| println!("{row}"));
        println!();
        self.notes.iter().for_each(|note| println!("- {note}"));
    }
}

impl Row {
    fn line(&self) -> String {
        let cell = |series: Option<&Series>| series.map(|series| self.spread(series)).unwrap_or_default();
        let cells = [
            self.name.clone(),
            cell(self.floor.as_ref()),
            self.spread(&self.ours),
            cell(self.walk.as_ref()),
            cell(self.psutil.as_ref()),
            self.ratios(),
            self.goal(),
        ];
        format!("| {} |", cells.join(" | "))
    }

    fn series(&self, peer: Peer) -> Option<&Series> {
        match peer {
            Peer::Floor => self.floor.as_ref(),
            Peer::Walk => self.walk.as_ref(),
            Peer::Psutil => self.psutil.as_ref(),
        }
    }

    fn times(&self, peer: Peer) -> Option<f64> {
        Some(self.ours.median() / self.series(peer)?.median())
    }

    fn spread(&self, series: &Series) -> String {
        format!("{:.3$} ({:.3$}–{:.3$})", series.median(), series.least(), series.most(), self.digits)
    }

    fn ratios(&self) -> String {
        let peers = [(Peer::Floor, "floor"), (Peer::Walk, "Python walk"), (Peer::Psutil, "psutil")];
        let ratios = peers.into_iter().filter_map(|(peer, name)| Some(format!("{:.2}x {name}", self.times(peer)?)));
        ratios.collect::<Vec<_>>().join(", ")
    }

    fn goal(&self) -> String {
        let goals = self.goals.iter().filter_map(|(peer, most)| {
            let name = if *peer == Peer::Floor { "floor" } else { "Python walk" };
            let reached = if self.times(*peer)? <= *most { "reached" } else { "**missed**" };
            Some(format!("≤ {most}x {name}: {reached}"))
        });
        goals.collect::<Vec<_>>().join(", ")
    }
}
