//! Statements and conditions as they are written.

use crate::otlp::Text;

/// An editor with its arguments, and when it acts.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Statement {
    pub editor: Call,
    pub condition: Option<Condition>,
}

/// A function with its arguments; a converter may be followed by keys.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Call {
    pub name: String,
    pub at: usize,
    pub arguments: Vec<Argument>,
    pub keys: Vec<Key>,
}

/// An argument, with its name where it has one.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Argument {
    pub name: Option<String>,
    pub value: Value,
    pub at: usize,
}

/// A value.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Value {
    Nil,
    Boolean(bool),
    Integer(i64),
    Double(f64),
    Text(Text),
    Bytes(Vec<u8>),
    /// A name of an enumeration, or of a function as an argument.
    Word(String, usize),
    Path(Path),
    Call(Call),
    List(Vec<Value>),
    Map(Vec<(Text, Value)>),
    Negative(Box<Value>),
    Math(Operator, Box<Value>, Box<Value>),
}

/// What is done with two numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Operator {
    Add,
    Subtract,
    Multiply,
    Divide,
}

/// A path to a place in the telemetry.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Path {
    /// The names between the points, with the keys after each.
    pub names: Vec<(String, Vec<Key>)>,
    pub at: usize,
}

/// A key of a map, or a place in a list.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Key {
    Name(Text),
    Place(i64),
    /// What it is comes out when the statement runs.
    Value(Box<Value>),
}

impl Path {
    /// As it would be written.
    pub fn shown(&self) -> String {
        let key = |key: &Key| match key {
            Key::Name(name) => format!("[{name:?}]"),
            Key::Place(place) => format!("[{place}]"),
            Key::Value(_) => "[...]".to_owned(),
        };
        let names = self.names.iter().map(|(name, keys)| name.clone() + &keys.iter().map(key).collect::<String>());
        names.collect::<Vec<String>>().join(".")
    }
}

/// A condition.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Condition {
    Literal(bool),
    /// A converter that gives a boolean.
    Call(Call),
    Compare(Comparison, Value, Value),
    Not(Box<Condition>),
    And(Vec<Condition>),
    Or(Vec<Condition>),
}

/// How two values are compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Comparison {
    Equal,
    NotEqual,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
}

/// Something that a statement or condition names: what contexts are inferred from.
pub(super) enum Named<'a> {
    Path(&'a Path),
    Function(&'a Call),
    Word(&'a str),
}

impl Statement {
    /// Calls `take` with everything that it names.
    pub fn each_name<'a>(&'a self, take: &mut dyn FnMut(Named<'a>)) {
        self.editor.each_name(take);
        if let Some(condition) = &self.condition {
            condition.each_name(take);
        }
    }
}

impl Call {
    fn each_name<'a>(&'a self, take: &mut dyn FnMut(Named<'a>)) {
        take(Named::Function(self));
        self.arguments.iter().for_each(|argument| argument.value.each_name(take));
        each_name_of_keys(&self.keys, take);
    }
}

impl Value {
    fn each_name<'a>(&'a self, take: &mut dyn FnMut(Named<'a>)) {
        match self {
            Self::Word(word, _) => take(Named::Word(word)),
            Self::Path(path) => {
                take(Named::Path(path));
                path.names.iter().for_each(|(_, keys)| each_name_of_keys(keys, take));
            }
            Self::Call(call) => call.each_name(take),
            Self::List(values) => values.iter().for_each(|value| value.each_name(take)),
            Self::Map(entries) => entries.iter().for_each(|(_, value)| value.each_name(take)),
            Self::Negative(value) => value.each_name(take),
            Self::Math(_, left, right) => {
                left.each_name(take);
                right.each_name(take);
            }
            Self::Nil | Self::Boolean(_) | Self::Integer(_) | Self::Double(_) | Self::Text(_) | Self::Bytes(_) => {}
        }
    }
}

fn each_name_of_keys<'a>(keys: &'a [Key], take: &mut dyn FnMut(Named<'a>)) {
    for key in keys {
        if let Key::Value(value) = key {
            value.each_name(take);
        }
    }
}

impl Condition {
    /// Calls `take` with everything that it names.
    pub fn each_name<'a>(&'a self, take: &mut dyn FnMut(Named<'a>)) {
        match self {
            Self::Literal(_) => {}
            Self::Call(call) => call.each_name(take),
            Self::Compare(_, left, right) => {
                left.each_name(take);
                right.each_name(take);
            }
            Self::Not(inner) => inner.each_name(take),
            Self::And(list) | Self::Or(list) => list.iter().for_each(|inner| inner.each_name(take)),
        }
    }
}
