//! The editors.

use super::super::arguments::ArgumentKind;
use super::super::scene::Scene;
use super::super::value::Value;
use super::replacement::{Replacement, replacing};
use super::{Function, editor, maps, required};

pub(super) const EDITORS: &[Function] = &[
    editor(
        "set",
        &[required("target", ArgumentKind::Target), required("value", ArgumentKind::Any)],
        |arguments, scene| {
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
        },
    ),
    maps::DELETE_KEY,
    maps::DELETE_MATCHING_KEYS,
    maps::KEEP_KEYS,
    maps::KEEP_MATCHING_KEYS,
    editor(
        "replace_pattern",
        replacing![required("target", ArgumentKind::Target), required("regex_pattern", ArgumentKind::Pattern)],
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
        replacing![required("target", ArgumentKind::Target), required("pattern", ArgumentKind::Glob)],
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
