//! From what is written to what runs: names become functions, places and numbers; literals are checked. All that is wrong
//! with a statement is found, not the first thing alone.

use super::arguments::{Argument, ArgumentKind, Parameter, compile_pattern};
use super::context::{Level, Naming};
use super::expression::{Call, Condition, Expression};
use super::functions::{self, Function, is_editor};
use super::keys::Key;
use super::place::{self, Field, Place};
use super::syntax::{self, Value as Written};
use super::value::{Value, compare};
use super::{Fault, Faults};
use crate::collector::text::glob::Glob;
use crate::collector::text::letter_case::camel;
use crate::otlp::Text;

/// What the names in a statement mean.
#[derive(Clone, Copy)]
pub(super) struct Compiler {
    pub context: Level,
    pub naming: Naming,
    /// Converters that only some conditions have.
    pub extra: &'static [Function],
}

/// Conditions of which some may be certain: one that decides (`deciding`) decides for all, even where another one fails.
fn folded(mut list: Vec<Condition>, deciding: bool, joined: fn(Vec<Condition>) -> Condition) -> Condition {
    if list.iter().any(|condition| matches!(condition, Condition::Literal(value) if *value == deciding)) {
        return Condition::Literal(deciding);
    }
    list.retain(|condition| !matches!(condition, Condition::Literal(_)));
    match list.len() {
        0 => Condition::Literal(!deciding),
        1 => list.remove(0),
        _ => joined(list),
    }
}

/// An editor with its arguments, and when it acts.
#[derive(Debug)]
pub(super) struct Statement {
    pub editor: Call,
    pub condition: Option<Condition>,
}

impl Compiler {
    /// A statement.
    pub fn statement(&self, written: &syntax::Statement) -> Result<Statement, Faults> {
        let condition = written.condition.as_ref().map(|condition| self.condition(condition)).transpose();
        let (editor, condition) = Faults::both(self.editor(&written.editor), condition)?;
        Ok(Statement { editor, condition })
    }

    /// A condition.
    pub fn condition(&self, written: &syntax::Condition) -> Result<Condition, Faults> {
        let all = |list: &[syntax::Condition]| Faults::all(list.iter().map(|inner| self.condition(inner)));
        Ok(match written {
            syntax::Condition::Literal(value) => Condition::Literal(*value),
            syntax::Condition::Call(call) => Condition::Call(self.converter(call)?),
            syntax::Condition::Not(inner) => match self.condition(inner)? {
                Condition::Literal(value) => Condition::Literal(!value),
                inner => Condition::Not(Box::new(inner)),
            },
            syntax::Condition::And(list) => folded(all(list)?, false, Condition::And),
            syntax::Condition::Or(list) => folded(all(list)?, true, Condition::Or),
            syntax::Condition::Compare(comparison, left, right) => {
                let (left, right) = Faults::both(self.value(left), self.value(right))?;
                match (left.literal(), right.literal()) {
                    (Some(left), Some(right)) => Condition::Literal(compare(*comparison, left, right)),
                    _ => Condition::Compare(*comparison, left, right),
                }
            }
        })
    }

    fn value(&self, written: &Written) -> Result<Expression, Faults> {
        Ok(Expression::Literal(match written {
            Written::Nil => Value::Nil,
            Written::Boolean(value) => Value::Bool(*value),
            Written::Integer(value) => Value::Int(*value),
            Written::Double(value) => Value::Double(*value),
            Written::Text(text) => Value::Text(text.clone()),
            Written::Bytes(bytes) => Value::Bytes(bytes.clone().into()),
            Written::Word(word, at) => Value::Int(self.word(word, *at)?),
            Written::Path(path) => return self.place(path).map(Expression::Place),
            Written::Call(call) => return self.converter(call).map(Expression::Call),
            Written::Negative(inner) => return Ok(Expression::Negative(Box::new(self.value(inner)?))),
            Written::Math(operator, left, right) => {
                let sides = Faults::both(self.value(left), self.value(right))?;
                return Ok(Expression::Math(*operator, Box::new(sides)));
            }
            Written::List(elements) => {
                let elements: Vec<Expression> = Faults::all(elements.iter().map(|value| self.value(value)))?;
                match elements.iter().map(|element| element.literal().cloned()).collect::<Option<Vec<Value>>>() {
                    Some(values) => Value::List(values),
                    None => return Ok(Expression::List(elements)),
                }
            }
            Written::Map(entries) => return self.map(entries),
        }))
    }

    fn word(&self, word: &str, at: usize) -> Result<i64, Fault> {
        self.context.enumeration(word).ok_or_else(|| {
            let what = format!("`{word}` is no name of a number that `{}` knows", self.context.name());
            Fault::new(at, what).hint("names are such as SPAN_KIND_SERVER, STATUS_CODE_ERROR, SEVERITY_NUMBER_INFO, METRIC_DATA_TYPE_SUM, AGGREGATION_TEMPORALITY_DELTA, FLAG_NONE; texts stand in quotes")
        })
    }

    fn map(&self, entries: &[(Text, Written)]) -> Result<Expression, Faults> {
        let mut compiled: Vec<(Text, Expression)> = Vec::new();
        let values: Vec<Expression> = Faults::all(entries.iter().map(|(_, value)| self.value(value)))?;
        for ((key, _), value) in entries.iter().zip(values) {
            match compiled.iter_mut().find(|(other, _)| other == key) {
                Some(other) => other.1 = value,
                None => compiled.push((key.clone(), value)),
            }
        }
        let map = Expression::Map(compiled);
        let Expression::Map(entries) = &map else { return Ok(map) };
        if entries.iter().any(|(_, value)| value.literal().is_none()) {
            return Ok(map);
        }
        map.evaluate(&super::scene::Scene::default())
            .map(Expression::Literal)
            .map_err(|what| Fault::nowhere(what).into())
    }

    fn place(&self, path: &syntax::Path) -> Result<Place, Faults> {
        match place::resolve(path, self.context, self.naming) {
            Ok((level, field, keys)) => Ok(Place { level, field, keys: self.keys(keys)? }),
            Err(fault) => {
                let keys = Faults::all::<_, Vec<_>>(path.names.iter().map(|(_, keys)| self.keys(keys)));
                Faults::both(Err(fault.into()), keys).map(|(place, _)| place)
            }
        }
    }

    fn keys(&self, written: &[syntax::Key]) -> Result<Vec<Key>, Faults> {
        let key = |key: &syntax::Key| {
            Ok(match key {
                syntax::Key::Name(name) => Key::Name(name.clone()),
                syntax::Key::Place(place) => Key::Place(*place),
                syntax::Key::Value(value) => match self.value(value)? {
                    Expression::Literal(Value::Text(name)) => Key::Name(name),
                    Expression::Literal(Value::Int(place)) => Key::Place(place),
                    other => Key::Expression(other),
                },
            })
        };
        Faults::all(written.iter().map(key))
    }

    fn editor(&self, written: &syntax::Call) -> Result<Call, Faults> {
        if !is_editor(&written.name) {
            let what = format!("`{}` is no editor: those begin with a small letter", written.name);
            return self.refuse(written, Fault::new(written.at, what));
        }
        if !written.keys.is_empty() {
            let what = format!("`{}` gives no value that could have keys", written.name);
            return self.refuse(written, Fault::new(written.at, what));
        }
        self.call(written)
    }

    fn converter(&self, written: &syntax::Call) -> Result<Call, Faults> {
        if is_editor(&written.name) {
            let what = format!("`{}` is no converter: those begin with a capital letter", written.name);
            return self.refuse(written, Fault::new(written.at, what));
        }
        self.call(written)
    }

    /// The fault of a call, and what else is wrong in it.
    fn refuse(&self, written: &syntax::Call, fault: Fault) -> Result<Call, Faults> {
        // A word may be the name of a converter.
        let values = written.arguments.iter().map(|argument| &argument.value);
        let values = values.filter(|value| !matches!(value, Written::Word(..)));
        let values = Faults::all::<_, Vec<_>>(values.map(|value| self.value(value)));
        let inner = Faults::both(values, self.keys(&written.keys));
        Faults::both(Err(fault.into()), inner).map(|(call, _)| call)
    }

    fn call(&self, written: &syntax::Call) -> Result<Call, Faults> {
        let Some(function) = functions::find(&written.name, self.context, self.extra) else {
            return self.refuse(written, functions::unknown(written, self.context));
        };
        let arguments = self.arguments(function, written).and_then(|arguments| {
            let checked = function.check(&arguments);
            checked.map_err(|what| Fault::new(written.at, format!("`{}`: {what}", written.name)))?;
            Ok(arguments)
        });
        let (arguments, keys) = Faults::both(arguments, self.keys(&written.keys))?;
        Ok(Call { function, arguments, keys })
    }

    fn arguments(&self, function: &'static Function, written: &syntax::Call) -> Result<Vec<Argument>, Faults> {
        let name = &written.name;
        if function.parameters.is_empty() {
            // The reference does not look at them.
            return Ok(Vec::new());
        }
        let usage = || format!("it is written `{}`", function.usage());
        let mut named = false;
        let mut find = |position: usize, argument: &syntax::Argument| {
            let fault = |what: String| Err(Fault::new(argument.at, what).hint(usage()));
            named |= argument.name.is_some();
            match &argument.name {
                Some(wanted) => {
                    let found = function.parameters.iter().position(|known| camel(known.name) == camel(wanted));
                    found.map_or_else(|| fault(format!("`{name}` has no parameter `{wanted}`")), Ok)
                }
                None if named => fault("an argument without a name stands after one with a name".to_owned()),
                None => Ok(position),
            }
        };
        let takes = function.parameters.len();
        let read = |(position, argument): (usize, &syntax::Argument)| {
            if position >= takes {
                let what = format!("`{name}` takes {takes} arguments at most, found {}", written.arguments.len());
                return Err(Fault::new(argument.at, what).hint(usage()).into());
            }
            let place = find(position, argument)?;
            let read = self.argument(&function.parameters[place], &argument.value);
            let read = read.map_err(|wrong| wrong.map(|fault| fault.or_at(argument.at).hint_unless(usage)))?;
            Ok((place, read))
        };
        // The first one too many says it for all.
        let given = written.arguments.iter().take(takes + 1).enumerate().map(read);
        let mut arguments: Vec<Argument> = function.parameters.iter().map(|_| Argument::Absent).collect();
        for (place, read) in Faults::all::<_, Vec<_>>(given)? {
            arguments[place] = read;
        }
        let mut missing = function.parameters.iter().zip(&arguments);
        match missing.find(|(parameter, argument)| !parameter.optional && matches!(argument, Argument::Absent)) {
            Some((parameter, _)) => {
                let what = format!("`{name}` lacks its argument `{}`", parameter.name);
                Err(Fault::new(written.at, what).hint(usage()).into())
            }
            None => Ok(arguments),
        }
    }

    fn argument(&self, parameter: &Parameter, written: &Written) -> Result<Argument, Faults> {
        let must_be = |what: &str| Err(Fault::nowhere(format!("`{}` must be {what}", parameter.name)).into());
        match (parameter.kind, written) {
            (ArgumentKind::Target | ArgumentKind::MapTarget, Written::Path(path)) => {
                let place = self.place(path)?;
                self.check_target(&place, path)?;
                Ok(Argument::Place(place))
            }
            (ArgumentKind::Target | ArgumentKind::MapTarget, _) => must_be("a path"),
            (ArgumentKind::LiteralText, Written::Text(text)) => Ok(Argument::Text(text.clone())),
            (ArgumentKind::LiteralText, _) => must_be("a text in quotes"),
            // A sign makes it a calculation.
            (ArgumentKind::LiteralInteger, Written::Integer(value @ 0..)) => Ok(Argument::Integer(*value)),
            (ArgumentKind::LiteralInteger, _) => must_be("a whole number from 0 on"),
            (ArgumentKind::LiteralBoolean, Written::Boolean(value)) => Ok(Argument::Boolean(*value)),
            (ArgumentKind::LiteralBoolean, _) => must_be("`true` or `false`"),
            (ArgumentKind::LiteralTexts, Written::List(elements)) => {
                let text =
                    |element: &Written| if let Written::Text(text) = element { Some(text.clone()) } else { None };
                match elements.iter().map(text).collect() {
                    Some(texts) => Ok(Argument::Texts(texts)),
                    None => must_be("a list of texts in quotes"),
                }
            }
            (ArgumentKind::LiteralTexts, _) => must_be("a list of texts in quotes"),
            (ArgumentKind::Texts, Written::List(elements)) => self.list(elements, ArgumentKind::Text),
            (ArgumentKind::TextsLike, Written::List(elements)) => self.list(elements, ArgumentKind::TextLike),
            (ArgumentKind::Values, Written::List(elements)) => self.list(elements, ArgumentKind::Any),
            (ArgumentKind::Texts | ArgumentKind::Values, _) => must_be("a list in brackets"),
            (ArgumentKind::Function, Written::Word(word, at)) => {
                let found = functions::find(word, self.context, self.extra);
                let found = found.filter(|function| function.takes_one_text());
                let hint = "such as SHA256, ToLowerCase, ToUpperCase";
                let unknown = || Fault::new(*at, format!("`{word}` is no converter of one text")).hint(hint);
                found.map(Argument::Function).ok_or_else(|| unknown().into())
            }
            (ArgumentKind::Function, _) => must_be("the name of a converter, such as SHA256"),
            (kind, written) => {
                let expression = self.value(written)?;
                let Some(literal) = expression.literal() else { return Ok(Argument::Expression(expression)) };
                match (kind, literal) {
                    (ArgumentKind::Pattern, Value::Text(pattern)) => {
                        compile_pattern(pattern).map(Argument::Pattern).map_err(|what| Fault::nowhere(what).into())
                    }
                    (ArgumentKind::Glob, Value::Text(pattern)) => {
                        Glob::new(&pattern.to_str()).map(Argument::Glob).map_err(|what| Fault::nowhere(what).into())
                    }
                    (ArgumentKind::Pattern | ArgumentKind::Glob, _) => must_be("text"),
                    _ => match kind.check(literal) {
                        Ok(()) => Ok(Argument::Expression(expression)),
                        Err(why) => Err(Fault::nowhere(format!("`{}`: {why}", parameter.name)).into()),
                    },
                }
            }
        }
    }

    fn list(&self, elements: &[Written], kind: ArgumentKind) -> Result<Argument, Faults> {
        let element = |written: &Written| {
            let expression = self.value(written)?;
            if let Some(literal) = expression.literal() {
                kind.check(literal).map_err(Fault::nowhere)?;
            }
            Ok(expression)
        };
        Faults::all(elements.iter().map(element)).map(Argument::Expressions)
    }

    /// The list that an inner context goes through cannot be exchanged meanwhile.
    fn check_target(&self, place: &Place, path: &syntax::Path) -> Result<(), Fault> {
        let walked = match self.context {
            Level::SpanEvent => place.level == Level::Span && matches!(place.field, Field::Messages(11, _)),
            Level::DataPoint => place.level == Level::Metric && place.field == Field::DataPoints,
            _ => false,
        };
        if walked {
            let what = format!("`{}` cannot be changed from `{}`", path.shown(), self.context.name());
            return Err(Fault::new(path.at, what));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::super::{ErrorMode, Group, Level, Style};
    use crate::otlp::Signal;

    #[test]
    fn the_list_that_is_gone_through_is_not_exchanged_meanwhile() {
        for (signal, level, statement) in [
            (Signal::Traces, Level::SpanEvent, "set(span.events, nil)"),
            (Signal::Metrics, Level::DataPoint, "set(metric.data_points, nil)"),
        ] {
            let compile = |level| Group::compile(signal, Style::Given(level), &[statement], &[], ErrorMode::Ignore);
            let wrong = compile(level).expect_err(statement);
            assert!(wrong[0].fault.what.contains("cannot be changed from"), "{wrong:?}");
            let outer = if level == Level::SpanEvent { Level::Span } else { Level::Metric };
            assert!(compile(outer).is_ok(), "{statement}");
        }
    }
}
