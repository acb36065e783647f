//! The expanded configuration as a tree that remembers its lines and source texts.
//!
//! A scalar has two faces, as in the reference collector: a typed value, and the text that it was written as. A target
//! that wants text takes a number only if it stood in a whole `${env:X}`, and then exactly as the variable has it.

/// One value of the configuration.
#[derive(Clone, Debug, PartialEq)]
pub struct Node {
    /// Counted from 1: where the value begins in the file.
    pub line: u32,
    /// The typed value.
    pub value: Value,
    /// A scalar's text before it was typed.
    pub text: Option<String>,
    /// Whether the whole value came out of a reference.
    pub referenced: bool,
}

/// A typed value, by the rules of YAML 1.1 as Go reads it (`0123` is octal, `yes` is text).
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    /// Nothing: empty, `null`, `~`, an unset variable.
    Null,
    /// `true`, `false`.
    Boolean(bool),
    /// A signed integer.
    Integer(i64),
    /// A floating point number, NaN and infinities included.
    Double(f64),
    /// Text.
    Text(String),
    /// Typed by YAML as something that no component takes (a date, an integer above the signed range).
    Untakable(&'static str),
    /// A list.
    List(Vec<Node>),
    /// A map, in the order of the file.
    Map(Vec<Entry>),
}

/// A key with its value.
#[derive(Clone, Debug, PartialEq)]
pub struct Entry {
    /// The key, as it is written.
    pub key: String,
    /// The line of the key.
    pub line: u32,
    /// Its value.
    pub node: Node,
}

impl Node {
    /// A value that stands at `line`.
    #[must_use]
    pub fn new(line: u32, value: Value) -> Self {
        let text = if let Value::Text(text) = &value { Some(text.clone()) } else { None };
        Self { line, value, text, referenced: false }
    }

    /// The text for a target that wants text; `None` if it is something else.
    #[must_use]
    pub fn as_text(&self) -> Option<&str> {
        match &self.value {
            Value::Text(text) => Some(text),
            Value::Null if self.referenced => Some(""),
            _ if self.referenced => self.text.as_deref(),
            _ => None,
        }
    }

    /// The text of any scalar as it was written, numbers included (for targets where YAML's type does not matter).
    #[must_use]
    pub fn as_written(&self) -> Option<&str> {
        self.as_text().or(self.text.as_deref())
    }

    /// The line of what stands at a path of keys, or of the last key of it that there is.
    #[must_use]
    pub fn line_at(&self, keys: &[&str]) -> u32 {
        let mut node = self;
        let mut line = self.line;
        for key in keys {
            let Value::Map(entries) = &node.value else { break };
            let Some(entry) = entries.iter().find(|entry| entry.key == *key) else { break };
            (node, line) = (&entry.node, entry.line);
        }
        line
    }

    /// What it is, for messages.
    #[must_use]
    pub fn kind(&self) -> &'static str {
        match self.value {
            Value::Null => "nothing",
            Value::Boolean(_) => "a boolean",
            Value::Integer(_) => "an integer",
            Value::Double(_) => "a number",
            Value::Text(_) => "text",
            Value::Untakable(what) => what,
            Value::List(_) => "a list",
            Value::Map(_) => "a map",
        }
    }

    /// The entries of a map; none for null.
    #[must_use]
    pub fn entries(&self) -> Option<&[Entry]> {
        match &self.value {
            Value::Map(entries) => Some(entries),
            Value::Null => Some(&[]),
            _ => None,
        }
    }

    /// The value at `key` of a map.
    #[must_use]
    pub fn get(&self, key: &str) -> Option<&Node> {
        self.entries()?.iter().find(|entry| entry.key == key).map(|entry| &entry.node)
    }
}
