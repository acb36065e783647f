//! Changing every text of a plan in place, and seeing every text of a unit.

use std::fmt::Arguments;
use std::sync::Arc;

use super::process::{ProbeKind, Question, Readiness, Unit, VariableValue};
use super::text::{Reference, Segment, Text};
use super::tree::{Tree, Value};

impl Value {
    /// Calls `change` with every text in it.
    pub fn change_texts(&mut self, change: &mut impl FnMut(&mut Text)) {
        match self {
            Self::Text(text) => change(text),
            Self::Encoded { value, .. } => Arc::make_mut(value).change_texts(change),
        }
    }
}

impl Tree {
    /// Calls `change` with every text in it, depth first.
    pub fn change_texts(&mut self, change: &mut impl FnMut(&mut Text)) {
        match self {
            Self::Text(text) => change(text),
            Self::List(list) => list.iter_mut().for_each(|t| t.change_texts(change)),
            Self::Map(map) => map.values_mut().for_each(|t| t.change_texts(change)),
            _ => {}
        }
    }

    /// Each text that is one reference alone and for which `number` has a number becomes that number.
    pub fn fix_numbers(&mut self, number: &impl Fn(&Reference) -> Option<u16>) {
        match self {
            Self::Text(text) => {
                if let [Segment::Reference(reference)] = text.segments()
                    && let Some(number) = number(reference)
                {
                    *self = Self::Int(i64::from(number));
                }
            }
            Self::List(list) => list.iter_mut().for_each(|t| t.fix_numbers(number)),
            Self::Map(map) => map.values_mut().for_each(|t| t.fix_numbers(number)),
            _ => {}
        }
    }
}

impl Question {
    fn change_texts(&mut self, mut change: impl FnMut(Arguments<'_>, &mut Text)) {
        if let ProbeKind::Exec { command } = &mut self.kind {
            for text in command {
                change(format_args!("command"), text);
            }
        }
        if let Some(text) = &mut self.host {
            change(format_args!("host"), text);
        }
        if let Some(text) = &mut self.port {
            change(format_args!("port"), text);
        }
    }

    fn visit_texts(&self, mut visit: impl FnMut(Arguments<'_>, &Text)) {
        if let ProbeKind::Exec { command } = &self.kind {
            for text in command {
                visit(format_args!("command"), text);
            }
        }
        self.host.iter().for_each(|text| visit(format_args!("host"), text));
        self.port.iter().for_each(|text| visit(format_args!("port"), text));
    }
}

impl Unit {
    /// Calls `change` with every text of the unit and the key it stands under.
    pub fn change_texts(&mut self, mut change: impl FnMut(Arguments<'_>, &mut Text)) {
        for text in &mut self.argv {
            change(format_args!("command"), text);
        }
        for (name, variable) in &mut self.env {
            if let VariableValue::Set(value) = &mut variable.value {
                value.change_texts(&mut |text| change(format_args!("env.{name}"), text));
            }
        }
        if let Readiness::Probe(probe) = &mut self.readiness {
            probe.question.change_texts(|key, text| change(format_args!("health_check.{key}"), text));
        }
        if let Some(liveness) = &mut self.liveness {
            liveness.question.change_texts(|key, text| change(format_args!("liveness.{key}"), text));
        }
    }

    /// Calls `visit` with every text of the unit and the key it stands under: what [`Unit::change_texts`] would change.
    pub fn visit_texts(&self, mut visit: impl FnMut(Arguments<'_>, &Text)) {
        self.argv.iter().for_each(|text| visit(format_args!("command"), text));
        for (name, variable) in &self.env {
            if let VariableValue::Set(value) = &variable.value {
                value.visit_texts(&mut |text| visit(format_args!("env.{name}"), text));
            }
        }
        if let Readiness::Probe(probe) = &self.readiness {
            probe.question.visit_texts(|key, text| visit(format_args!("health_check.{key}"), text));
        }
        if let Some(liveness) = &self.liveness {
            liveness.question.visit_texts(|key, text| visit(format_args!("liveness.{key}"), text));
        }
    }

    /// Calls `change` with every document of the unit.
    pub fn change_documents(&mut self, mut change: impl FnMut(&mut Tree)) {
        for variable in self.env.values_mut() {
            if let VariableValue::Set(Value::Encoded { value, .. }) = &mut variable.value {
                change(Arc::make_mut(value));
            }
        }
    }
}
