//! The value tree that every layer is read into.

use std::sync::Arc;

use indexmap::IndexMap;

use crate::diag::Location;
use crate::plan::{Encoding, Text, Tree};

/// A value and where its author wrote it.
#[derive(Clone, Debug, PartialEq)]
pub struct Node {
    /// The value.
    pub value: NodeValue,
    /// YAML: the line of the key (or list item); Lua: the nearest enclosing constructor call.
    pub location: Location,
}

/// What a job or site file can say. Which kinds a key takes is the schema's business, not the reader's.
#[derive(Clone, Debug, PartialEq)]
pub enum NodeValue {
    /// `gym.unset`, `!unset`: takes away what the layers below said.
    Unset,
    /// YAML's `~` or empty.
    Null,
    /// `true` or `false` of Lua; `false` also switches a thing off. `!off` of YAML is `Bool(false)`.
    Bool(bool),
    /// A Lua integer.
    Int(i64),
    /// A Lua float.
    Float(f64),
    /// A plain scalar of YAML or of `--set`: source text, which the schema reads as what the key asks for.
    Plain(String),
    /// Text: a Lua string, a quoted YAML scalar, or anything with references in it.
    Text(Text),
    /// A document that becomes text at launch, its references escaped as the encoding asks: `gym.json` and `gym.yaml`
    /// of late values. Allowed where a whole value of `env` or `files` is due, nowhere else.
    Encoded {
        /// As what.
        encoding: Encoding,
        /// The document.
        value: Arc<Tree>,
    },
    /// `gym.peer(name)`: another server's `{type, name}`, and a dependency. Allowed inside of `config`, nowhere else.
    Peer(String),
    /// A list.
    List(Vec<Node>),
    /// A mapping, in the author's order (Lua: sorted by key). Lua's `{}` is an empty one, and means an empty list where a
    /// list is due.
    Map(IndexMap<String, Node>),
    /// A Lua function: a hook of a fragment, by its place in the VM's registry.
    Function(usize),
}
