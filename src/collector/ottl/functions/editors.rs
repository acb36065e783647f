//! The editors.

use regex::Regex;

use super::super::arguments::{Argument, Arguments, Kind};
use super::super::expression::Expression;
use super::super::scene::Scene;
use super::super::value::Value;
use super::{Function, Run, editor, maps, optional, required};
use crate::collector::go_format::{self, Printable};
use crate::collector::pattern::expand;
use crate::otlp::Text;

pub(super) const EDITORS: &[Function] = &[
    editor("set", &[required("target", Kind::Target), required("value", Kind::Any)], |arguments, scene| {
        let target = arguments.place(0)?;
        let is_map = |place, scene: &Scene| matches!(scene.read(place), Ok(Value::Map(_)));
        if arguments.place_of_value(1).is_some_and(|source| source.contains(target) && is_map(source, scene))
            && !is_map(target, scene)
        {
            // The place is made before the map around it is copied: so it is in the copy, empty.
            scene.write(target, Value::Map(Vec::new()))?;
        }
        let value = arguments.value(1, scene)?;
        scene.write(target, value)
    }),
    maps::DELETE_KEY,
    maps::DELETE_MATCHING_KEYS,
    maps::KEEP_KEYS,
    maps::KEEP_MATCHING_KEYS,
    editor(
        "replace_pattern",
        &[
            required("target", Kind::Target),
            required("regex_pattern", Kind::Pattern),
            required("replacement", Kind::Text),
            optional("function", Kind::Function),
            optional("replacement_format", Kind::Text),
        ],
        |arguments, scene| {
            let target = arguments.place(0)?;
            let old = scene.read(target)?;
            if old == Value::Nil {
                return Ok(());
            }
            let replacement = Replacement::of(arguments, 2, scene)?;
            let Value::Text(old) = old else { return Ok(()) };
            let pattern = arguments.pattern(1, scene)?;
            match replacement.replace(&pattern, &old, scene)? {
                Some(new) => scene.write(target, Value::Text(new)),
                None => Ok(()),
            }
        },
    ),
    editor(
        "replace_match",
        &[
            required("target", Kind::Target),
            required("pattern", Kind::Glob),
            required("replacement", Kind::Text),
            optional("function", Kind::Function),
            optional("replacement_format", Kind::Text),
        ],
        |arguments, scene| {
            let pattern = arguments.glob(1, scene)?;
            let target = arguments.place(0)?;
            let old = scene.read(target)?;
            let replacement = Replacement::of(arguments, 2, scene)?.whole(scene)?;
            match old {
                Value::Text(old) if pattern.is_match(&old.to_str()) => scene.write(target, Value::Text(replacement)),
                _ => Ok(()),
            }
        },
    ),
    maps::REPLACE_ALL_PATTERNS,
    maps::REPLACE_ALL_MATCHES,
    maps::TRUNCATE_ALL,
    maps::LIMIT,
    maps::MERGE_MAPS,
    maps::FLATTEN,
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
    pub fn replace(&self, pattern: &Regex, old: &Text, scene: &Scene) -> Result<Option<Text>, String> {
        let old = old.to_str();
        let template = self.template.to_str();
        let (mut new, mut end) = (String::new(), 0);
        let mut any = false;
        for found in pattern.captures_iter(&old) {
            let Some(whole) = found.get(0) else { continue };
            any = true;
            new.push_str(&old[end..whole.start()]);
            let expanded = expand(&template, pattern, &found);
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
        let Some(format) = &self.format else { return Ok(text) };
        let format = format.to_str();
        let others = format.as_bytes().windows(2).any(|pair| pair[0] == b'%' && pair[1] != b's');
        if !format.contains("%s") || others || format.contains('\n') {
            return Err(format!("the format {format:?} must have `%s` and no other `%`"));
        }
        Ok(go_format::format(&format, &[Printable::Text(text.to_str().into_owned())]).into())
    }
}
