//! Where the problems of a configuration are collected, each at its line.

use std::cell::RefCell;

use crate::collector::config::secrets::Secrets;
use crate::diag::{Location, Problem, Problems};

/// Where problems go, and in which file they are.
pub struct Findings {
    /// The files as people name them, in order; see [`Findings::LINES`].
    files: Vec<String>,
    /// What was found so far.
    pub problems: RefCell<Problems>,
    /// What no text may show.
    pub secrets: RefCell<Secrets>,
}

impl Findings {
    /// A configuration of several files is one tree. The lines of its second file are counted from here on, and so on; at
    /// this number itself stands what has no lines.
    pub const LINES: u32 = 10_000_000;

    /// Nothing found in `file` yet.
    pub fn new(file: impl Into<String>) -> Self {
        Self::of(vec![file.into()])
    }

    /// Nothing found in several files yet.
    #[must_use]
    pub fn of(files: Vec<String>) -> Self {
        Self { files, problems: RefCell::default(), secrets: RefCell::default() }
    }

    /// Records a problem at a line and path.
    pub fn push(&self, line: u32, path: &str, problem: Problem) {
        let problem = self.secrets.borrow().mask_problem(problem.at(path));
        let place = usize::try_from(line / Self::LINES).unwrap_or_default();
        let file = self.files.get(place).or(self.files.last()).cloned().unwrap_or_default();
        let line = line % Self::LINES;
        let location = if line == 0 { Location::file(file) } else { Location::new(file, line) };
        self.problems.borrow_mut().push(problem.in_file(location));
    }
}
