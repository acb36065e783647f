//! What policy hands over: a plan whose names have not been looked at yet.

use std::collections::BTreeSet;

use indexmap::IndexMap;

use super::job::Plan;

/// A plan before [`compile`](super::compile()): units in the author's order, `self` still `self`, names unchecked.
#[derive(Clone, Debug, PartialEq)]
pub struct Draft {
    /// Everything that policy decided.
    pub plan: Plan,
    /// The path of keys of each unit (`servers.agent`), for problems.
    pub paths: IndexMap<String, String>,
    /// The variables of gymrun's own environment; `None` if secrets and runtime values are not looked up.
    pub environment: Option<BTreeSet<String>>,
}
