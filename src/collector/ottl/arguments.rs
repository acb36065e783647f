//! Arguments of functions: what kinds there are, and how a function gets at them.

use std::borrow::Cow;

use super::expression::Expression;
use super::functions::Function;
use super::place::Place;
use super::scene::Scene;
use super::value::Value;
use crate::collector::text::glob;
use crate::collector::text::go_number::{parse_double, parse_integer, truncate};
use crate::collector::text::pattern::{self, Pattern};
use crate::collector::text::value_text::as_text;
use crate::otlp::{KeyValue, Text};

/// A parameter of a function.
#[derive(Clone, Copy, Debug)]
pub(super) struct Parameter {
    /// Its name, for arguments with names.
    pub name: &'static str,
    pub kind: ArgumentKind,
    pub optional: bool,
}

/// What an argument must be. Literals are looked at when the statement is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ArgumentKind {
    /// Any value.
    Any,
    Text,
    Integer,
    Map,
    /// Anything that can be made such a value.
    TextLike,
    IntegerLike,
    DoubleLike,
    BooleanLike,
    BytesLike,
    /// A path.
    Target,
    /// A path to a map.
    MapTarget,
    /// A text that is a regular expression.
    Pattern,
    /// A text that is a pattern with `*` and `?`.
    Glob,
    /// A literal.
    LiteralText,
    LiteralInteger,
    LiteralBoolean,
    LiteralTexts,
    /// A list written in the statement.
    Texts,
    Values,
    /// Such a list, or any list.
    TextsLike,
    /// The name of a converter of one text.
    Function,
}

/// An argument, ready to be used.
#[derive(Debug)]
pub(super) enum Argument {
    Absent,
    Expression(Expression),
    Place(Place),
    Pattern(Pattern),
    Glob(glob::Glob),
    Expressions(Vec<Expression>),
    Texts(Vec<Text>),
    Text(Text),
    Integer(i64),
    Boolean(bool),
    Function(&'static Function),
}

/// The arguments of one call, with what each function needs of them. A place that does not have what is asked for is a
/// fault of this program, and an error of the statement.
#[derive(Clone, Copy)]
pub(super) struct Arguments<'a>(pub &'a [Argument]);

fn misplaced<T>(place: usize) -> Result<T, String> {
    Err(format!("argument {} is not of the kind that its function needs", place + 1))
}

fn expected(what: &str, value: &Value) -> String {
    format!("expected {what}, found {}", value.kind())
}

impl<'a> Arguments<'a> {
    fn get(&self, place: usize) -> &'a Argument {
        self.0.get(place).unwrap_or(&Argument::Absent)
    }

    /// Any value.
    pub fn value(&self, place: usize, scene: &Scene) -> Result<Value, String> {
        match self.get(place) {
            Argument::Expression(expression) => expression.evaluate(scene),
            _ => misplaced(place),
        }
    }

    /// The path that a value is read from, if it is one.
    pub fn place_of_value(&self, place: usize) -> Option<&'a Place> {
        if let Argument::Expression(Expression::Place(path)) = self.get(place) { Some(path) } else { None }
    }

    /// Text.
    pub fn text(&self, place: usize, scene: &Scene) -> Result<Text, String> {
        text(self.value(place, scene)?)
    }

    /// An integer.
    pub fn integer(&self, place: usize, scene: &Scene) -> Result<i64, String> {
        integer(&self.value(place, scene)?)
    }

    /// A map.
    pub fn map(&self, place: usize, scene: &Scene) -> Result<Vec<KeyValue>, String> {
        map(self.value(place, scene)?)
    }

    /// A path.
    pub fn place(&self, place: usize) -> Result<&'a Place, String> {
        if let Argument::Place(path) = self.get(place) { Ok(path) } else { misplaced(place) }
    }

    /// A regular expression, fixed or made anew.
    pub fn pattern(&self, place: usize, scene: &Scene) -> Result<Cow<'a, Pattern>, String> {
        match self.get(place) {
            Argument::Pattern(pattern) => Ok(Cow::Borrowed(pattern)),
            Argument::Expression(expression) => {
                let written = text(expression.evaluate(scene)?)?;
                compile_pattern(&written).map(Cow::Owned).map_err(|why| short(&written, why))
            }
            _ => misplaced(place),
        }
    }

    /// A pattern with `*` and `?`.
    pub fn glob(&self, place: usize, scene: &Scene) -> Result<Cow<'a, glob::Glob>, String> {
        match self.get(place) {
            Argument::Glob(glob) => Ok(Cow::Borrowed(glob)),
            Argument::Expression(expression) => {
                let written = text(expression.evaluate(scene)?)?;
                glob::Glob::new(&written.to_str()).map(Cow::Owned).map_err(|why| short(&written, why))
            }
            _ => misplaced(place),
        }
    }

    /// A list written in the statement.
    pub fn expressions(&self, place: usize) -> Result<&'a [Expression], String> {
        if let Argument::Expressions(list) = self.get(place) { Ok(list) } else { misplaced(place) }
    }

    /// The texts of a list: None for nil.
    pub fn texts_like(&self, place: usize, scene: &Scene) -> Result<Vec<Option<Text>>, String> {
        let list = match self.get(place) {
            Argument::Expressions(list) => return list.iter().map(|item| item.evaluate(scene)?.to_text()).collect(),
            Argument::Expression(expression) => expression.evaluate(scene)?,
            _ => return misplaced(place),
        };
        match list {
            Value::Nil => Ok(Vec::new()),
            Value::Slice(values) => Ok(values.iter().map(|value| Some(as_text(value).into())).collect()),
            Value::Texts(texts) => Ok(texts.into_iter().map(Some).collect()),
            Value::Bytes(bytes) => Ok(bytes.iter().map(|byte| Some(byte.to_string().into())).collect()),
            Value::List(values) => values.iter().map(Value::to_text).collect(),
            Value::Doubles(values) => values.into_iter().map(|value| Value::Double(value).to_text()).collect(),
            Value::Counts(values) => Ok(values.into_iter().map(|value| Some(value.to_string().into())).collect()),
            other => Err(expected("a list", &other)),
        }
    }

    /// Literal texts.
    pub fn literal_texts(&self, place: usize) -> Result<&'a [Text], String> {
        if let Argument::Texts(texts) = self.get(place) { Ok(texts) } else { misplaced(place) }
    }

    /// A literal text, which may be absent.
    pub fn literal_text(&self, place: usize) -> Option<&'a Text> {
        if let Argument::Text(text) = self.get(place) { Some(text) } else { None }
    }

    /// A literal integer, which may be absent.
    pub fn literal_integer(&self, place: usize) -> Option<i64> {
        if let Argument::Integer(value) = self.get(place) { Some(*value) } else { None }
    }

    /// A literal boolean, which may be absent.
    pub fn literal_boolean(&self, place: usize) -> Option<bool> {
        if let Argument::Boolean(value) = self.get(place) { Some(*value) } else { None }
    }

    /// A converter, which may be absent.
    pub fn function(&self, place: usize) -> Option<&'static Function> {
        if let Argument::Function(function) = self.get(place) { Some(function) } else { None }
    }

    /// Whether an argument was given.
    pub fn has(&self, place: usize) -> bool {
        !matches!(self.get(place), Argument::Absent)
    }
}

/// Why a text of the telemetry is no pattern, without the text if it is long.
fn short(written: &Text, why: String) -> String {
    if written.as_bytes().len() > LONGEST_SHOWN { format!("{} is no pattern", shown(written)) } else { why }
}

/// The regular expression of a text.
pub(super) fn compile_pattern(written: &Text) -> Result<Pattern, String> {
    let written = written.to_str();
    pattern::compile(&written).map_err(|why| format!("`{written}` is no regular expression: {why}"))
}

/// A text of the telemetry in a message: it may be long, and may be what nobody should read in a log. Whole or not at
/// all: a secret is masked if it is whole.
pub(super) fn shown(text: &Text) -> String {
    match text.as_bytes().len() {
        0..=LONGEST_SHOWN => format!("{text:?}"),
        length => format!("a text of {length} bytes"),
    }
}

const LONGEST_SHOWN: usize = 40;

fn text(value: Value) -> Result<Text, String> {
    if let Value::Text(text) = value { Ok(text) } else { Err(expected("text", &value)) }
}

fn integer(value: &Value) -> Result<i64, String> {
    if let Value::Int(value) = value { Ok(*value) } else { Err(expected("an integer", value)) }
}

pub(super) fn map(value: Value) -> Result<Vec<KeyValue>, String> {
    if let Value::Map(entries) = value { Ok(entries) } else { Err(expected("a map", &value)) }
}

/// The integer of a value; None for nil.
pub(super) fn integer_like(value: Value) -> Result<Option<i64>, String> {
    Ok(Some(match value {
        Value::Nil => return Ok(None),
        Value::Int(value) => value,
        Value::Double(value) => truncate(value),
        Value::Bool(value) => value.into(),
        Value::Text(text) => {
            parse_integer(&text.to_str()).ok_or_else(|| format!("{} is no integer of 64 bits", shown(&text)))?
        }
        other => return Err(expected("an integer, or what can be made one", &other)),
    }))
}

/// The double of a value; None for nil.
pub(super) fn double_like(value: Value) -> Result<Option<f64>, String> {
    Ok(Some(match value {
        Value::Nil => return Ok(None),
        Value::Int(value) => value as f64,
        Value::Double(value) => value,
        Value::Bool(value) => f64::from(u8::from(value)),
        Value::Text(text) => parse_double(&text.to_str()).ok_or_else(|| format!("{} is no double", shown(&text)))?,
        other => return Err(expected("a double, or what can be made one", &other)),
    }))
}

/// The boolean of a value; None for nil.
pub(super) fn boolean_like(value: Value) -> Result<Option<bool>, String> {
    Ok(Some(match value {
        Value::Nil => return Ok(None),
        Value::Bool(value) => value,
        Value::Int(value) => value != 0,
        Value::Double(value) => value != 0.0,
        Value::Text(text) => match text.as_bytes() {
            b"1" | b"t" | b"T" | b"true" | b"True" | b"TRUE" => true,
            b"0" | b"f" | b"F" | b"false" | b"False" | b"FALSE" => false,
            _ => return Err(format!("{} is no boolean", shown(&text))),
        },
        other => return Err(expected("a boolean, or what can be made one", &other)),
    }))
}

/// The bytes of a value, numbers with the highest byte first; None for nil.
pub(super) fn bytes_like(value: Value) -> Result<Option<Vec<u8>>, String> {
    Ok(Some(match value {
        Value::Nil => return Ok(None),
        Value::Bytes(bytes) => bytes.to_vec(),
        Value::Text(text) => text.as_bytes().to_vec(),
        Value::Int(value) => value.to_be_bytes().to_vec(),
        Value::Double(value) => value.to_bits().to_be_bytes().to_vec(),
        Value::Bool(value) => vec![u8::from(value)],
        other => return Err(expected("bytes, or what can be made bytes", &other)),
    }))
}

impl ArgumentKind {
    /// Whether a literal can be such an argument.
    pub fn check(self, literal: &Value) -> Result<(), String> {
        let value = literal.clone();
        match self {
            Self::Text => text(value).map(drop),
            Self::Integer => integer(literal).map(drop),
            Self::Map => map(value).map(drop),
            Self::TextLike => value.to_text().map(drop),
            Self::IntegerLike => integer_like(value).map(drop),
            Self::DoubleLike => double_like(value).map(drop),
            Self::BooleanLike => boolean_like(value).map(drop),
            Self::BytesLike => bytes_like(value).map(drop),
            _ => Ok(()),
        }
    }
}
