//! Lua values as nodes, and back.

use indexmap::IndexMap;
use mlua::{AppDataRef, Lua, LuaString, Table, Value};

use super::failure::{Raised, raise};
use super::host::{Host, host, mark_list};
use super::late::{Late, Peer, Unset, late};
use super::schema::Path;
use crate::diag::{Location, Problem};
use crate::inputs::{Node, NodeValue};
use crate::plan::{Text, Tree};

/// Deeper is a mistake, never a job.
const MAXIMUM_DEPTH: usize = 64;
/// More values than any job has: sharing one table many times over must not fill the memory.
const MAXIMUM_VALUES: usize = 100_000;

/// What a conversion is about.
struct Conversion<'a> {
    lua: &'a Lua,
    host: AppDataRef<'a, Host>,
    /// Functions below this depth are hooks of a fragment; elsewhere they are no values.
    hooks: bool,
    open: Vec<*const std::ffi::c_void>,
}

/// A Lua value as a node. `location` is of the nearest enclosing constructor call known so far; what cannot be a value is
/// noted among the host's problems with its path, and left out.
pub fn to_node(lua: &Lua, value: &Value, location: &Location, path: &str, hooks: bool) -> mlua::Result<Option<Node>> {
    let host = host(lua)?;
    Conversion { lua, host, hooks, open: Vec::new() }.node(value, location, &Path::Of(path), 0)
}

/// What is known of a table.
struct Inspected {
    /// The table behind the proxy, if it is one.
    data: Option<Table>,
    list: bool,
    location: Option<Location>,
    foreign_metatable: bool,
}

/// `enclosing` is the place of what the table stands in: most often in the same file.
fn inspect(host: &Host, table: &Table, enclosing: &Location) -> mlua::Result<Inspected> {
    let prelude = host.prelude()?;
    let list = prelude.lists.raw_get::<Option<bool>>(table)?.unwrap_or_default();
    let Some(info) = prelude.hidden.raw_get::<Option<Table>>(table)? else {
        let foreign_metatable = table.metatable().is_some();
        return Ok(Inspected { data: None, list, location: None, foreign_metatable });
    };
    let location = match info.raw_get::<Option<LuaString>>("file")? {
        Some(file) => {
            let file = file.to_str()?;
            let file = if *file == *enclosing.file { enclosing.file.clone() } else { (*file).into() };
            Some(Location { file, line: info.raw_get("line")? })
        }
        None => None,
    };
    Ok(Inspected { data: Some(info.raw_get("data")?), list, location, foreign_metatable: false })
}

/// The table behind a proxy, or the table itself.
pub fn data_of(lua: &Lua, table: &Table) -> mlua::Result<Table> {
    match host(lua)?.prelude()?.hidden.raw_get::<Option<Table>>(table)? {
        Some(info) => info.raw_get("data"),
        None => Ok(table.clone()),
    }
}

/// The kind of a finished value (`job`, `site`, `server`, ...), if it is one.
pub fn kind_of(lua: &Lua, value: &Value) -> mlua::Result<Option<String>> {
    let Value::Table(table) = value else { return Ok(None) };
    match host(lua)?.prelude()?.hidden.raw_get::<Option<Table>>(table)? {
        Some(info) => info.raw_get("kind"),
        None => Ok(None),
    }
}

impl Conversion<'_> {
    fn node(
        &mut self,
        value: &Value,
        location: &Location,
        path: &Path<'_>,
        depth: usize,
    ) -> mlua::Result<Option<Node>> {
        let count = self.host.converted.get() + 1;
        self.host.converted.set(count);
        if count > MAXIMUM_VALUES {
            return Err(raise(self.lua, format!("the job has more than {MAXIMUM_VALUES} values")));
        }
        let value = match value {
            Value::Boolean(value) => NodeValue::Bool(*value),
            Value::Integer(value) => NodeValue::Int(*value),
            Value::Number(value) if value.is_finite() => NodeValue::Float(*value),
            Value::Number(_) => return Ok(self.refuse("is not a finite number", location, path)),
            Value::String(string) => match string.to_str() {
                Ok(text) if text.contains('\0') => return Ok(self.refuse("holds a NUL byte", location, path)),
                Ok(text) => NodeValue::Text(Text::literal(&*text)),
                Err(_) => return Ok(self.refuse("is not UTF-8", location, path)),
            },
            Value::UserData(userdata) => {
                if let Ok(late) = userdata.borrow::<Late>() {
                    match late.clone() {
                        Late::Text(text) => NodeValue::Text(text),
                        Late::Encoded { encoding, value } => NodeValue::Encoded { encoding, value },
                    }
                } else if let Ok(peer) = userdata.borrow::<Peer>() {
                    NodeValue::Peer(peer.0.clone())
                } else if userdata.is::<Unset>() {
                    NodeValue::Unset
                } else {
                    return Ok(self.refuse("is an object of Lua, not a value", location, path));
                }
            }
            Value::Function(function) if self.hooks && depth == 1 => {
                let mut functions = self.host.functions.borrow_mut();
                functions.push(function.clone());
                NodeValue::Function(functions.len() - 1)
            }
            Value::Function(_) => return Ok(self.refuse("is a function, not a value", location, path)),
            Value::Table(table) => return self.table(table, location, path, depth),
            other => {
                let what = format!("is a {} of Lua, not a value", other.type_name());
                return Ok(self.refuse(&what, location, path));
            }
        };
        Ok(Some(Node { value, location: location.clone() }))
    }

    fn table(
        &mut self,
        table: &Table,
        location: &Location,
        path: &Path<'_>,
        depth: usize,
    ) -> mlua::Result<Option<Node>> {
        let Inspected { data, list, location: own, foreign_metatable } = inspect(&self.host, table, location)?;
        let data = data.as_ref().unwrap_or(table);
        let location = own.unwrap_or_else(|| location.clone());
        if foreign_metatable {
            return Ok(self.refuse("is a table with a metatable; give a plain table", &location, path));
        }
        let pointer = data.to_pointer();
        if self.open.contains(&pointer) {
            return Ok(self.refuse("is a table that contains itself", &location, path));
        }
        if depth > MAXIMUM_DEPTH {
            return Ok(self.refuse(&format!("is nested deeper than {MAXIMUM_DEPTH} tables"), &location, path));
        }
        self.open.push(pointer);
        let (mut items, mut entries) = (Vec::new(), Vec::new());
        data.for_each(|key: Value, item: Value| {
            match key {
                Value::Integer(index) => items.push((index, item)),
                Value::String(key) => match key.to_str() {
                    Ok(key) => entries.push((key.to_owned(), item)),
                    Err(_) => {
                        self.refuse("has a key that is not UTF-8", &location, path);
                    }
                },
                key => {
                    let what = format!("has a {} as a key; keys are text", key.type_name());
                    self.refuse(&what, &location, path);
                }
            }
            Ok(())
        })?;
        let node = if list || !items.is_empty() {
            for (key, _) in &entries {
                let what = format!("is a list and has a named key `{key}`");
                self.refuse(&what, &location, path);
            }
            NodeValue::List(self.list(items, &location, path, depth)?)
        } else {
            entries.sort_unstable_by(|a, b| a.0.cmp(&b.0));
            let mut map = IndexMap::with_capacity(entries.len());
            for (key, item) in entries {
                if let Some(node) = self.node(&item, &location, &path.key(&key), depth + 1)? {
                    map.insert(key, node);
                }
            }
            NodeValue::Map(map)
        };
        self.open.pop();
        Ok(Some(Node { value: node, location }))
    }

    fn list(
        &mut self,
        mut items: Vec<(i64, Value)>,
        location: &Location,
        path: &Path<'_>,
        depth: usize,
    ) -> mlua::Result<Vec<Node>> {
        items.sort_unstable_by_key(|(index, _)| *index);
        let mut list = Vec::with_capacity(items.len());
        for (place, (index, item)) in items.into_iter().enumerate() {
            if index < 1 {
                self.refuse(&format!("has an item at index {index}; lists begin at 1"), location, path);
                break;
            }
            let expected = place + 1;
            if usize::try_from(index) != Ok(expected) {
                let path = path.to_string();
                let name = path.rsplit('.').next().unwrap_or(&path);
                let problem = Problem::new(format!("`{name}` has a hole at index {expected}"))
                    .hint("a nil ends the list early: leave the item out, or build the list with gym.args");
                self.note(problem.at(path).in_file(location.clone()));
                break;
            }
            if let Some(node) = self.node(&item, location, &path.item(place), depth + 1)? {
                list.push(node);
            }
        }
        Ok(list)
    }

    fn note(&self, problem: Problem) {
        self.host.problems.borrow_mut().push(problem);
    }

    fn refuse(&self, what: &str, location: &Location, path: &Path<'_>) -> Option<Node> {
        let path = path.to_string();
        let problem = if path.is_empty() { Problem::new(format!("the result {what}")) } else { Problem::new(what) };
        self.note(problem.at(path).in_file(location.clone()));
        None
    }
}

/// A node as Lua gets it.
pub fn to_lua(lua: &Lua, node: &Node) -> mlua::Result<Value> {
    Ok(match &node.value {
        NodeValue::Null => Value::Nil,
        NodeValue::Unset => Value::UserData(lua.create_userdata(Unset)?),
        NodeValue::Bool(value) => Value::Boolean(*value),
        NodeValue::Int(value) => Value::Integer(*value),
        NodeValue::Float(value) => Value::Number(*value),
        NodeValue::Plain(text) => Value::String(lua.create_string(text)?),
        NodeValue::Text(text) => late(lua, text.clone())?,
        NodeValue::Encoded { encoding, value } => {
            Value::UserData(lua.create_userdata(Late::Encoded { encoding: *encoding, value: value.clone() })?)
        }
        NodeValue::Peer(name) => Value::UserData(lua.create_userdata(Peer(name.clone()))?),
        NodeValue::Function(index) => match host(lua)?.functions.borrow().get(*index) {
            Some(function) => Value::Function(function.clone()),
            None => Value::Nil,
        },
        NodeValue::List(list) => {
            let table = lua.create_table_with_capacity(list.len(), 0)?;
            for item in list {
                table.raw_push(to_lua(lua, item)?)?;
            }
            Value::Table(mark_list(lua, table)?)
        }
        NodeValue::Map(map) => {
            let table = lua.create_table_with_capacity(0, map.len())?;
            for (key, item) in map {
                table.raw_set(key.as_str(), to_lua(lua, item)?)?;
            }
            Value::Table(table)
        }
    })
}

/// A node as a document. Documents have no place for a removal mark, a function or a document within text.
pub fn to_tree(node: &Node) -> Result<Tree, Problem> {
    Ok(match &node.value {
        NodeValue::Null => Tree::Null,
        NodeValue::Bool(value) => Tree::Bool(*value),
        NodeValue::Int(value) => Tree::Int(*value),
        NodeValue::Float(value) => Tree::Float(*value),
        NodeValue::Plain(text) => Tree::Text(Text::literal(text)),
        NodeValue::Text(text) => Tree::Text(text.clone()),
        NodeValue::List(list) => Tree::List(list.iter().map(to_tree).collect::<Result<_, _>>()?),
        NodeValue::Map(map) => {
            Tree::Map(map.iter().map(|(k, v)| Ok((k.clone(), to_tree(v)?))).collect::<Result<_, Problem>>()?)
        }
        NodeValue::Unset => return Err(Problem::new("gym.unset has no meaning in a document")),
        NodeValue::Encoded { .. } => {
            return Err(Problem::new("a document with late values cannot be part of another document"));
        }
        NodeValue::Peer(_) => return Err(Problem::new("gym.peer has a meaning in the `config` of a server only")),
        NodeValue::Function(_) => return Err(Problem::new("a function is no value")),
    })
}

/// A document as Lua gets it: a deep copy that may be changed.
pub fn tree_to_lua(lua: &Lua, tree: &Tree) -> mlua::Result<Value> {
    Ok(match tree {
        Tree::Null => Value::Nil,
        Tree::Bool(value) => Value::Boolean(*value),
        Tree::Int(value) => Value::Integer(*value),
        Tree::Float(value) => Value::Number(*value),
        Tree::Text(text) => late(lua, text.clone())?,
        Tree::List(list) => {
            let table = lua.create_table_with_capacity(list.len(), 0)?;
            for item in list {
                table.raw_push(tree_to_lua(lua, item)?)?;
            }
            Value::Table(mark_list(lua, table)?)
        }
        Tree::Map(map) => {
            let table = lua.create_table_with_capacity(0, map.len())?;
            for (key, item) in map {
                table.raw_set(key.as_str(), tree_to_lua(lua, item)?)?;
            }
            Value::Table(table)
        }
    })
}

/// The document of a Lua value, for `gym.json` and the like: every problem of it is raised at once.
pub fn tree_of(lua: &Lua, value: &Value) -> mlua::Result<Tree> {
    let before = host(lua)?.problems.borrow().iter().count();
    let node = to_node(lua, value, &super::host::author_line(lua), "", false)?;
    let problem = host(lua)?.problems.borrow().iter().nth(before).cloned();
    if let Some(problem) = problem {
        return Err(mlua::Error::external(Raised(problem)));
    }
    match node.as_ref().map(to_tree) {
        Some(Ok(tree)) => Ok(tree),
        Some(Err(problem)) => Err(raise(lua, problem.message)),
        None => Err(raise(lua, "expected a value, got nil")),
    }
}
