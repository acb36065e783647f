//! Words in the cases of programs, by the rules that the reference has for them.

/// `someName` and `SOMEName` become `some_name`; blanks, hyphens and points become `_` too.
#[must_use]
pub fn snake(text: &str) -> String {
    let trimmed = text.trim();
    let characters: Vec<char> = trimmed.chars().collect();
    let mut out = String::with_capacity(trimmed.len() + 4);
    for (place, c) in characters.iter().copied().enumerate() {
        let before = place.checked_sub(1).map(|place| characters[place]);
        let after = characters.get(place + 1).copied();
        let (capital, small, digit) = (c.is_ascii_uppercase(), c.is_ascii_lowercase(), c.is_ascii_digit());
        let next = |is: fn(&char) -> bool| after.as_ref().is_some_and(is);
        let changes = (capital && next(char::is_ascii_lowercase))
            || ((capital || small) && next(char::is_ascii_digit))
            || (small && next(char::is_ascii_uppercase))
            || (digit && next(char::is_ascii_alphabetic));
        if !changes && matches!(c, ' ' | '_' | '-' | '.') {
            out.push('_');
            continue;
        }
        // The last capital of several begins the next word.
        if capital && next(char::is_ascii_lowercase) && before.is_some_and(|before| before.is_ascii_uppercase()) {
            out.push('_');
        }
        out.push(c.to_ascii_lowercase());
        if changes && (small || digit || next(char::is_ascii_digit)) {
            out.push('_');
        }
    }
    out
}

/// `some_name` and `some name` become `SomeName`; a letter after a digit becomes a capital.
#[must_use]
pub fn camel(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let (mut capital_next, mut capital_before) = (true, false);
    for c in text.trim().chars() {
        let capital = c.is_ascii_uppercase();
        if c.is_ascii_alphabetic() {
            out.push(match c {
                _ if capital_next => c.to_ascii_uppercase(),
                _ if capital_before => c.to_ascii_lowercase(),
                _ => c,
            });
            capital_next = false;
        } else if c.is_ascii_digit() {
            out.push(c);
            capital_next = true;
        } else {
            // Other characters are left out.
            capital_next = matches!(c, '_' | ' ' | '-' | '.');
        }
        capital_before = capital;
    }
    out
}

/// Capitals character by character; one whose capital form is several characters stays.
#[must_use]
pub fn upper(text: &str) -> String {
    let one = |c: char| {
        let mut forms = c.to_uppercase();
        if forms.len() == 1 { forms.next().unwrap_or(c) } else { c }
    };
    text.chars().map(one).collect()
}

/// Small letters character by character.
#[must_use]
pub fn lower(text: &str) -> String {
    // The first of several is the letter without what stands above it.
    text.chars().map(|c| c.to_lowercase().next().unwrap_or(c)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn snakes() {
        for (text, expected) in [
            ("someName", "some_name"),
            ("JSONData", "json_data"),
            ("userID", "user_id"),
            ("a1B2c", "a_1_b_2_c"),
            (" http.request-id x", "http_request_id_x"),
            ("AAAbbb", "aa_abbb"),
            ("1A23", "1_a_23"),
            ("Id0Value", "id_0_value"),
            ("snake_case", "snake_case"),
            ("", ""),
        ] {
            assert_eq!(snake(text), expected, "{text}");
        }
    }

    #[test]
    fn camels() {
        for (text, expected) in [
            ("some_name", "SomeName"),
            ("utf8_safe", "Utf8Safe"),
            ("utf8safe", "Utf8Safe"),
            ("HTTPStatus code", "HttpstatusCode"),
            ("a.b-c", "ABC"),
            ("numbers2And55with000", "Numbers2And55With000"),
        ] {
            assert_eq!(camel(text), expected, "{text}");
        }
    }

    #[test]
    fn cases_of_single_letters() {
        assert_eq!(upper("aßéǰx"), "AßÉǰX");
        assert_eq!(lower("İΣΑΣ"), "iσασ");
    }
}
