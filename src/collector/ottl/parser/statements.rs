//! Whole statements and conditions.

use super::super::Fault;
use super::super::syntax::{Condition, Statement};
use super::reader::Parser;

/// Reads a statement.
pub(in super::super) fn statement(text: &str) -> Result<Statement, Fault> {
    let mut parser = Parser::new(text)?;
    let editor = parser.call("a statement begins with an editor, such as `set`")?;
    let condition = if parser.keyword("where") { Some(parser.condition()?) } else { None };
    parser.end()?;
    Ok(Statement { editor, condition })
}

/// Reads a condition.
pub(in super::super) fn condition(text: &str) -> Result<Condition, Fault> {
    let mut parser = Parser::new(text)?;
    let condition = parser.condition()?;
    parser.end()?;
    Ok(condition)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(text: &str) -> String {
        format!("{:?}", condition(text).expect(text))
    }

    #[test]
    fn precedence_and_parentheses() {
        let text = shown("not a == 1 or (b == 2 or true) and IsString(c)");
        assert!(text.starts_with("Or([Not(Compare(Equal") && text.contains("And([Or(["), "{text}");
        assert!(shown("(a + 1) * 2 == 4").starts_with("Compare(Equal, Math(Multiply, Math(Add"));
        assert!(shown("((a) == (b))").starts_with("Compare("));
        assert!(
            shown("1 - 2 - 3 == -4").contains("Math(Subtract, Math(Subtract, Integer(1), Integer(2)), Integer(3))")
        );
        assert!(shown("-a == -1.5").contains("Negative(Path"));
    }

    #[test]
    fn all_kinds_of_values() {
        let parsed = statement(
            r#"set(a["k"][0].b[x["y"]], Concat(vals=[nil, true, 1.5, "t", 0x0a, KIND_X, {"a": 1, "b": [2]}], delimiter = ""))"#,
        );
        let shown = format!("{:?}", parsed.expect("parses"));
        for part in
            ["Name(\"k\")", "Place(0)", "Value(Path", "Some(\"vals\")", "Bytes([10])", "Word(\"KIND_X\"", "Map([(\"a\""]
        {
            assert!(shown.contains(part), "{part}: {shown}");
        }
    }

    #[test]
    fn what_is_no_statement_and_where() {
        for (wrong, word, at) in [
            (r#"set(attributes["a"] 1)"#, "expected `,`", 20),
            ("set(a, 1", "expected `,`", 8),
            ("set(a, 1) where", "expected a value, found the end", 15),
            ("set(a, 1) extra", "unexpected `extra`", 10),
            ("", "begins with an editor", 0),
            ("set(, 1)", "expected a value", 4),
            ("set(a.B, 1)", "small letters", 4),
            ("set(a, b) where c", "compares two values", 17),
            ("set(a, b) where not not true", "expected a value", 20),
            ("set(a, (x) => x)", "written in place", 7),
            ("set(a, b) where (c == 1", "expected `)`", 23),
        ] {
            let fault = statement(wrong).expect_err(wrong);
            assert!(fault.what.contains(word) && fault.at == at, "{wrong}: {fault:?}");
        }
        assert!(condition("a = 1").is_err());
        for deep in ["not (", "(", "a[", "F("] {
            assert!(condition(&deep.repeat(10_000)).is_err(), "{deep}");
        }
    }
}
