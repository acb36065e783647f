//! Statements that run together, and conditions that are looked at together.

use super::compile::{Compiler, Statement};
use super::context::{Hints, Level, Naming};
use super::expression::Condition;
use super::functions::{self, Function, POINT_CONVERTERS};
use super::scene::Scene;
use super::{Fault, parser, syntax};
use crate::otlp::Signal;

/// What becomes of a statement or condition that fails on an item.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ErrorMode {
    /// It is said, and the next one runs.
    #[default]
    Ignore,
    /// The next one runs.
    Silent,
    /// The payload is refused.
    Propagate,
}

impl ErrorMode {
    /// As configurations name them.
    pub const NAMES: [&'static str; 3] = ["ignore", "silent", "propagate"];

    /// The mode of this name, in any case.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        match name.to_ascii_lowercase().as_str() {
            "ignore" => Some(Self::Ignore),
            "silent" => Some(Self::Silent),
            "propagate" => Some(Self::Propagate),
            _ => None,
        }
    }

    /// What becomes of this failure; `say` takes what is said.
    fn settle(self, failure: String, say: &dyn Fn(&str)) -> Result<(), String> {
        match self {
            Self::Propagate => return Err(failure),
            Self::Ignore => say(&failure),
            Self::Silent => {}
        }
        Ok(())
    }
}

/// A statement or condition that cannot be used: its place in its list.
#[derive(Debug)]
pub struct Wrong {
    /// Whether it is a condition.
    pub condition: bool,
    /// Counted from 0.
    pub index: usize,
    /// What is wrong with it.
    pub fault: Fault,
}

/// How the context of statements is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Style {
    /// It is given; paths need not name it.
    Given(Level),
    /// It follows from the paths, which all begin with the name of a context.
    Inferred,
}

/// Statements of one context, one after the other on each item for which one of the conditions holds.
#[derive(Debug)]
pub struct Group {
    /// What they run once for.
    pub context: Level,
    conditions: Conditions,
    statements: Vec<(String, Statement)>,
}

/// Conditions of one context, of which one must hold.
#[derive(Debug)]
pub struct Conditions {
    mode: ErrorMode,
    list: Vec<(String, Condition)>,
}

/// All that parse, or what is wrong with the others.
fn parse_all<T>(
    texts: &[&str],
    condition: bool,
    parse: fn(&str) -> Result<T, Fault>,
    wrong: &mut Vec<Wrong>,
) -> Vec<(usize, T)> {
    let mut parsed = Vec::new();
    for (index, text) in texts.iter().enumerate() {
        match parse(text) {
            Ok(one) => parsed.push((index, one)),
            Err(fault) => wrong.push(Wrong { condition, index, fault }),
        }
    }
    parsed
}

impl Group {
    /// Reads a group; gives all that is wrong with it.
    pub fn compile(
        signal: Signal,
        style: Style,
        statements: &[&str],
        conditions: &[&str],
        mode: ErrorMode,
    ) -> Result<Self, Vec<Wrong>> {
        let mut wrong = Vec::new();
        let mut inferred = None;
        let has = |level, name: &str| functions::find(name, level, &[]).is_some();
        let parsed = parse_all(statements, false, parser::statement, &mut wrong);
        let parsed_conditions = parse_all(conditions, true, parser::condition, &mut wrong);
        let context = match style {
            Style::Given(level) => *inferred.insert(level),
            Style::Inferred => {
                let mut hints = Hints::default();
                for (_, statement) in &parsed {
                    statement.each_name(&mut |named| hints.add(&named));
                }
                for (_, condition) in &parsed_conditions {
                    condition.each_name(&mut |named| hints.add(&named));
                }
                inferred = hints.infer(signal, has);
                inferred.unwrap_or_else(|| hints.likely(signal, has))
            }
        };
        let naming = if style == Style::Inferred { Naming::Required } else { Naming::Optional };
        let compiler = Compiler { context, naming, extra: &[] };
        let mut ready = Vec::new();
        for (index, statement) in &parsed {
            match compiler.statement(statement) {
                Ok(statement) => ready.push((statements[*index].to_owned(), statement)),
                Err(faults) => {
                    wrong.extend(faults.into_iter().map(|fault| Wrong { condition: false, index: *index, fault }));
                }
            }
        }
        let conditions = Conditions::of(compiler, conditions, parsed_conditions, mode, &mut wrong);
        if wrong.is_empty() && inferred.is_none() {
            wrong.push(Wrong { condition: false, index: 0, fault: uninferred(signal) });
        }
        if wrong.is_empty() { Ok(Self { context, conditions, statements: ready }) } else { Err(wrong) }
    }

    /// Runs the statements on one item; an error is for the sender.
    pub fn run(&self, scene: &mut Scene, say: &dyn Fn(&str)) -> Result<(), String> {
        if !self.conditions.list.is_empty() && !self.conditions.hold(scene, say)? {
            return Ok(());
        }
        for (text, statement) in &self.statements {
            if let Err(why) = statement.run(scene) {
                self.conditions.mode.settle(format!("failed to execute statement: {text}, {why}"), say)?;
            }
        }
        Ok(())
    }
}

impl Statement {
    fn run(&self, scene: &mut Scene) -> Result<(), String> {
        if let Some(condition) = &self.condition
            && !condition.holds(scene)?
        {
            return Ok(());
        }
        self.editor.function.edit(&self.editor.arguments, scene)
    }
}

impl Conditions {
    /// Reads conditions of a given context, in which paths need not name it.
    pub fn compile(level: Level, texts: &[&str], mode: ErrorMode) -> Result<Self, Vec<Wrong>> {
        let mut wrong = Vec::new();
        let parsed = parse_all(texts, true, parser::condition, &mut wrong);
        let compiler = Compiler { context: level, naming: Naming::Optional, extra: POINT_CONVERTERS };
        let conditions = Self::of(compiler, texts, parsed, mode, &mut wrong);
        if wrong.is_empty() { Ok(conditions) } else { Err(wrong) }
    }

    /// Reads conditions that each name their contexts; gives those of each context.
    pub fn infer(signal: Signal, texts: &[&str], mode: ErrorMode) -> Result<Vec<(Level, Self)>, Vec<Wrong>> {
        let mut wrong = Vec::new();
        let mut by_level: Vec<(Level, Self)> = Vec::new();
        for (index, condition) in parse_all(texts, true, parser::condition, &mut wrong) {
            let mut hints = Hints::default();
            condition.each_name(&mut |named| hints.add(&named));
            let has = |level, name: &str| functions::find(name, level, extra_of(level)).is_some();
            let inferred = hints.infer(signal, has);
            let context = inferred.unwrap_or_else(|| hints.likely(signal, has));
            let compiler = Compiler { context, naming: Naming::Required, extra: extra_of(context) };
            let outcome = compiler.condition(&condition).and_then(|condition| match inferred {
                Some(level) => Ok((level, condition)),
                None => Err(uninferred(signal).into()),
            });
            match outcome {
                Ok((level, condition)) => {
                    let entry = (texts[index].to_owned(), condition);
                    match by_level.iter_mut().find(|(other, _)| *other == level) {
                        Some((_, conditions)) => conditions.list.push(entry),
                        None => by_level.push((level, Self { mode, list: vec![entry] })),
                    }
                }
                Err(faults) => wrong.extend(faults.into_iter().map(|fault| Wrong { condition: true, index, fault })),
            }
        }
        if wrong.is_empty() { Ok(by_level) } else { Err(wrong) }
    }

    fn of(
        compiler: Compiler,
        texts: &[&str],
        parsed: Vec<(usize, syntax::Condition)>,
        mode: ErrorMode,
        wrong: &mut Vec<Wrong>,
    ) -> Self {
        let compiler = Compiler { extra: extra_of(compiler.context), ..compiler };
        let mut list = Vec::new();
        for (index, condition) in parsed {
            match compiler.condition(&condition) {
                Ok(condition) => list.push((texts[index].to_owned(), condition)),
                Err(faults) => wrong.extend(faults.into_iter().map(|fault| Wrong { condition: true, index, fault })),
            }
        }
        Self { mode, list }
    }

    /// Whether one of them holds; an error is for the sender.
    pub fn hold(&self, scene: &Scene, say: &dyn Fn(&str)) -> Result<bool, String> {
        for (text, condition) in &self.list {
            match condition.holds(scene) {
                Ok(true) => return Ok(true),
                Ok(false) => {}
                Err(why) => self.mode.settle(format!("failed to eval condition: {text}, {why}"), say)?,
            }
        }
        Ok(false)
    }
}

/// Nothing is wrong but that the context cannot be told.
fn uninferred(signal: Signal) -> Fault {
    let known = Level::of(signal).iter().map(|level| level.name()).collect::<Vec<_>>().join(", ");
    Fault::new(0, "no path names a context").hint(format!("begin paths with one of: {known}"))
}

/// What is wrong with the grammar of statements and conditions, where nothing is known of their context.
pub fn misread(statements: &[&str], conditions: &[&str]) -> Vec<Wrong> {
    let mut wrong = Vec::new();
    parse_all(statements, false, parser::statement, &mut wrong);
    parse_all(conditions, true, parser::condition, &mut wrong);
    wrong
}

/// Converters that conditions have beside those of statements.
fn extra_of(level: Level) -> &'static [Function] {
    if level == Level::Metric { POINT_CONVERTERS } else { &[] }
}
