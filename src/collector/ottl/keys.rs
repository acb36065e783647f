//! Ways into maps and lists: `["key"]` and `[0]`, one after the other.

use super::arguments::shown;
use super::expression::Expression;
use super::scene::Scene;
use super::value::Value;
use crate::diag::counted;
use crate::otlp::{AnyValue, KeyValue, Text};

/// The longest list that a place in an empty value makes.
const LONGEST: usize = 10_000;

/// A key as the statement has it.
#[derive(Debug)]
pub(super) enum Key {
    Name(Text),
    Place(i64),
    Expression(Expression),
}

/// A key while the statement runs; what could not be found out is an error only when it is needed.
#[derive(Debug)]
pub(super) enum Resolved {
    Name(Text),
    Place(i64),
    /// Neither text nor an integer.
    Wrong(String),
}

impl Key {
    /// What it is now.
    pub fn resolve(&self, scene: &Scene) -> Resolved {
        match self {
            Self::Name(name) => Resolved::Name(name.clone()),
            Self::Place(place) => Resolved::Place(*place),
            Self::Expression(expression) => match expression.evaluate(scene) {
                Ok(Value::Text(name)) => Resolved::Name(name),
                Ok(Value::Int(place)) => Resolved::Place(place),
                Ok(other) => Resolved::Wrong(format!("a key is text or an integer, not {}", other.kind())),
                Err(failure) => Resolved::Wrong(failure),
            },
        }
    }

    /// What all of them are now.
    pub fn resolve_all(keys: &[Self], scene: &Scene) -> Vec<Resolved> {
        keys.iter().map(|key| key.resolve(scene)).collect()
    }
}

/// The keys of what takes those only that stand in the statement.
pub(super) fn literal(keys: &[Key]) -> Result<Vec<Resolved>, String> {
    let one = |key: &Key| match key {
        Key::Name(name) => Ok(Resolved::Name(name.clone())),
        Key::Place(place) => Ok(Resolved::Place(*place)),
        Key::Expression(_) => Err("the key must be a text in quotes".to_owned()),
    };
    keys.iter().map(one).collect()
}

impl Resolved {
    /// The key of a map.
    pub fn name(&self) -> Result<&Text, String> {
        match self {
            Self::Name(name) => Ok(name),
            Self::Place(place) => Err(format!("a map has no place {place}, its keys are text")),
            Self::Wrong(why) => Err(why.clone()),
        }
    }

    /// The place in a list of this length.
    pub fn place(&self, length: usize) -> Result<usize, String> {
        match self {
            Self::Place(place) => {
                let inside = usize::try_from(*place).ok().filter(|place| *place < length);
                inside.ok_or_else(|| {
                    format!("the list has {}, there is no place {place}", counted(length, "element", "elements"))
                })
            }
            Self::Name(name) => Err(format!("a list has no key {}, its places are integers", shown(name))),
            Self::Wrong(why) => Err(why.clone()),
        }
    }
}

/// What is found at the keys in a value of the telemetry; nil where a map has no such key.
pub(super) fn read(mut value: &AnyValue, keys: &[Resolved]) -> Result<Value, String> {
    for key in keys {
        value = match value {
            AnyValue::Map(entries) => {
                let name = key.name()?;
                match entries.iter().find(|entry| entry.key == *name) {
                    Some(entry) => &entry.value,
                    None => return Ok(Value::Nil),
                }
            }
            AnyValue::Array(values) => &values[key.place(values.len())?],
            other => return Err(format!("{} has no keys", Value::from(other.clone()).kind())),
        };
    }
    Ok(value.clone().into())
}

/// What is found at the keys in the result of a converter; a missing key is an error there.
pub(super) fn read_result(mut value: Value, keys: &[Resolved]) -> Result<Value, String> {
    for key in keys {
        value = match value {
            Value::Map(entries) => {
                let name = key.name()?;
                let found = entries.into_iter().find(|entry| entry.key == *name);
                found.ok_or_else(|| format!("the map has no key {}", shown(name)))?.value.into()
            }
            Value::Slice(mut values) => {
                let place = key.place(values.len())?;
                values.swap_remove(place).into()
            }
            Value::List(mut values) => {
                let place = key.place(values.len())?;
                values.swap_remove(place)
            }
            Value::Texts(mut texts) => {
                let place = key.place(texts.len())?;
                Value::Text(texts.swap_remove(place))
            }
            other => return Err(format!("{} has no keys", other.kind())),
        };
    }
    Ok(value)
}

/// Puts a value at the keys, of which there is at least one, in a map; makes what is missing on the way.
pub(super) fn write_map(map: &mut Vec<KeyValue>, keys: &[Resolved], value: Value) -> Result<(), String> {
    let Some((first, rest)) = keys.split_first() else { return Err("a map without a key".to_owned()) };
    write(entry(map, first.name()?), rest, value)
}

/// Puts a value at the keys in a value of the telemetry; makes what is missing on the way.
pub(super) fn write(mut current: &mut AnyValue, keys: &[Resolved], value: Value) -> Result<(), String> {
    for key in keys {
        let made = *current == AnyValue::Empty;
        if made {
            *current = match key {
                Resolved::Name(_) => AnyValue::Map(Vec::new()),
                Resolved::Place(place) => {
                    let place = usize::try_from(*place).unwrap_or(0);
                    if place >= LONGEST {
                        return Err(format!("the place {place} is too far into an empty list"));
                    }
                    AnyValue::Array(vec![AnyValue::Empty; place + 1])
                }
                Resolved::Wrong(why) => return Err(why.clone()),
            };
        }
        current = match current {
            AnyValue::Map(entries) => entry(entries, key.name()?),
            AnyValue::Array(values) => {
                // Of a list that was made for the key, the last element is meant, even by a negative place.
                let place = if made { values.len() - 1 } else { key.place(values.len())? };
                &mut values[place]
            }
            other => return Err(format!("{} has no keys", Value::from(other.clone()).kind())),
        };
    }
    value.store(current)
}

/// The value of the first entry of this name, which is added if there is none.
pub(super) fn entry<'a>(map: &'a mut Vec<KeyValue>, name: &Text) -> &'a mut AnyValue {
    let place = map.iter().position(|entry| entry.key == *name).unwrap_or_else(|| {
        map.push(KeyValue { key: name.clone(), value: AnyValue::Empty });
        map.len() - 1
    });
    &mut map[place].value
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name(name: &str) -> Resolved {
        Resolved::Name(name.into())
    }

    #[test]
    fn what_is_missing_on_the_way_is_made() {
        let mut map = Vec::new();
        let int = Value::Int;
        write_map(&mut map, &[name("a"), name("b"), Resolved::Place(2)], int(1)).expect("writes");
        let list = AnyValue::Array(vec![AnyValue::Empty, AnyValue::Empty, AnyValue::Int(1)]);
        assert_eq!(map, [KeyValue::new("a", AnyValue::Map(vec![KeyValue::new("b", list)]))]);
        write_map(&mut map, &[name("a"), name("b"), Resolved::Place(0)], int(2)).expect("writes");
        let at = |keys: &[Resolved]| read(&map[0].value, keys);
        assert_eq!(at(&[name("b"), Resolved::Place(0)]), Ok(Value::Int(2)));
        assert_eq!(at(&[name("nope")]), Ok(Value::Nil));
        for keys in [&[name("b"), Resolved::Place(3)], &[name("b"), Resolved::Place(-1)], &[name("b"), name("x")]] {
            assert!(at(keys).is_err(), "{keys:?}");
        }
        assert!(write_map(&mut map, &[name("a"), Resolved::Place(0)], int(1)).is_err());
        // The key that was made before the failure stays, as in the reference.
        assert!(write_map(&mut map, &[name("id")], Value::TraceId([1; 16])).is_err());
        assert_eq!(map[1], KeyValue::new("id", AnyValue::Empty));
        assert!(write_map(&mut map, &[name("id"), Resolved::Place(1 << 40)], int(1)).is_err());
        for (place, taken) in [(10_000, false), (9_999, true)] {
            let written = write_map(&mut Vec::new(), &[name("far"), Resolved::Place(place)], int(1));
            assert_eq!(written.is_ok(), taken, "{place}");
        }
        write_map(&mut map, &[name("id"), Resolved::Place(-3)], int(1)).expect("writes");
        assert_eq!(map[1], KeyValue::new("id", AnyValue::Array(vec![AnyValue::Int(1)])));
    }
}
