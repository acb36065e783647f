//! Layers on top of each other (docs/api.md section 2).

use super::node::{Node, NodeValue};

/// Lists to which an upper layer adds; any other list it replaces.
const ADDED: [&str; 2] = ["scrape", "stage"];

/// `upper` over `lower`: mappings key by key, anything else replaces, and a removal mark stays where it is so that it also
/// reaches the layers below (see [`prune`]). Each value keeps its own place.
#[must_use]
pub fn merge(lower: Node, upper: Node) -> Node {
    merge_at(lower, upper, "")
}

fn merge_at(lower: Node, upper: Node, key: &str) -> Node {
    let location = upper.location;
    let value = match (lower.value, upper.value) {
        // Lua's `{}` over a list is an empty list; over a mapping it changes nothing.
        (NodeValue::List(lower), NodeValue::Map(upper)) if upper.is_empty() => {
            NodeValue::List(if ADDED.contains(&key) { lower } else { Vec::new() })
        }
        (NodeValue::Map(mut lower), NodeValue::Map(upper)) => {
            for (key, value) in upper {
                let merged = match lower.get_mut(&key) {
                    Some(below) => {
                        let below =
                            std::mem::replace(below, Node { value: NodeValue::Null, location: location.clone() });
                        merge_at(below, value, &key)
                    }
                    None => value,
                };
                lower.insert(key, merged);
            }
            NodeValue::Map(lower)
        }
        (NodeValue::List(mut lower), NodeValue::List(upper)) if ADDED.contains(&key) => {
            lower.extend(upper);
            NodeValue::List(lower)
        }
        (_, upper) => upper,
    };
    Node { value, location }
}

/// Takes the removal marks out of mappings, once nothing comes above any more.
pub fn prune(node: &mut Node) {
    match &mut node.value {
        NodeValue::Map(map) => {
            map.retain(|_, value| value.value != NodeValue::Unset);
            map.values_mut().for_each(prune);
        }
        NodeValue::List(items) => items.iter_mut().for_each(prune),
        _ => {}
    }
}
