//! The members of a W3C trace state: `key=value`.

/// Whether a text is a key: `name` or `tenant@system`.
pub fn is_key(key: &str) -> bool {
    let rest = |text: &str, most: usize| {
        let sign = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || b"_-*/".contains(&byte);
        text.len() <= most + 1 && text.bytes().skip(1).all(sign)
    };
    let name = |text: &str, most| text.starts_with(|c: char| c.is_ascii_lowercase()) && rest(text, most);
    match key.split_once('@') {
        None => name(key, 255),
        Some((tenant, system)) => {
            let first = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit();
            tenant.starts_with(first) && rest(tenant, 240) && name(system, 13)
        }
    }
}

/// Whether a text is a value.
pub fn is_value(value: &str) -> bool {
    let sign = |byte: u8| (0x20..=0x7e).contains(&byte) && byte != b',' && byte != b'=';
    (1..=256).contains(&value.len()) && value.bytes().all(sign) && !value.ends_with(' ')
}
