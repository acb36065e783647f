//! The words in which tables of keys are written: what a key is called, what it takes, what it means without being said.

/// What a text may be besides characters that are known when the file is read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TextRule {
    /// Parts that are known at launch only.
    pub late: bool,
    /// Secrets; only together with `late`.
    pub secret: bool,
    /// Integers, as their decimal digits.
    pub integers: bool,
    /// It may be empty.
    pub empty: bool,
}

/// What names the entries of a mapping.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Keys {
    /// Any text.
    Any,
    /// Processes, and ports of a process.
    Names,
    /// Variables of the environment.
    Variables,
    /// Files below the job directory's `files`.
    Files,
}

/// What a key takes.
#[derive(Clone, Copy, Debug)]
pub enum Type {
    /// Text.
    Text(TextRule),
    /// A port number, or text that is known at launch only.
    LatePort,
    /// A whole number between two others.
    Int(i64, i64),
    /// A number that is not NaN and not infinite; with `true` above 0, otherwise at least 0.
    Num(bool),
    /// `true` or `false`.
    Bool,
    /// `false`.
    Off,
    /// YAML's `null`.
    Null,
    /// One of some words.
    Word(&'static [&'static str]),
    /// A name of a process.
    Name,
    /// The job's own name, in which a dot may stand.
    JobName,
    /// A name of a variable of the environment.
    Variable,
    /// 8000, `auto`, `8000-8099`.
    Port,
    /// `8000-8099`.
    PortRange,
    /// 200 or `200-299`.
    Status,
    /// A signal that stops a process.
    Signal,
    /// A path.
    Path,
    /// Words as a shell would split them.
    Words,
    /// A sequence.
    List(&'static Type),
    /// A mapping of like things.
    Map(Keys, &'static Type),
    /// A mapping with known keys.
    Table(&'static Table),
    /// A mapping with known keys that depend on its `type`.
    Choice(&'static Choice),
    /// Anything, for somebody else's configuration.
    Tree,
    /// Contents of a file or a variable: text, or a document.
    Document(TextRule),
    /// A Lua function.
    Function,
    /// The first of several that takes the value.
    OneOf(&'static [Type]),
}

/// What holds without the key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Default {
    /// It must be said.
    Required,
    /// This value, as one would write it in YAML.
    Value(&'static str),
    /// What these words say.
    Note(&'static str),
}

/// One key: everything that checks, reads and documents it.
#[derive(Clone, Copy, Debug)]
pub struct Key {
    /// As people write it.
    pub name: &'static str,
    /// What it takes.
    pub takes: Type,
    /// What holds without it.
    pub default: Default,
    /// What it means; empty if its name and type say it.
    pub doc: &'static str,
    /// Known, but of a later version: using it is an error that says so.
    pub later: bool,
}

/// A mapping with known keys.
#[derive(Debug)]
pub struct Table {
    /// As the reference calls it.
    pub title: &'static str,
    /// Its keys, in parts that several tables share.
    pub parts: &'static [&'static [Key]],
    /// Keys of the parts that it does not have.
    pub without: &'static [&'static str],
}

/// Tables told apart by the key `type`.
#[derive(Debug)]
pub struct Choice {
    /// The type of a table without `type`; `None`: it must be said.
    pub default: Option<&'static str>,
    /// The table of each type.
    pub tables: &'static [(&'static str, &'static Table)],
    /// Types of later versions.
    pub later: &'static [&'static str],
}

/// A key that may be left out, and what that means in words (empty: nothing).
pub const fn key(name: &'static str, takes: Type, default: &'static str, doc: &'static str) -> Key {
    Key { name, takes, default: Default::Note(default), doc, later: false }
}

/// A key with a default that is a value.
pub const fn with(name: &'static str, takes: Type, value: &'static str, doc: &'static str) -> Key {
    Key { name, takes, default: Default::Value(value), doc, later: false }
}

/// A key that must be there.
pub const fn required(name: &'static str, takes: Type, doc: &'static str) -> Key {
    Key { name, takes, default: Default::Required, doc, later: false }
}

/// A key of a later version.
pub const fn later(name: &'static str) -> Key {
    Key { name, takes: Type::Tree, default: Default::Note(""), doc: "", later: true }
}

/// Text known when the file is read.
pub const TEXT: Type = Type::Text(TextRule { late: false, secret: false, integers: false, empty: true });
/// The same, not empty.
pub const WORD: Type = Type::Text(TextRule { late: false, secret: false, integers: false, empty: false });
/// Text that may be late.
pub const LATE: Type = Type::Text(TextRule { late: true, secret: false, integers: false, empty: true });
/// Text that may be late or secret.
pub const SECRET: Type = Type::Text(TextRule { late: true, secret: true, integers: false, empty: true });
/// A word of argv.
pub const ARGUMENT: Type = Type::Text(TextRule { late: true, secret: false, integers: true, empty: true });
/// A label.
pub const LABEL: Type = Type::Text(TextRule { late: false, secret: false, integers: true, empty: true });
/// A variable's value.
pub const VARIABLE_VALUE: Type =
    Type::OneOf(&[Type::Document(TextRule { late: true, secret: true, integers: true, empty: true }), Type::Off]);
/// A port number.
pub const PORT_NUMBER: Type = Type::Int(1, 65535);
/// At least 1.
pub const COUNT: Type = Type::Int(1, u32::MAX as i64);

impl Table {
    /// Its keys, in the order in which they are documented; of two of one name the later part's, so that a kind can say
    /// more of a key than its group does.
    pub fn keys(&self) -> impl Iterator<Item = &'static Key> + use<'_> {
        let overridden = |index: usize, key: &Key| {
            self.parts[index + 1..].iter().flat_map(|part| part.iter()).any(|later| later.name == key.name)
        };
        self.parts.iter().enumerate().flat_map(move |(index, part)| {
            part.iter().filter(move |key| !self.without.contains(&key.name) && !overridden(index, key))
        })
    }

    /// The key of that name.
    pub fn key(&self, name: &str) -> Option<&'static Key> {
        if self.without.contains(&name) {
            return None;
        }
        self.parts.iter().rev().find_map(|part| part.iter().find(|key| key.name == name))
    }

    /// Whether like tables have the key, and this one has not.
    pub fn leaves_out(&self, name: &str) -> bool {
        self.without.contains(&name)
    }
}

impl Choice {
    /// The table of all types, if they share one: what else is wrong can then be said though the type is.
    #[must_use]
    pub fn only_table(&self) -> Option<&'static Table> {
        let (_, first) = self.tables.first()?;
        self.tables.iter().all(|(_, table)| std::ptr::eq(*table, *first)).then_some(*first)
    }

    /// The table of a type.
    pub fn table(&self, name: &str) -> Option<&'static Table> {
        self.tables.iter().find(|(known, _)| *known == name).map(|(_, table)| *table)
    }
}

impl Type {
    /// What is due, for a message: "text", "a whole number from 1 to 65535".
    pub fn due(&self) -> String {
        match self {
            Self::Text(TextRule { integers: true, .. }) => "text or a whole number".into(),
            Self::Text(_) => "text".into(),
            Self::Int(min, max) => match (*min, *max) {
                (i64::MIN, _) => "a whole number".into(),
                (min, max) if max >= i64::from(u32::MAX) => format!("a whole number, {min} or more,"),
                (min, max) => format!("a whole number from {min} to {max}"),
            },
            Self::Num(true) => "a number above 0".into(),
            Self::Num(false) => "a number, 0 or more,".into(),
            Self::LatePort => "a port number, or a port that is known at launch,".into(),
            Self::Bool => "true or false".into(),
            Self::Off => "false".into(),
            Self::Null => "null".into(),
            Self::Word(words) => words.iter().map(|word| format!("`{word}`")).collect::<Vec<_>>().join(" or "),
            Self::Name => "a name (letters, digits, `_`, `-`; 63 at most, a letter or digit first)".into(),
            Self::JobName => "a name (letters, digits, `_`, `-`, `.`; 63 at most, a letter or digit first)".into(),
            Self::Variable => "the name of a variable".into(),
            Self::Port => "a port (a number from 1 to 65535, `auto`, or a range such as `8000-8099`)".into(),
            Self::PortRange => "a range of ports such as `20000-29999`".into(),
            Self::Status => "an HTTP status (`200`) or a range of them (`200-299`)".into(),
            Self::Signal => "a signal (TERM, INT, QUIT, HUP, USR1, USR2)".into(),
            Self::Path => "a path".into(),
            Self::Words => "text that is split into words".into(),
            Self::List(of) => format!("a list of {}", of.due_in_short()),
            Self::Map(_, of) => format!("a mapping of {}", of.due_in_short()),
            Self::Table(_) | Self::Choice(_) => "a mapping".into(),
            Self::Tree => "a value".into(),
            Self::Document(rule) => Self::Text(*rule).due(),
            Self::Function => "a function".into(),
            Self::OneOf(types) => types.iter().map(Self::due).collect::<Vec<_>>().join(", or "),
        }
    }

    /// The same without limits, for what stands inside of something.
    pub fn due_in_short(&self) -> String {
        match self {
            Self::Int(..) => "whole numbers".into(),
            Self::Num(_) => "numbers".into(),
            Self::Name => "names".into(),
            Self::Path => "paths".into(),
            Self::Port => "ports".into(),
            Self::Status => "statuses (`200`, `200-299`)".into(),
            Self::List(_) => "lists".into(),
            Self::Map(..) | Self::Table(_) | Self::Choice(_) => "mappings".into(),
            Self::Tree => "values".into(),
            Self::OneOf(types) => types.iter().map(Self::due_in_short).collect::<Vec<_>>().join(" or "),
            other => other.due(),
        }
    }
}
