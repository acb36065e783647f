//! Reads the keys of a table that has been checked: a key that is missing, or wrong, has its default.

use std::borrow::Cow;
use std::path::Path;

use super::kinds::{ARGUMENT, Default, Table};
use super::value::{boolean, entries, int, is_off, items, literal, num, port, text};
use crate::diag::Location;
use crate::inputs::{Node, NodeValue, World};
use crate::plan::{PortChoice, Text};
use crate::policy::spec::Placed;

/// The place of what nobody wrote.
pub const BUILT_IN: &str = "<built-in>";

/// A table and what its keys mean without being said.
#[derive(Clone, Copy)]
pub struct Fields<'a> {
    node: &'a Node,
    table: &'static Table,
}

impl<'a> Fields<'a> {
    /// The keys of `node` as `table` has them.
    pub fn new(node: &'a Node, table: &'static Table) -> Self {
        Self { node, table }
    }

    /// What the author wrote, if anything.
    pub fn said(&self, key: &str) -> Option<&'a Node> {
        debug_assert!(self.table.key(key).is_some(), "{} has no key {key}", self.table.title);
        entries(self.node)?.get(key)
    }

    /// What the author wrote, or the default that is a value.
    pub fn get(&self, key: &str) -> Option<Cow<'a, Node>> {
        if let Some(node) = self.said(key) {
            return Some(Cow::Borrowed(node));
        }
        match self.table.key(key)?.default {
            Default::Value(value) => {
                Some(Cow::Owned(Node { value: NodeValue::Plain(value.to_owned()), location: Location::default() }))
            }
            _ => None,
        }
    }

    /// The place of the key, or of the table.
    pub fn location(&self, key: &str) -> Location {
        self.said(key).map_or_else(|| self.node.location.clone(), |node| node.location.clone())
    }

    /// Text that is known now.
    pub fn text(&self, key: &str) -> Option<String> {
        self.get(key).and_then(|node| literal(&node).map(str::to_owned))
    }

    /// The same with its place.
    pub fn placed(&self, key: &str) -> Option<Placed<String>> {
        Some(Placed { value: self.text(key)?, location: self.location(key) })
    }

    /// Text that may be late.
    pub fn late(&self, key: &str) -> Option<Text> {
        self.get(key).and_then(|node| text(&node, ARGUMENT_RULE))
    }

    /// A whole number; 0 where it is missing though it must not be.
    pub fn int<T: TryFrom<i64> + std::default::Default>(&self, key: &str) -> T {
        self.maybe_int(key).unwrap_or_default()
    }

    /// A whole number.
    pub fn maybe_int<T: TryFrom<i64>>(&self, key: &str) -> Option<T> {
        self.get(key).and_then(|node| int(&node)).and_then(|number| T::try_from(number).ok())
    }

    /// A number.
    pub fn num(&self, key: &str) -> Option<f64> {
        self.get(key).and_then(|node| num(&node))
    }

    /// `true` or `false`; `false` where it is missing.
    pub fn bool(&self, key: &str) -> bool {
        self.get(key).and_then(|node| boolean(&node)).unwrap_or_default()
    }

    /// A port.
    pub fn port(&self, key: &str) -> Option<Placed<PortChoice>> {
        Some(Placed { value: self.get(key).and_then(|node| port(&node))?, location: self.location(key) })
    }

    /// Whether the author switched it off.
    pub fn is_off(&self, key: &str) -> bool {
        self.said(key).is_some_and(is_off)
    }

    /// The items of a list.
    pub fn items(&self, key: &str) -> &'a [Node] {
        self.said(key).and_then(items).unwrap_or_default()
    }

    /// The entries of a mapping, in the author's order.
    pub fn entries(&self, key: &str) -> impl Iterator<Item = (&'a str, &'a Node)> + use<'a> {
        self.said(key).and_then(entries).into_iter().flatten().map(|(key, node)| (key.as_str(), node))
    }

    /// A path made absolute; of a bare name only if it is not looked up in PATH.
    pub fn path(&self, key: &str, bare: bool, world: &World) -> Option<String> {
        self.get(key).and_then(|node| path(&node, bare, world))
    }
}

/// Any text that can be an argument.
const ARGUMENT_RULE: super::kinds::TextRule = match ARGUMENT {
    super::kinds::Type::Text(rule) => rule,
    _ => panic!("an argument is text"),
};

/// The words of a list, late or not.
pub fn words(node: &Node) -> Vec<Text> {
    items(node).unwrap_or_default().iter().filter_map(|item| text(item, ARGUMENT_RULE)).collect()
}

/// Text that may be late, from one node.
pub fn late(node: &Node) -> Option<Text> {
    text(node, ARGUMENT_RULE)
}

/// A path made absolute: relative to the directory of the file that says it. With `bare`, a name without a slash stays.
pub fn path(node: &Node, bare: bool, world: &World) -> Option<String> {
    let text = literal(node)?;
    if bare && !text.contains('/') {
        return Some(text.to_owned());
    }
    let path = world.directory_of(&node.location).join(text);
    Some(world.absolute(Path::new(&path)).display().to_string())
}
