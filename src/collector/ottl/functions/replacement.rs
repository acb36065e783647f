//! What `replace_*` put in the place of what matches: a text, perhaps changed by a converter, perhaps in a format.

use super::super::arguments::{Argument, ArgumentKind, Arguments, Parameter, shown};
use super::super::expression::Expression;
use super::super::scene::Scene;
use super::super::value::Value;
use super::{Function, Run, optional, required};
use crate::collector::text::go_format::{self, Printable};
use crate::collector::text::pattern::Pattern;
use crate::otlp::Text;

/// The parameters of an editor that replaces: its own, then those that [`Replacement::of`] reads.
macro_rules! replacing {
    ($($own:expr),+) => {{
        use $crate::collector::ottl::functions::replacement::REPLACEMENT;
        &[$($own,)+ REPLACEMENT[0], REPLACEMENT[1], REPLACEMENT[2]]
    }};
}
pub(super) use replacing;

/// What all of them end with.
pub(super) const REPLACEMENT: [Parameter; 3] = [
    required("replacement", ArgumentKind::Text),
    optional("function", ArgumentKind::Function),
    optional("replacement_format", ArgumentKind::Text),
];

/// What is put in the place of what matches.
pub(super) struct Replacement {
    template: Text,
    function: Option<&'static Function>,
    format: Option<Text>,
}

impl Replacement {
    /// The replacement, the function and the format, which stand one after the other from this place on.
    pub fn of(arguments: Arguments<'_>, place: usize, scene: &Scene) -> Result<Self, String> {
        let function = arguments.function(place + 1);
        // Without a function the format has no meaning.
        let formatted = function.is_some() && arguments.has(place + 2);
        let format = if formatted { Some(arguments.text(place + 2, scene)?) } else { None };
        Ok(Self { template: arguments.text(place, scene)?, function, format })
    }

    /// The text with what matches replaced; None if nothing matches.
    pub fn replace(&self, pattern: &Pattern, old: &Text, scene: &Scene) -> Result<Option<Text>, String> {
        let old = old.to_str();
        let template = self.template.to_str();
        let (mut new, mut end) = (String::new(), 0);
        let mut any = false;
        for found in pattern.captures_iter(&old) {
            let Some(whole) = found.get(0) else { continue };
            any = true;
            new.push_str(&old[end..whole.start()]);
            let expanded = pattern.expand(&template, &found);
            match self.function {
                Some(function) => new.push_str(&self.applied(function, expanded.into(), scene)?.to_str()),
                None => new.push_str(&expanded),
            }
            end = whole.end();
        }
        new.push_str(&old[end..]);
        Ok(any.then(|| new.into()))
    }

    /// The replacement of a whole text, in which nothing is expanded.
    pub fn whole(&self, scene: &Scene) -> Result<Text, String> {
        match self.function {
            Some(function) => self.applied(function, self.template.clone(), scene),
            None => Ok(self.template.clone()),
        }
    }

    fn applied(&self, function: &Function, text: Text, scene: &Scene) -> Result<Text, String> {
        let Run::Convert(run) = function.run else { return Err(format!("`{}` has no value", function.name)) };
        let argument = [Argument::Expression(Expression::Literal(Value::Text(text)))];
        let Value::Text(text) = run(Arguments(&argument), scene)? else {
            return Err(format!("`{}` gave no text", function.name));
        };
        let Some(written) = &self.format else { return Ok(text) };
        let format = written.to_str();
        let others = format.as_bytes().windows(2).any(|pair| pair[0] == b'%' && pair[1] != b's');
        if !format.contains("%s") || others || format.contains('\n') {
            return Err(format!("the format {} must have `%s` and no other `%`", shown(written)));
        }
        Ok(go_format::format(&format, &[Printable::Text(text.to_str().into_owned())])?.into())
    }
}
