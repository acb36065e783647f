//! Editors of maps. Each takes the map from its place, and puts it back if it has changed.

use std::collections::HashMap;

use super::super::arguments::{ArgumentKind, Arguments, map};
use super::super::indexed::Indexed;
use super::super::keys::Resolved;
use super::super::scene::Scene;
use super::super::value::Value;
use super::replacement::{Replacement, replacing};
use super::texts::begins_character;
use super::{Function, editor, optional, required};
use crate::otlp::{AnyValue, KeyValue, Text};

type Map = Vec<KeyValue>;

/// Reads the map at the first argument, changes it, and writes it if `change` says that something changed.
fn edit_map(
    arguments: Arguments<'_>,
    scene: &mut Scene,
    change: impl FnOnce(&mut Map, &Scene) -> Result<bool, String>,
) -> Result<(), String> {
    let target = arguments.place(0)?;
    let mut entries = map(scene.read(target)?)?;
    if change(&mut entries, scene)? { scene.write(target, Value::Map(entries)) } else { Ok(()) }
}

/// Keeps the entries of which `keep` says so; whether some went.
fn retain(entries: &mut Map, mut keep: impl FnMut(&Text) -> bool) -> bool {
    let before = entries.len();
    entries.retain(|entry| keep(&entry.key));
    entries.len() != before
}

pub(super) const DELETE_KEY: Function = editor(
    "delete_key",
    &[required("target", ArgumentKind::MapTarget), required("key", ArgumentKind::Text)],
    |arguments, scene| {
        edit_map(arguments, scene, |entries, scene| {
            let key = arguments.text(1, scene)?;
            let place = entries.iter().position(|entry| entry.key == key);
            // The last one comes to stand in its place, as in the reference.
            Ok(place.map(|place| entries.swap_remove(place)).is_some())
        })
    },
);

pub(super) const DELETE_MATCHING_KEYS: Function = editor(
    "delete_matching_keys",
    &[required("target", ArgumentKind::MapTarget), required("pattern", ArgumentKind::Pattern)],
    |arguments, scene| {
        let pattern = arguments.pattern(1, scene)?;
        edit_map(arguments, scene, |entries, _| Ok(retain(entries, |key| !pattern.is_match(&key.to_str()))))
    },
);

pub(super) const KEEP_KEYS: Function = editor(
    "keep_keys",
    &[required("target", ArgumentKind::MapTarget), required("keys", ArgumentKind::Texts)],
    |arguments, scene| {
        edit_map(arguments, scene, |entries, scene| {
            let keys = arguments.expressions(1)?.iter().map(|key| match key.evaluate(scene)? {
                Value::Text(key) => Ok(key),
                other => Err(format!("expected text, found {}", other.kind())),
            });
            let keys: Vec<Text> = keys.collect::<Result<_, String>>()?;
            Ok(retain(entries, |key| keys.contains(key)))
        })
    },
);

pub(super) const KEEP_MATCHING_KEYS: Function = editor(
    "keep_matching_keys",
    &[required("target", ArgumentKind::MapTarget), required("pattern", ArgumentKind::Pattern)],
    |arguments, scene| {
        let pattern = arguments.pattern(1, scene)?;
        edit_map(arguments, scene, |entries, _| Ok(retain(entries, |key| pattern.is_match(&key.to_str()))))
    },
);

pub(super) const REPLACE_ALL_PATTERNS: Function = editor(
    "replace_all_patterns",
    replacing![
        required("target", ArgumentKind::MapTarget),
        required("mode", ArgumentKind::LiteralText),
        required("regex_pattern", ArgumentKind::Pattern)
    ],
    |arguments, scene| {
        edit_map(arguments, scene, |entries, scene| {
            let replacement = Replacement::of(arguments, 3, scene)?;
            let pattern = arguments.pattern(2, scene)?;
            let mut changed = false;
            if arguments.literal_text(1).is_some_and(|mode| *mode == "value") {
                for entry in entries {
                    // What the function fails for stays as it is.
                    if let AnyValue::String(old) = &entry.value
                        && let Ok(Some(new)) = replacement.replace(&pattern, old, scene)
                    {
                        entry.value = AnyValue::String(new);
                        changed = true;
                    }
                }
                return Ok(changed);
            }
            let (mut updated, before) = (Indexed::default(), entries.len());
            for old in std::mem::take(entries) {
                let key = match replacement.replace(&pattern, &old.key, scene) {
                    Ok(Some(key)) => key,
                    Ok(None) => {
                        *updated.entry(old.key) = old.value;
                        continue;
                    }
                    // An entry that the function fails for goes, as in the reference.
                    Err(_) => {
                        changed = true;
                        continue;
                    }
                };
                changed = true;
                *updated.entry(key) = old.value;
            }
            *entries = updated.into_entries();
            // A key that stands twice stands once then, whether or not the pattern fits.
            Ok(changed || entries.len() < before)
        })
    },
)
.checked(|arguments| match arguments.literal_text(1).map(Text::as_bytes) {
    Some(b"key" | b"value") => Ok(()),
    _ => Err("the mode must be `key` or `value`".to_owned()),
});

pub(super) const REPLACE_ALL_MATCHES: Function = editor(
    "replace_all_matches",
    replacing![required("target", ArgumentKind::MapTarget), required("pattern", ArgumentKind::Glob)],
    |arguments, scene| {
        let pattern = arguments.glob(1, scene)?;
        edit_map(arguments, scene, |entries, scene| {
            let replacement = Replacement::of(arguments, 2, scene)?.whole(scene)?;
            let mut changed = false;
            for entry in entries {
                if matches!(&entry.value, AnyValue::String(old) if pattern.is_match(&old.to_str())) {
                    entry.value = AnyValue::String(replacement.clone());
                    changed = true;
                }
            }
            Ok(changed)
        })
    },
);

pub(super) const TRUNCATE_ALL: Function = editor(
    "truncate_all",
    &[
        required("target", ArgumentKind::MapTarget),
        required("limit", ArgumentKind::LiteralInteger),
        optional("utf8_safe", ArgumentKind::LiteralBoolean),
        optional("truncation_marker", ArgumentKind::LiteralText),
    ],
    |arguments, scene| {
        let limit = limit_of(arguments);
        let marker = arguments.literal_text(3).map_or(&[][..], Text::as_bytes);
        let whole_characters = arguments.literal_boolean(2).unwrap_or(true);
        edit_map(arguments, scene, |entries, _| {
            let mut changed = false;
            for entry in entries {
                let AnyValue::String(text) = &entry.value else { continue };
                let bytes = text.as_bytes();
                if bytes.len() > limit {
                    let mut end = limit - marker.len().min(limit);
                    while whole_characters && end > 0 && !begins_character(bytes, end) {
                        end -= 1;
                    }
                    entry.value = AnyValue::String(bytes::Bytes::from([&bytes[..end], marker].concat()).into());
                    changed = true;
                }
            }
            Ok(changed)
        })
    },
)
.checked(|arguments| {
    let marker = arguments.literal_text(3).map_or(0, |marker| marker.as_bytes().len());
    if marker > limit_of(arguments) { Err("the marker is longer than the limit".to_owned()) } else { Ok(()) }
});

pub(super) const LIMIT: Function = editor(
    "limit",
    &[
        required("target", ArgumentKind::MapTarget),
        required("limit", ArgumentKind::LiteralInteger),
        required("priority_keys", ArgumentKind::LiteralTexts),
    ],
    |arguments, scene| {
        let limit = limit_of(arguments);
        let first = arguments.literal_texts(2)?;
        edit_map(arguments, scene, |entries, _| {
            if entries.len() <= limit {
                return Ok(false);
            }
            let mut count = first.iter().filter(|key| entries.iter().any(|entry| entry.key == **key)).count();
            Ok(retain(entries, |key| {
                let takes = first.contains(key) || count < limit;
                count += usize::from(takes && !first.contains(key));
                takes
            }))
        })
    },
)
.checked(|arguments| {
    let keys = arguments.literal_texts(2).map_or(0, <[Text]>::len);
    if keys > limit_of(arguments) { Err("there are more priority keys than the limit".to_owned()) } else { Ok(()) }
});

fn limit_of(arguments: Arguments<'_>) -> usize {
    arguments.literal_integer(1).and_then(|limit| usize::try_from(limit).ok()).unwrap_or(usize::MAX)
}

pub(super) const MERGE_MAPS: Function = editor(
    "merge_maps",
    &[
        required("target", ArgumentKind::MapTarget),
        required("source", ArgumentKind::Map),
        required("strategy", ArgumentKind::LiteralText),
    ],
    |arguments, scene| {
        let strategy = arguments.literal_text(2).map(Text::as_bytes);
        let target = arguments.place(0)?;
        let mut merged = Indexed::new(map(scene.read(target)?)?);
        let entries = arguments.map(1, scene)?;
        // A source that is around the target has the target under this key: with what was put there before, and with
        // the place for it. Of equal keys the one counts that is the last to be put.
        let around = arguments.place_of_value(1).filter(|source| source.contains(target));
        let way = around.and_then(|source| target.keys.get(source.keys.len())).map(|key| key.resolve(scene));
        let on_the_way = |entry: &KeyValue| matches!(&way, Some(Resolved::Name(key)) if *key == entry.key);
        let insert = strategy == Some(b"insert");
        let counts = if insert { entries.iter().position(on_the_way) } else { entries.iter().rposition(on_the_way) };
        let mut changed = false;
        for (place, entry) in entries.into_iter().enumerate() {
            let there = merged.has(&entry.key);
            if insert && there || strategy == Some(b"update") && !there {
                continue;
            }
            changed = true;
            let recursive = on_the_way(&entry);
            *merged.entry(entry.key.clone()) = if recursive { AnyValue::Empty } else { entry.value };
            if let (Some(source), true) = (around, recursive && counts == Some(place)) {
                scene.write(target, Value::Map(merged.entries().to_vec()))?;
                let source = Indexed::new(map(scene.read(source)?)?);
                let value = source.get(&entry.key).cloned().unwrap_or_default();
                *merged.entry(entry.key) = value;
            }
        }
        if changed { scene.write(target, Value::Map(merged.into_entries())) } else { Ok(()) }
    },
)
.checked(|arguments| match arguments.literal_text(2).map(Text::as_bytes) {
    Some(b"insert" | b"update" | b"upsert") => Ok(()),
    _ => Err("the strategy must be `insert`, `update` or `upsert`".to_owned()),
});

pub(super) const FLATTEN: Function = editor(
    "flatten",
    &[
        required("target", ArgumentKind::MapTarget),
        optional("prefix", ArgumentKind::LiteralText),
        optional("depth", ArgumentKind::LiteralInteger),
        optional("resolve_conflicts", ArgumentKind::LiteralBoolean),
    ],
    |arguments, scene| {
        let mut flattener = Flattener {
            flat: Indexed::default(),
            bytes: 0,
            conflicts: arguments.literal_boolean(3).unwrap_or(false).then(HashMap::new),
            deepest: arguments.literal_integer(2).unwrap_or(i64::MAX),
        };
        let prefix = arguments.literal_text(1).map(|prefix| prefix.to_str().into_owned()).unwrap_or_default();
        edit_map(arguments, scene, |entries, _| {
            flattener.map(std::mem::take(entries), &prefix, 0)?;
            *entries = flattener.flat.into_entries();
            Ok(true)
        })
    },
)
.checked(|arguments| match arguments.literal_integer(2) {
    Some(..1) => Err("the depth must be at least 1".to_owned()),
    _ => Ok(()),
});

/// How many bytes the keys that `flatten` makes may have: each one repeats those around it.
const MOST_KEYS: usize = 64 << 20;

struct Flattener {
    flat: Indexed,
    /// How many bytes the keys had so far.
    bytes: usize,
    /// How often a key came again; None if the last one of equal keys counts.
    conflicts: Option<HashMap<String, usize>>,
    deepest: i64,
}

impl Flattener {
    fn map(&mut self, entries: Map, prefix: &str, depth: i64) -> Result<(), String> {
        let prefix = if prefix.is_empty() { String::new() } else { format!("{prefix}.") };
        for entry in entries {
            self.value(&self.key(&prefix, &entry.key.to_str())?, entry.value, depth)?;
        }
        Ok(())
    }

    /// The key of what stands behind `prefix`.
    fn key(&self, prefix: &str, key: &str) -> Result<String, String> {
        if self.bytes.saturating_add(prefix.len() + key.len()) > MOST_KEYS {
            return Err(format!("the keys of the flat map would have more than {} MiB", MOST_KEYS >> 20));
        }
        Ok(format!("{prefix}{key}"))
    }

    fn value(&mut self, key: &str, value: AnyValue, depth: i64) -> Result<(), String> {
        self.bytes += key.len();
        match value {
            AnyValue::Map(entries) if depth < self.deepest => self.map(entries, key, depth + 1)?,
            AnyValue::Array(values) if depth < self.deepest => {
                let deeper = depth + 1 < self.deepest;
                for (place, element) in values.into_iter().enumerate() {
                    let inner = self.key(key, &format!(".{place}"))?;
                    match element {
                        AnyValue::Map(entries) if deeper => self.map(entries, &inner, depth + 2)?,
                        AnyValue::Array(values) if deeper => {
                            // The reference puts no point before the place in the inner list.
                            for (place, element) in values.into_iter().enumerate() {
                                self.value(&self.key(&inner, &place.to_string())?, element, depth + 3)?;
                            }
                        }
                        element if self.conflicts.is_some() => self.put(key, element),
                        element => self.put(&inner, element),
                    }
                    self.bytes += inner.len();
                }
            }
            value => self.put(key, value),
        }
        Ok(())
    }

    fn put(&mut self, key: &str, value: AnyValue) {
        let text = Text::from(key);
        let Some(conflicts) = &mut self.conflicts else {
            *self.flat.entry(text) = value;
            return;
        };
        let text = if self.flat.has(&text) {
            let times = conflicts.entry(key.to_owned()).or_insert(0);
            *times += 1;
            format!("{key}.{}", *times - 1).into()
        } else {
            conflicts.insert(key.to_owned(), 0);
            text
        };
        *self.flat.entry(text) = value;
    }
}
