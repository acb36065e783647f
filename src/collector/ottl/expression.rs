//! Values while a statement runs.

use super::arguments::Argument;
use super::functions::Function;
use super::keys;
pub(super) use super::keys::Key;
use super::place::Place;
use super::scene::Scene;
use super::syntax::{Comparison, Operator};
use super::value::{Value, compare};
use crate::otlp::{KeyValue, Text};

/// Something that has a value when a statement runs.
#[derive(Debug)]
pub(super) enum Expression {
    Literal(Value),
    Place(Place),
    List(Vec<Expression>),
    Map(Vec<(Text, Expression)>),
    Negative(Box<Expression>),
    Math(Operator, Box<(Expression, Expression)>),
    Call(Call),
}

/// A function with its arguments, and keys into its result.
#[derive(Debug)]
pub(super) struct Call {
    pub function: &'static Function,
    pub arguments: Vec<Argument>,
    pub keys: Vec<Key>,
}

impl Expression {
    /// Its value; why it has none.
    pub fn evaluate(&self, scene: &Scene) -> Result<Value, String> {
        match self {
            Self::Literal(value) => Ok(value.clone()),
            Self::Place(place) => scene.read(place),
            Self::List(elements) => {
                elements.iter().map(|element| element.evaluate(scene)).collect::<Result<_, _>>().map(Value::List)
            }
            Self::Map(entries) => {
                let entry = |(key, value): &(Text, Self)| {
                    Ok(KeyValue { key: key.clone(), value: value.evaluate(scene)?.into_any()? })
                };
                entries.iter().map(entry).collect::<Result<_, String>>().map(Value::Map)
            }
            Self::Negative(inner) => match inner.evaluate(scene)? {
                Value::Int(value) => Ok(Value::Int(value.wrapping_neg())),
                Value::Double(value) => Ok(Value::Double(-value)),
                other => Err(format!("{} has no negative", other.kind())),
            },
            Self::Math(operator, sides) => calculate(*operator, sides.0.evaluate(scene)?, sides.1.evaluate(scene)?),
            Self::Call(call) => call.evaluate(scene),
        }
    }

    /// The value, if it is the same every time.
    pub fn literal(&self) -> Option<&Value> {
        if let Self::Literal(value) = self { Some(value) } else { None }
    }
}

impl Call {
    /// What a converter gives.
    pub fn evaluate(&self, scene: &Scene) -> Result<Value, String> {
        let value = self.function.convert(&self.arguments, scene)?;
        if self.keys.is_empty() {
            return Ok(value);
        }
        keys::read_result(value, &Key::resolve_all(&self.keys, scene))
    }
}

/// Integers wrap; an integer and a double give a double; times and durations are added and subtracted.
fn calculate(operator: Operator, left: Value, right: Value) -> Result<Value, String> {
    use Operator::{Add, Divide, Multiply, Subtract};
    let doubles = |left: f64, right: f64| match operator {
        Add => Ok(Value::Double(left + right)),
        Subtract => Ok(Value::Double(left - right)),
        Multiply => Ok(Value::Double(left * right)),
        Divide if right == 0.0 => Err("a division by zero".to_owned()),
        Divide => Ok(Value::Double(left / right)),
    };
    match (left, right) {
        (Value::Int(left), Value::Int(right)) => match operator {
            Add => Ok(Value::Int(left.wrapping_add(right))),
            Subtract => Ok(Value::Int(left.wrapping_sub(right))),
            Multiply => Ok(Value::Int(left.wrapping_mul(right))),
            Divide if right == 0 => Err("a division by zero".to_owned()),
            Divide => Ok(Value::Int(left.wrapping_div(right))),
        },
        (Value::Int(left), Value::Double(right)) => doubles(left as f64, right),
        (Value::Double(left), Value::Int(right)) => doubles(left, right as f64),
        (Value::Double(left), Value::Double(right)) => doubles(left, right),
        (Value::Time(left), Value::Time(right)) if operator == Subtract => {
            Ok(Value::Duration(left.saturating_sub(right)))
        }
        (Value::Time(time), Value::Duration(duration)) if operator == Add => {
            Ok(Value::Time(time.wrapping_add(duration)))
        }
        (Value::Duration(duration), Value::Time(time)) if operator == Add => {
            Ok(Value::Time(time.wrapping_add(duration)))
        }
        (Value::Time(time), Value::Duration(duration)) if operator == Subtract => {
            Ok(Value::Time(time.wrapping_sub(duration)))
        }
        (Value::Duration(left), Value::Duration(right)) if operator == Add => {
            Ok(Value::Duration(left.wrapping_add(right)))
        }
        (Value::Duration(left), Value::Duration(right)) if operator == Subtract => {
            Ok(Value::Duration(left.wrapping_sub(right)))
        }
        (left, right) => Err(format!("{} and {} cannot be calculated with here", left.kind(), right.kind())),
    }
}

/// A condition while a statement runs.
#[derive(Debug)]
pub(super) enum Condition {
    Literal(bool),
    Call(Call),
    Compare(Comparison, Expression, Expression),
    Not(Box<Condition>),
    And(Vec<Condition>),
    Or(Vec<Condition>),
}

impl Condition {
    /// Whether it holds; later parts are not looked at once that is certain.
    pub fn holds(&self, scene: &Scene) -> Result<bool, String> {
        match self {
            Self::Literal(value) => Ok(*value),
            Self::Call(call) => match call.evaluate(scene)? {
                Value::Bool(value) => Ok(value),
                other => Err(format!("`{}` gave {}, not a boolean", call.function.name, other.kind())),
            },
            Self::Compare(comparison, left, right) => {
                Ok(compare(*comparison, &left.evaluate(scene)?, &right.evaluate(scene)?))
            }
            Self::Not(inner) => inner.holds(scene).map(|holds| !holds),
            Self::And(list) => {
                for inner in list {
                    if !inner.holds(scene)? {
                        return Ok(false);
                    }
                }
                Ok(true)
            }
            Self::Or(list) => {
                for inner in list {
                    if inner.holds(scene)? {
                        return Ok(true);
                    }
                }
                Ok(false)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn integers_doubles_times_and_durations() {
        use Operator::{Add, Divide, Multiply, Subtract};
        let int = Value::Int;
        assert_eq!(calculate(Divide, int(7), int(2)), Ok(int(3)));
        assert_eq!(calculate(Divide, int(i64::MIN), int(-1)), Ok(int(i64::MIN)));
        assert_eq!(calculate(Add, int(i64::MAX), int(1)), Ok(int(i64::MIN)));
        assert_eq!(calculate(Multiply, int(2), Value::Double(1.5)), Ok(Value::Double(3.0)));
        assert_eq!(calculate(Subtract, Value::Time(5), Value::Time(3)), Ok(Value::Duration(2)));
        assert_eq!(calculate(Add, Value::Time(5), Value::Duration(3)), Ok(Value::Time(8)));
        for (operator, left, right) in [
            (Divide, int(1), int(0)),
            (Divide, Value::Double(1.0), int(0)),
            (Add, Value::Time(1), Value::Time(1)),
            (Add, Value::Text("a".into()), int(1)),
            (Add, int(1), Value::Nil),
        ] {
            assert!(calculate(operator, left, right).is_err());
        }
    }
}
