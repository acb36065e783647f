//! When values are the same: of one type and equal, whatever the order of the keys in maps.

use std::collections::HashMap;

use super::value::{AnyValue, KeyValue, Text};

/// Whether two values are the same.
#[must_use]
pub fn same(left: &AnyValue, right: &AnyValue) -> bool {
    match (left, right) {
        (AnyValue::Map(left), AnyValue::Map(right)) => same_map(left, right),
        (AnyValue::Array(left), AnyValue::Array(right)) => same_list(left, right),
        _ => left == right,
    }
}

/// Whether two maps have the same entries. Of equal keys the first one counts.
#[must_use]
pub fn same_map(left: &[KeyValue], right: &[KeyValue]) -> bool {
    if left.len() != right.len() {
        return false;
    }
    let mut values: HashMap<&Text, &AnyValue> = HashMap::with_capacity(right.len());
    for entry in right {
        values.entry(&entry.key).or_insert(&entry.value);
    }
    left.iter().all(|entry| values.get(&entry.key).is_some_and(|other| same(&entry.value, other)))
}

/// Whether two lists have the same values in the same order.
#[must_use]
pub fn same_list(left: &[AnyValue], right: &[AnyValue]) -> bool {
    left.len() == right.len() && left.iter().zip(right).all(|(left, right)| same(left, right))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_order_of_keys_makes_no_difference_at_any_depth() {
        let map = |entries: &[(&str, i64)]| {
            AnyValue::Map(entries.iter().map(|(key, value)| KeyValue::new(*key, *value)).collect())
        };
        let lists = |map: AnyValue| AnyValue::Array(vec![AnyValue::Map(vec![KeyValue::new("m", map)])]);
        assert!(same(&lists(map(&[("a", 1), ("b", 2)])), &lists(map(&[("b", 2), ("a", 1)]))));
        assert!(!same(&lists(map(&[("a", 1), ("b", 2)])), &lists(map(&[("a", 1), ("b", 3)]))));
        assert!(!same(&map(&[("a", 1)]), &map(&[("a", 1), ("b", 2)])));
        assert!(!same(&AnyValue::Int(1), &AnyValue::Double(1.0)));
        assert!(!same(&AnyValue::Array(vec![1.into(), 2.into()]), &AnyValue::Array(vec![2.into(), 1.into()])));
    }
}
