//! Foreign texts in messages.

/// The beginning of a text that may be long: at most so many characters, with `…` for the rest. Secrets must be masked
/// before, as the cut may go through one of them.
#[must_use]
pub fn excerpt(text: &str, most: usize) -> String {
    match text.char_indices().nth(most) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::excerpt;

    #[test]
    fn what_is_long_is_cut_between_characters() {
        assert_eq!(excerpt("äöü", 3), "äöü");
        assert_eq!(excerpt("äöü", 2), "äö…");
        assert_eq!(excerpt("", 0), "");
    }
}
