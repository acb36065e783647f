//! The grammar of a statement, by recursive descent.
//!
//! ```text
//! statement  = editor [ "where" condition ]
//! editor     = name "(" [ value { "," value } ] ")"
//! condition  = term { "or" term }
//! term       = factor { "and" factor }
//! factor     = [ "not" ] ( "(" condition ")" | "true" | "false" | comparison )     a lone boolean value counts as one
//! comparison = value ( "==" | "!=" | "<" | "<=" | ">" | ">=" ) value
//! value      = text | number | "true" | "false" | "nil" | Converter "(" [ values ] ")" | path
//! path       = name { "." name | "[" text "]" | "[" number "]" }
//! ```

use super::lexer::{Token, split};

/// How deep conditions may nest.
const DEEPEST: usize = 50;

/// An editor with its arguments, and when it acts.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Statement {
    pub editor: String,
    pub arguments: Vec<Value>,
    pub condition: Option<Condition>,
}

/// A value as it is written.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Value {
    Nil,
    Boolean(bool),
    Integer(i64),
    Double(f64),
    Text(String),
    Path(Path),
    /// A converter with its arguments.
    Call(String, Vec<Value>),
}

/// A path to a place in the telemetry.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Path {
    /// The names between the points.
    pub names: Vec<String>,
    /// The keys after the last name.
    pub keys: Vec<Key>,
}

/// A key of a map, or a place in a list.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Key {
    Name(String),
    Place(i64),
}

impl Path {
    /// As it would be written.
    pub fn shown(&self) -> String {
        let key = |key: &Key| match key {
            Key::Name(name) => format!("[{name:?}]"),
            Key::Place(place) => format!("[{place}]"),
        };
        self.names.join(".") + &self.keys.iter().map(key).collect::<String>()
    }
}

/// A condition as it is written.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Condition {
    Value(Value),
    Compare(Comparison, Value, Value),
    Not(Box<Condition>),
    And(Vec<Condition>),
    Or(Vec<Condition>),
}

/// How two values are compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Comparison {
    Equal,
    NotEqual,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
}

/// Reads a statement.
pub(super) fn parse(text: &str) -> Result<Statement, String> {
    let tokens = split(text)?;
    let mut parser = Parser { tokens: &tokens, place: 0, depth: 0 };
    let editor = parser.name("a statement begins with an editor, such as `set`")?;
    if !editor.starts_with(|c: char| c.is_ascii_lowercase()) {
        return Err(format!("`{editor}` is no editor: those begin with a small letter"));
    }
    let arguments = parser.arguments(&editor)?;
    let condition = if parser.keyword("where") { Some(parser.condition()?) } else { None };
    match parser.peek() {
        None => Ok(Statement { editor, arguments, condition }),
        Some(token) => Err(format!("unexpected `{}` after the statement", token.shown())),
    }
}

struct Parser<'a> {
    tokens: &'a [Token],
    place: usize,
    depth: usize,
}

impl Parser<'_> {
    fn peek(&self) -> Option<&Token> {
        self.tokens.get(self.place)
    }

    fn next(&mut self) -> Option<Token> {
        let token = self.tokens.get(self.place).cloned();
        self.place += 1;
        token
    }

    fn sign(&mut self, sign: &str) -> bool {
        let found = matches!(self.peek(), Some(Token::Sign(next)) if *next == sign);
        self.place += usize::from(found);
        found
    }

    fn keyword(&mut self, word: &str) -> bool {
        let found = matches!(self.peek(), Some(Token::Name(next)) if next == word);
        self.place += usize::from(found);
        found
    }

    fn expect(&mut self, sign: &str, place: &str) -> Result<(), String> {
        if self.sign(sign) {
            return Ok(());
        }
        Err(format!("expected `{sign}` {place}, found {}", self.found()))
    }

    fn found(&self) -> String {
        self.peek().map_or_else(|| "the end".to_owned(), |token| format!("`{}`", token.shown()))
    }

    fn name(&mut self, otherwise: &str) -> Result<String, String> {
        match self.next() {
            Some(Token::Name(name)) => Ok(name),
            _ => Err(otherwise.to_owned()),
        }
    }

    fn arguments(&mut self, of: &str) -> Result<Vec<Value>, String> {
        self.expect("(", &format!("after `{of}`"))?;
        let mut arguments = Vec::new();
        if self.sign(")") {
            return Ok(arguments);
        }
        loop {
            arguments.push(self.value()?);
            if self.sign(")") {
                return Ok(arguments);
            }
            self.expect(",", &format!("or `)` in the arguments of `{of}`"))?;
        }
    }

    fn value(&mut self) -> Result<Value, String> {
        let found = self.found();
        Ok(match self.next() {
            Some(Token::Text(text)) => Value::Text(text),
            Some(Token::Integer(value)) => Value::Integer(value),
            Some(Token::Double(value)) => Value::Double(value),
            Some(Token::Name(name)) => match name.as_str() {
                "nil" => Value::Nil,
                "true" => Value::Boolean(true),
                "false" => Value::Boolean(false),
                "and" | "or" | "not" | "where" => return Err(format!("expected a value, found {found}")),
                _ if matches!(self.peek(), Some(Token::Sign("("))) => {
                    self.depth += 1;
                    if self.depth > DEEPEST {
                        return Err("it is nested too deeply".to_owned());
                    }
                    let arguments = self.arguments(&name)?;
                    self.depth -= 1;
                    Value::Call(name, arguments)
                }
                _ => Value::Path(self.path(name)?),
            },
            _ => return Err(format!("expected a value, found {found}")),
        })
    }

    fn path(&mut self, first: String) -> Result<Path, String> {
        let mut path = Path { names: vec![first], keys: Vec::new() };
        loop {
            if path.keys.is_empty() && self.sign(".") {
                path.names.push(self.name("expected a name after `.`")?);
            } else if self.sign("[") {
                let found = self.found();
                path.keys.push(match self.next() {
                    Some(Token::Text(name)) => Key::Name(name),
                    Some(Token::Integer(place)) => Key::Place(place),
                    _ => return Err(format!("expected a key in quotes or a number, found {found}")),
                });
                self.expect("]", "after the key")?;
            } else {
                return Ok(path);
            }
        }
    }

    fn condition(&mut self) -> Result<Condition, String> {
        let mut terms = vec![self.term()?];
        while self.keyword("or") {
            terms.push(self.term()?);
        }
        Ok(if terms.len() == 1 { terms.remove(0) } else { Condition::Or(terms) })
    }

    fn term(&mut self) -> Result<Condition, String> {
        let mut factors = vec![self.factor()?];
        while self.keyword("and") {
            factors.push(self.factor()?);
        }
        Ok(if factors.len() == 1 { factors.remove(0) } else { Condition::And(factors) })
    }

    fn factor(&mut self) -> Result<Condition, String> {
        self.depth += 1;
        if self.depth > DEEPEST {
            return Err("it is nested too deeply".to_owned());
        }
        let factor = if self.keyword("not") {
            Condition::Not(Box::new(self.factor()?))
        } else if self.sign("(") {
            let inner = self.condition()?;
            self.expect(")", "after the condition")?;
            inner
        } else {
            let left = self.value()?;
            match self.comparison() {
                Some(comparison) => Condition::Compare(comparison, left, self.value()?),
                None => Condition::Value(left),
            }
        };
        self.depth -= 1;
        Ok(factor)
    }

    fn comparison(&mut self) -> Option<Comparison> {
        let comparison = match self.peek()? {
            Token::Sign("==") => Comparison::Equal,
            Token::Sign("!=") => Comparison::NotEqual,
            Token::Sign("<") => Comparison::Less,
            Token::Sign("<=") => Comparison::LessOrEqual,
            Token::Sign(">") => Comparison::Greater,
            Token::Sign(">=") => Comparison::GreaterOrEqual,
            _ => return None,
        };
        self.place += 1;
        Some(comparison)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_statements_of_the_shipped_policy() {
        let statement = parse(
            r#"set(resource.attributes["a.b"], resource.attributes["c"]) where resource.attributes["a.b"] == nil and resource.attributes["c"] != nil"#,
        )
        .expect("parses");
        let attribute = |key: &str| {
            let names = vec!["resource".to_owned(), "attributes".to_owned()];
            Value::Path(Path { names, keys: vec![Key::Name(key.to_owned())] })
        };
        assert_eq!(statement.editor, "set");
        assert_eq!(statement.arguments, [attribute("a.b"), attribute("c")]);
        let both = vec![
            Condition::Compare(Comparison::Equal, attribute("a.b"), Value::Nil),
            Condition::Compare(Comparison::NotEqual, attribute("c"), Value::Nil),
        ];
        assert_eq!(statement.condition, Some(Condition::And(both)));
        let rename = parse(r#"replace_pattern(metric.name, "^([^:]+):(.+)$", "${1}_${2}")"#).expect("parses");
        assert_eq!(rename.arguments[2], Value::Text("${1}_${2}".to_owned()));
    }

    #[test]
    fn precedence_and_parentheses() {
        let parsed = parse("f() where not a == 1 or (b == 2 or true) and c").expect("parses").condition;
        let shown = format!("{parsed:?}");
        assert!(shown.starts_with("Some(Or([Not(Compare(Equal"), "{shown}");
        assert!(shown.contains("And([Or(["), "{shown}");
    }

    #[test]
    fn what_is_no_statement() {
        for (wrong, word) in [
            (r#"set(attributes["a"] 1)"#, "expected `,`"),
            ("set(a, 1", "expected `,`"),
            ("set(a, 1) where", "expected a value, found the end"),
            ("set(a, 1) extra", "unexpected `extra`"),
            ("Set(a)", "no editor"),
            ("", "begins with an editor"),
            ("set(a[b], 1)", "key in quotes"),
            ("set(, 1)", "expected a value"),
        ] {
            let message = parse(wrong).expect_err(wrong);
            assert!(message.contains(word), "{wrong}: {message}");
        }
        assert!(parse(&format!("f() where {}true", "not ".repeat(10_000))).is_err());
    }
}
