//! The last step to collector.yaml: what is late in it becomes `${env:X}`, and the collector gets a copy of each `X`.

use indexmap::IndexMap;

use crate::diag::{Problem, Problems};
use crate::plan::{Reference, Segment, Text, Tree, VariableValue};

/// Empty in every collector's environment: after another reference it keeps the whole a text, whatever that one holds.
const EMPTY: &str = "GYMRUN_EMPTY:-";
/// The key whose reference stands alone, as in the reference configuration; a `convert` action follows it.
const SLURM_JOB_ID: &str = "slurm_job_id";

/// Turns secrets and runtime values of the document into the collector's own references, and gives the copies that the
/// collector's environment needs.
pub fn settle(document: &mut Tree, problems: &mut Problems) -> IndexMap<String, VariableValue> {
    let mut copies: IndexMap<String, Option<String>> = IndexMap::new();
    document.change_texts(&mut |text| {
        text.change_references(|reference| match reference {
            Reference::Secret { name, default } | Reference::Inherited { name, default } => {
                match copies.get(name) {
                    Some(other) if other != default => problems.push(
                        Problem::new(format!("`{name}` has two different defaults in the collector's configuration"))
                            .at("collector")
                            .hint("give both the same default, or none"),
                    ),
                    _ => {
                        copies.insert(name.clone(), default.clone());
                    }
                }
                Some(Reference::CollectorEnv { name: name.clone() })
            }
            _ => None,
        });
    });
    keep_attributes_text(document);
    copies
        .into_iter()
        .map(|(name, default)| (name.clone(), VariableValue::CollectorCopy { variable: name, default }))
        .collect()
}

/// An attribute that is one reference alone would become a number or a boolean if what it holds looks like one.
fn keep_attributes_text(document: &mut Tree) {
    let Tree::Map(root) = document else { return };
    let Some(Tree::Map(processors)) = root.get_mut("processors") else { return };
    for processor in processors.values_mut() {
        let Tree::Map(processor) = processor else { continue };
        let Some(Tree::List(actions)) = processor.get_mut("attributes") else { continue };
        for action in actions {
            let Tree::Map(action) = action else { continue };
            let is_slurm = matches!(action.get("key"), Some(Tree::Text(key)) if key.as_literal() == Some(SLURM_JOB_ID));
            if let Some(Tree::Text(value)) = action.get_mut("value")
                && !is_slurm
                && is_lone_reference(value)
            {
                value.push_reference(Reference::CollectorEnv { name: EMPTY.into() });
            }
        }
    }
}

fn is_lone_reference(text: &Text) -> bool {
    matches!(text.segments(), [Segment::Reference(Reference::CollectorEnv { .. })])
}
