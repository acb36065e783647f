//! What each hook is about, and what it may give back.

use indexmap::IndexMap;
use mlua::{Lua, Value};

use super::convert::tree_to_lua;
use super::hooks::HookValue;
use super::schema;
use super::spec::{EnvSpec, EnvValue, FragmentSpec, Hook, HookForm, TargetSpec};
use super::tables::{list, texts, value};
use crate::diag::Problems;
use crate::inputs::Node;
use crate::plan::{Text, Tree, Variable, VariableValue};

/// What a check gave, its problems noted.
fn noted<T>(result: Result<T, Problems>, problems: &mut Problems) -> Option<T> {
    result.map_err(|found| problems.extend(found)).ok()
}

/// Hook `attributes`: text, integers, booleans.
#[derive(Clone, Debug)]
pub struct Attributes(pub IndexMap<String, Tree>);

impl HookValue for Attributes {
    fn to_lua(&self, lua: &Lua) -> mlua::Result<Value> {
        Ok(Value::Table(super::tables::trees(lua, &self.0)?))
    }

    fn from_node(node: &Node, problems: &mut Problems) -> Option<Self> {
        let attributes = noted(schema::attributes(node, Hook::Attributes.name()), problems)?;
        Some(Self(attributes.into_iter().map(|(key, placed)| (key, placed.value)).collect()))
    }

    fn lay(&mut self, form: &HookForm) {
        if let HookForm::Attributes(more) = form {
            self.0.extend(more.iter().map(|(key, value)| (key.clone(), value.value.clone())));
        }
    }

    fn changed(&mut self, _: Self, _: &FragmentSpec) {}
}

/// Hook `scrape`.
#[derive(Clone, Debug)]
pub struct Targets(pub Vec<TargetSpec>);

impl HookValue for Targets {
    fn to_lua(&self, lua: &Lua) -> mlua::Result<Value> {
        let table = lua.create_table()?;
        for target in &self.0 {
            table.raw_push(target_to_lua(lua, target)?)?;
        }
        Ok(Value::Table(super::host::mark_list(lua, table)?))
    }

    fn from_node(node: &Node, problems: &mut Problems) -> Option<Self> {
        noted(schema::targets(node, Hook::Scrape.name()), problems).map(Self)
    }

    fn lay(&mut self, form: &HookForm) {
        if let HookForm::Scrape(more) = form {
            self.0.extend(more.iter().cloned());
        }
    }

    fn changed(&mut self, _: Self, _: &FragmentSpec) {}
}

/// A target as hooks see it: what is not said is nil, `labels` is always there.
fn target_to_lua(lua: &Lua, target: &TargetSpec) -> mlua::Result<mlua::Table> {
    let table = lua.create_table()?;
    table.raw_set("job_name", target.job_name.as_str())?;
    match target.port {
        Some(port) => {
            table.raw_set("port", port)?;
            table.raw_set("nodes", target.nodes.as_str())?;
        }
        None => table.raw_set("targets", texts(lua, &target.targets)?)?,
    }
    let labels = lua.create_table()?;
    for (key, text) in &target.labels {
        labels.raw_set(key.as_str(), super::late::late(lua, text.clone())?)?;
    }
    table.raw_set("labels", labels)?;
    table.raw_set("scrape_interval_seconds", target.scrape_interval_seconds)?;
    table.raw_set("metrics_path", target.metrics_path.as_deref())?;
    table.raw_set("scheme", target.scheme.as_deref())?;
    if !target.params.is_empty() {
        let params = lua.create_table()?;
        for (key, values) in &target.params {
            params.raw_set(key.as_str(), list(lua, values.iter().map(String::as_str))?)?;
        }
        table.raw_set("params", params)?;
    }
    table.raw_set("honor_labels", target.honor_labels)?;
    table.raw_set("bearer_env", target.bearer_env.as_deref())?;
    for (key, configs) in
        [("relabel_configs", &target.relabel_configs), ("metric_relabel_configs", &target.metric_relabel_configs)]
    {
        if !configs.is_empty() {
            table.raw_set(key, tree_to_lua(lua, &Tree::List(configs.clone()))?)?;
        }
    }
    Ok(table)
}

/// Hook `environment`: what gymrun sets for one process so far, with the source of each variable.
#[derive(Clone, Debug, Default)]
pub struct Environment(pub IndexMap<String, Variable>);

impl Environment {
    /// Lays variables over those below; only what is not the same already gets the new source.
    pub fn lay_over(&mut self, more: IndexMap<String, VariableValue>, source: impl Fn(&str) -> String) {
        for (name, value) in more {
            if self.0.get(&name).is_none_or(|below| below.value != value) {
                let source = source(&name);
                self.0.insert(name, Variable { value, source, masked: None });
            }
        }
    }

    /// The same for what an author wrote: names that say so are masked.
    pub fn lay_authored(&mut self, env: &IndexMap<String, EnvSpec>) {
        for (name, spec) in env {
            let value = match &spec.value {
                EnvValue::Set(value) => VariableValue::Set(value.clone()),
                EnvValue::Unset => VariableValue::Unset,
            };
            self.0.insert(name.clone(), Variable::new(name, value, spec.location.to_string()));
        }
    }
}

impl HookValue for Environment {
    fn to_lua(&self, lua: &Lua) -> mlua::Result<Value> {
        let table = lua.create_table()?;
        for (name, variable) in &self.0 {
            match &variable.value {
                VariableValue::Set(set) => table.raw_set(name.as_str(), value(lua, set)?)?,
                VariableValue::Unset => table.raw_set(name.as_str(), false)?,
                VariableValue::CollectorCopy { .. } => {}
            }
        }
        Ok(Value::Table(table))
    }

    fn from_node(node: &Node, problems: &mut Problems) -> Option<Self> {
        let mut environment = Self::default();
        environment.lay_authored(&noted(schema::variables(node, Hook::Environment.name()), problems)?);
        Some(environment)
    }

    fn lay(&mut self, form: &HookForm) {
        if let HookForm::Environment(more) = form {
            self.lay_authored(more);
        }
    }

    fn changed(&mut self, before: Self, fragment: &FragmentSpec) {
        let source = format!("hook environment of {}", fragment.source.name);
        for (name, variable) in &mut self.0 {
            match before.0.get(name).filter(|below| below.value == variable.value) {
                Some(below) => *variable = below.clone(),
                None => variable.source.clone_from(&source),
            }
        }
    }
}

/// Hook `launch`: argv of one process.
#[derive(Clone, Debug)]
pub struct Argv(pub Vec<Text>);

impl HookValue for Argv {
    fn to_lua(&self, lua: &Lua) -> mlua::Result<Value> {
        Ok(Value::Table(texts(lua, &self.0)?))
    }

    fn from_node(node: &Node, problems: &mut Problems) -> Option<Self> {
        noted(schema::arguments(node, Hook::Launch.name()), problems).map(Self)
    }

    fn lay(&mut self, form: &HookForm) {
        if let HookForm::Launch { prefix } = form {
            self.0.splice(0..0, prefix.iter().cloned());
        }
    }

    fn changed(&mut self, _: Self, _: &FragmentSpec) {}
}

/// Hook `collector`: the document of collector.yaml.
#[derive(Clone, Debug)]
pub struct Document(pub Tree);

impl HookValue for Document {
    fn to_lua(&self, lua: &Lua) -> mlua::Result<Value> {
        tree_to_lua(lua, &self.0)
    }

    fn from_node(node: &Node, problems: &mut Problems) -> Option<Self> {
        noted(schema::document(node, Hook::Collector.name()), problems).map(Self)
    }

    fn lay(&mut self, form: &HookForm) {
        if let HookForm::Collector(more) = form {
            merge_trees(&mut self.0, more);
        }
    }

    fn changed(&mut self, _: Self, _: &FragmentSpec) {}
}

/// Maps are merged key by key, anything else is replaced.
fn merge_trees(below: &mut Tree, above: &Tree) {
    match (below, above) {
        (Tree::Map(below), Tree::Map(above)) => {
            for (key, value) in above {
                match below.get_mut(key) {
                    Some(under) => merge_trees(under, value),
                    None => {
                        below.insert(key.clone(), value.clone());
                    }
                }
            }
        }
        (below, above) => *below = above.clone(),
    }
}
