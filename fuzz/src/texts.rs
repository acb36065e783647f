//! Go's patterns and formats. The parts of an input are its lines.

use gymrun::collector::fuzzing::{Printable, compile_pattern, format, parse_double, parse_integer, relabel_pattern};

/// A pattern, a template for what it finds, and the text to look in.
pub fn patterns(input: &[u8]) {
    let Ok(text) = std::str::from_utf8(input) else { return };
    let mut lines = text.splitn(3, '\n');
    let mut next = || lines.next().unwrap_or_default();
    let (pattern, template, text) = (next(), next(), next());
    if let Ok(compiled) = compile_pattern(pattern) {
        let found = compiled.captures_iter(text).take(100);
        let longest = template.len() * (text.len() + 1);
        for found in found {
            assert!(compiled.expand(template, &found).len() <= longest);
        }
    }
    let _ = relabel_pattern(pattern, text, template);
}

/// A format, and its arguments: a letter for the type, then the value.
pub fn formats(input: &[u8]) {
    let Ok(text) = std::str::from_utf8(input) else { return };
    let mut lines = text.split('\n');
    let pattern = lines.next().unwrap_or_default();
    let arguments: Vec<Printable> = lines.take(20).map(argument).collect();
    // The arguments that nobody asked for come on top of the longest text.
    if let Ok(printed) = format(pattern, &arguments) {
        assert!(printed.len() <= (5 << 20) + 100 * input.len(), "{} bytes", printed.len());
    }
}

fn argument(line: &str) -> Printable {
    let mut characters = line.chars();
    let kind = characters.next();
    let rest = characters.as_str();
    match kind {
        Some('i') => Printable::Int(parse_integer(rest).unwrap_or(i64::MIN)),
        Some('d') => Printable::Double(parse_double(rest).unwrap_or(f64::NAN)),
        Some('b') => Printable::Bool(rest == "true"),
        Some('x') => Printable::Bytes(rest.as_bytes().to_vec()),
        Some('l') => Printable::List(rest.split(',').take(10).map(argument).collect(), "[]interface {}"),
        Some('s') => Printable::Text(rest.to_owned()),
        Some('t') => Printable::Shown(rest.to_owned(), "time.Duration", Box::new(Printable::Int(1))),
        _ => Printable::Nil,
    }
}
