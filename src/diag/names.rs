//! What names say: the nearest right one for a wrong one, and which name a secret.

/// The candidate that is most like `wrong`, if any is near enough to be meant.
///
/// Near enough is a Jaro-Winkler likeness of 0.8, or the same letters but for case, `-`, `_` and blanks.
pub fn nearest<'a>(wrong: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let folded = fold(wrong);
    let mut best: Option<(f64, &str)> = None;
    for candidate in candidates {
        let likeness = if fold(candidate) == folded { 1.0 } else { strsim::jaro_winkler(wrong, candidate) };
        if likeness >= 0.8 && best.is_none_or(|(b, _)| likeness > b) {
            best = Some((likeness, candidate));
        }
    }
    best.map(|(_, name)| name)
}

/// Whether what a variable of this name holds is kept from sight, whatever it is.
#[must_use]
pub fn is_secret_name(name: &str) -> bool {
    let name = name.as_bytes();
    name.iter().enumerate().any(|(at, first)| {
        let word: &[u8] = match first.to_ascii_uppercase() {
            b'T' => b"TOKEN",
            b'K' => b"KEY",
            b'S' => b"SECRET",
            b'P' => b"PASSWORD",
            _ => return false,
        };
        name[at..].get(..word.len()).is_some_and(|part| part.eq_ignore_ascii_case(word))
    })
}

fn fold(name: &str) -> String {
    name.chars().filter(|c| !matches!(c, '_' | '-' | ' ')).flat_map(char::to_lowercase).collect()
}

#[cfg(test)]
mod tests {
    use super::{is_secret_name, nearest};

    #[test]
    fn a_secret_says_so_anywhere_in_its_name_and_in_any_case() {
        assert!(["HF_TOKEN", "keys", "MySecrets", "PGPASSWORD", "xKey"].iter().all(|name| is_secret_name(name)));
        assert!(!["", "TOK", "KE", "PASSWOR", "PATH", "TOKE_N"].iter().any(|name| is_secret_name(name)));
    }

    #[test]
    fn a_typo_finds_its_name_and_nonsense_finds_none() {
        let keys = ["depends_on", "command", "cwd"];
        assert_eq!(nearest("dependson", keys), Some("depends_on"));
        assert_eq!(nearest("comand", keys), Some("command"));
        assert_eq!(nearest("zzz", keys), None);
    }
}
