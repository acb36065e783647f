//! Hooks: each fragment gets a copy of what the one below it made and gives it back changed; the result is checked before
//! the next fragment sees it.

use mlua::{Function, Lua, Table, Value};

use super::convert::to_node;
use super::failure::problem_of;
use super::host::{host, prelude};
use super::spec::{FragmentSpec, Hook, HookForm};
use super::vm::line_by_line;
use crate::diag::{Location, Problem, Problems};
use crate::inputs::Node;

/// What a hook's value is, for one kind of hook.
pub trait HookValue: Sized {
    /// As the hook gets it.
    fn to_lua(&self, lua: &Lua) -> mlua::Result<Value>;
    /// From what the hook gave back; each problem with its path below the hook.
    fn from_node(node: &Node, problems: &mut Problems) -> Option<Self>;
    /// The table form of a fragment laid over the value.
    fn lay(&mut self, form: &HookForm);
    /// Called once a fragment has changed the value from `before`.
    fn changed(&mut self, before: Self, fragment: &FragmentSpec);
}

/// Runs one hook through all fragments. What goes wrong is noted, and the fragments above go on from the last good value.
pub fn run<T: HookValue + Clone>(
    lua: &Lua,
    hook: Hook,
    fragments: &[FragmentSpec],
    arguments: &[Table],
    mut value: T,
    problems: &mut Problems,
) -> T {
    for fragment in fragments {
        let Some(spec) = fragment.hooks.get(&hook) else { continue };
        let before = value.clone();
        let HookForm::Function(index) = spec.form else {
            value.lay(&spec.form);
            value.changed(before, fragment);
            continue;
        };
        match call(lua, hook, fragment, index, arguments, &value) {
            Ok(mut result) => {
                result.changed(before, fragment);
                value = result;
            }
            Err(found) => problems.extend(found),
        }
    }
    value
}

fn call<T: HookValue>(
    lua: &Lua,
    hook: Hook,
    fragment: &FragmentSpec,
    index: usize,
    arguments: &[Table],
    value: &T,
) -> Result<T, Problems> {
    let name = &fragment.source.name;
    let found = |error: mlua::Error| name_hook(problem_of(lua, &error), hook, name);
    let function = host(lua)
        .ok()
        .and_then(|host| host.functions.borrow().get(index).cloned())
        .ok_or_else(|| Problem::new("a hook has no function; this is a bug of gymrun"))?;
    let place = definition(&function, &fragment.source.file);
    let copy: Value = match value.to_lua(lua).map_err(found)? {
        Value::Table(table) => prelude(lua, "thaw").and_then(|thaw| thaw.call(table)).map_err(found)?,
        other => other,
    };
    let mut all: Vec<Value> = arguments.iter().map(|table| Value::Table(table.clone())).collect();
    all.push(copy);
    let result: Value = line_by_line(lua, || function.call(mlua::Variadic::from_iter(all))).map_err(found)?;
    if result.is_nil() {
        let what = argument_name(hook);
        return Err(Problem::new(format!("the hook `{}` of fragment `{name}` returned nothing", hook.name()))
            .at(hook.name())
            .in_file(place)
            .hint(format!("end it with `return {what}`"))
            .into());
    }
    let before = host(lua).map_err(found)?.problems.replace(Problems::new());
    let node = to_node(lua, &result, &place, hook.name(), false).map_err(found);
    let mut problems = host(lua).map_err(found)?.problems.replace(before);
    let typed = node?.and_then(|node| T::from_node(&node, &mut problems));
    let problems = name_hook(problems, hook, name);
    match typed {
        Some(typed) if !problems.any_error() => Ok(typed),
        _ => Err(problems),
    }
}

fn argument_name(hook: Hook) -> &'static str {
    match hook {
        Hook::Attributes => "attributes",
        Hook::Scrape => "targets",
        Hook::Environment => "env",
        Hook::Launch => "argv",
        Hook::Collector => "config",
    }
}

/// Says which hook of which fragment a problem is of.
fn name_hook(problems: Problems, hook: Hook, fragment: &str) -> Problems {
    let mut named = Problems::new();
    for mut problem in problems {
        problem.message = format!("hook `{}` of fragment `{fragment}`: {}", hook.name(), problem.message);
        named.push(problem);
    }
    named
}

/// The line of the function itself.
fn definition(function: &Function, file: &str) -> Location {
    let info = function.info();
    let source = info.source.as_deref().and_then(|source| source.strip_prefix('@')).unwrap_or(file).to_owned();
    Location { file: source.into(), line: info.line_defined.and_then(|line| u32::try_from(line).ok()) }
}
