//! The functions: editors, which change something, and converters, which have a value.

mod converters;
mod editors;
mod maps;
mod replacement;
mod texts;

use super::Fault;
use super::arguments::{Argument, ArgumentKind, Arguments, Parameter};
use super::context::Level;
use super::scene::Scene;
use super::syntax;
use super::value::Value;
pub(super) use converters::POINT_CONVERTERS;

/// A function: its name, what it takes and what it does.
#[derive(Debug)]
pub(super) struct Function {
    pub name: &'static str,
    pub parameters: &'static [Parameter],
    /// The context that has it; None for all.
    pub only: Option<Level>,
    /// What else the arguments must be.
    pub check: fn(Arguments<'_>) -> Result<(), String>,
    pub run: Run,
}

/// What a function does.
#[derive(Debug)]
pub(super) enum Run {
    Convert(fn(Arguments<'_>, &Scene) -> Result<Value, String>),
    Edit(fn(Arguments<'_>, &mut Scene) -> Result<(), String>),
}

const fn required(name: &'static str, kind: ArgumentKind) -> Parameter {
    Parameter { name, kind, optional: false }
}

const fn optional(name: &'static str, kind: ArgumentKind) -> Parameter {
    Parameter { name, kind, optional: true }
}

const fn editor(
    name: &'static str,
    parameters: &'static [Parameter],
    run: fn(Arguments<'_>, &mut Scene) -> Result<(), String>,
) -> Function {
    Function { name, parameters, only: None, check: |_| Ok(()), run: Run::Edit(run) }
}

const fn converter(
    name: &'static str,
    parameters: &'static [Parameter],
    run: fn(Arguments<'_>, &Scene) -> Result<Value, String>,
) -> Function {
    Function { name, parameters, only: None, check: |_| Ok(()), run: Run::Convert(run) }
}

impl Function {
    const fn checked(self, check: fn(Arguments<'_>) -> Result<(), String>) -> Self {
        Self { name: self.name, parameters: self.parameters, only: self.only, check, run: self.run }
    }

    const fn only(self, level: Level) -> Self {
        Self { name: self.name, parameters: self.parameters, only: Some(level), check: self.check, run: self.run }
    }

    /// Looks at the arguments when the statement is read.
    pub fn check(&self, arguments: &[Argument]) -> Result<(), String> {
        (self.check)(Arguments(arguments))
    }

    /// What a converter gives.
    pub fn convert(&self, arguments: &[Argument], scene: &Scene) -> Result<Value, String> {
        match self.run {
            Run::Convert(run) => run(Arguments(arguments), scene),
            Run::Edit(_) => Err(format!("`{}` has no value", self.name)),
        }
    }

    /// What an editor does.
    pub fn edit(&self, arguments: &[Argument], scene: &mut Scene) -> Result<(), String> {
        match self.run {
            Run::Edit(run) => run(Arguments(arguments), scene),
            Run::Convert(_) => Err(format!("`{}` changes nothing", self.name)),
        }
    }

    /// Whether it can be given to an editor, for the texts that this one puts in.
    pub fn takes_one_text(&self) -> bool {
        matches!(self.parameters, [Parameter { kind: ArgumentKind::Text, .. }]) && matches!(self.run, Run::Convert(_))
    }

    /// How it is written.
    pub fn usage(&self) -> String {
        let one = |parameter: &Parameter| {
            if parameter.optional { format!("[{}]", parameter.name) } else { parameter.name.to_owned() }
        };
        format!("{}({})", self.name, self.parameters.iter().map(one).collect::<Vec<_>>().join(", "))
    }
}

/// The function of this name, where the context has it.
pub(super) fn find(name: &str, context: Level, extra: &'static [Function]) -> Option<&'static Function> {
    let here = |function: &&Function| function.name == name && function.only.is_none_or(|level| level == context);
    editors::EDITORS.iter().chain(converters::CONVERTERS).chain(extra).find(here)
}

/// Whether a name is an editor's, by the way it is written; the others are converters'.
pub(super) fn is_editor(name: &str) -> bool {
    name.starts_with(|c: char| c.is_ascii_lowercase())
}

/// What to say about a name that means no function, or none in this context.
pub(super) fn unknown(call: &syntax::Call, context: Level) -> Fault {
    let (word, list) =
        if is_editor(&call.name) { ("editor", editors::EDITORS) } else { ("converter", converters::CONVERTERS) };
    let elsewhere = |function: &&Function| function.name == call.name;
    if let Some(Function { only: Some(level), .. }) = list.iter().find(elsewhere) {
        let what =
            format!("`{}` is there in the context `{}` only, not in `{}`", call.name, level.name(), context.name());
        return Fault::new(call.at, what);
    }
    if POINT_CONVERTERS.iter().any(|function| elsewhere(&function)) {
        return Fault::new(call.at, format!("`{}` is there in conditions of the context `metric` only", call.name));
    }
    let names: Vec<&str> = list.iter().map(|function| function.name).collect();
    let hint = match crate::diag::nearest(&call.name, names.iter().copied()) {
        Some(name) => format!("did you mean `{name}`? supported: {}", names.join(", ")),
        None => format!("supported: {}", names.join(", ")),
    };
    Fault::new(call.at, format!("the {word} `{}` is not supported by this collector", call.name)).hint(hint)
}
