//! The W3C trace state: a list of at most 32 members `key=value`, the newest first.

use crate::collector::text::trace_state::{is_key, is_value};

const MOST_MEMBERS: usize = 32;

/// The value of a member, empty if there is none; None if the text is no trace state.
pub(super) fn get(state: &str, key: &str) -> Option<String> {
    let members = parse(state)?;
    Some(members.into_iter().find(|(name, _)| *name == key).map_or_else(String::new, |(_, value)| value.to_owned()))
}

/// The state with a member put at its front; None if the text, the key or the value is not as it must be.
pub(super) fn insert(state: &str, key: &str, value: &str) -> Option<String> {
    let mut members = parse(state)?;
    if !is_key(key) || !is_value(value) {
        return None;
    }
    members.retain(|(name, _)| *name != key);
    members.insert(0, (key, value));
    members.truncate(MOST_MEMBERS);
    Some(members.into_iter().map(|(key, value)| format!("{key}={value}")).collect::<Vec<String>>().join(","))
}

fn parse(state: &str) -> Option<Vec<(&str, &str)>> {
    let mut members: Vec<(&str, &str)> = Vec::new();
    for member in state.split(',').filter(|member| !member.is_empty()) {
        let (key, value) = member.split_once('=')?;
        let (key, value) = (key.trim_start_matches([' ', '\t']), value.trim_end_matches([' ', '\t']));
        let new = members.iter().all(|(name, _)| *name != key);
        if !is_key(key) || !is_value(value) || !new || members.len() == MOST_MEMBERS {
            return None;
        }
        members.push((key, value));
    }
    Some(members)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn members_are_read_and_put_in_front() {
        assert_eq!(get("a=1, b=2", "b").as_deref(), Some("2"));
        assert_eq!(get("a=1", "c").as_deref(), Some(""));
        for wrong in ["a", "A=1", "a=1,a=2", "a=", "a=\u{e9}", "@b=1"] {
            assert_eq!(get(wrong, "a"), None, "{wrong}");
        }
        assert_eq!(insert("a=1,b=2", "b", "3").as_deref(), Some("b=3,a=1"));
        assert_eq!(insert("", "t@s", "x y").as_deref(), Some("t@s=x y"));
        assert_eq!(insert("a=1", "b", "x,y"), None);
        let full = (0..32).map(|index| format!("k{index}=v")).collect::<Vec<_>>().join(",");
        assert!(
            insert(&full, "new", "v").is_some_and(|state| state.starts_with("new=v,k0=v") && !state.contains("k31"))
        );
    }
}
