//! The grammar, by recursive descent.
//!
//! ```text
//! statement  = call [ "where" condition ]                      the call's name begins with a small letter
//! condition  = term { "or" term }
//! term       = factor { "and" factor }
//! factor     = [ "not" ] ( comparison | "true" | "false" | converter | "(" condition ")" )
//! comparison = value ( "==" | "!=" | "<" | "<=" | ">" | ">=" ) value
//! value      = "nil" | "true" | "false" | text | bytes | WORD | list | map | sum
//! sum        = product { ( "+" | "-" ) product }
//! product    = unit { ( "*" | "/" ) unit }
//! unit       = [ "+" | "-" ] ( number | path | converter | "(" sum ")" )
//! converter  = Name "(" [ arguments ] ")" { key }              the name begins with a capital letter
//! arguments  = [ name "=" ] value { "," [ name "=" ] value }
//! path       = name { key } { "." name { key } }
//! key        = "[" ( text | number | sum ) "]"
//! list       = "[" [ value { "," value } ] "]"
//! map        = "{" { text ":" value [ "," ] } "}"
//! ```

use super::Fault;
use super::lexer::{Token, split};
use super::syntax::{Argument, Call, Comparison, Condition, Key, Operator, Path, Statement, Value};

/// How deep things may nest.
const DEEPEST: usize = 50;

/// Reads a statement.
pub(super) fn statement(text: &str) -> Result<Statement, Fault> {
    let mut parser = Parser::new(text)?;
    let editor = parser.call("a statement begins with an editor, such as `set`")?;
    if !editor.name.starts_with(|c: char| c.is_ascii_lowercase()) {
        return Err(Fault::new(editor.at, format!("`{}` is no editor: those begin with a small letter", editor.name)));
    }
    if !editor.keys.is_empty() {
        return Err(Fault::new(editor.at, format!("`{}` gives no value that could have keys", editor.name)));
    }
    let condition = if parser.keyword("where") { Some(parser.condition()?) } else { None };
    parser.end()?;
    Ok(Statement { editor, condition })
}

/// Reads a condition.
pub(super) fn condition(text: &str) -> Result<Condition, Fault> {
    let mut parser = Parser::new(text)?;
    let condition = parser.condition()?;
    parser.end()?;
    Ok(condition)
}

struct Parser {
    tokens: Vec<(Token, usize)>,
    /// Where the text ends.
    end: usize,
    place: usize,
    depth: usize,
}

impl Parser {
    fn new(text: &str) -> Result<Self, Fault> {
        Ok(Self { tokens: split(text)?, end: text.len(), place: 0, depth: 0 })
    }

    fn peek(&self) -> Option<&Token> {
        self.tokens.get(self.place).map(|(token, _)| token)
    }

    /// Where the next word begins.
    fn at(&self) -> usize {
        self.tokens.get(self.place).map_or(self.end, |(_, at)| *at)
    }

    fn next(&mut self) -> Option<Token> {
        let token = self.peek().cloned();
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

    fn fault<T>(&self, what: impl Into<String>) -> Result<T, Fault> {
        Err(Fault::new(self.at(), what))
    }

    fn expect(&mut self, sign: &str, place: &str) -> Result<(), Fault> {
        if self.sign(sign) {
            return Ok(());
        }
        self.fault(format!("expected `{sign}` {place}, found {}", self.found()))
    }

    fn found(&self) -> String {
        self.peek().map_or_else(|| "the end".to_owned(), |token| format!("`{}`", token.shown()))
    }

    fn end(&self) -> Result<(), Fault> {
        if self.peek().is_none() { Ok(()) } else { self.fault(format!("unexpected {}", self.found())) }
    }

    /// Runs `read` one level deeper.
    fn deeper<T>(&mut self, read: impl FnOnce(&mut Self) -> Result<T, Fault>) -> Result<T, Fault> {
        if self.depth >= DEEPEST {
            return self.fault("it is nested too deeply");
        }
        self.depth += 1;
        let result = read(self);
        self.depth -= 1;
        result
    }

    /// A name that is followed by arguments.
    fn call(&mut self, otherwise: &str) -> Result<Call, Fault> {
        let at = self.at();
        match self.next() {
            Some(Token::Name(name)) => self.call_of(name, at),
            _ => Err(Fault::new(at, otherwise)),
        }
    }

    fn call_of(&mut self, name: String, at: usize) -> Result<Call, Fault> {
        self.expect("(", &format!("after `{name}`"))?;
        let mut arguments = Vec::new();
        while !self.sign(")") {
            if !arguments.is_empty() {
                self.expect(",", &format!("or `)` in the arguments of `{name}`"))?;
            }
            arguments.push(self.deeper(Self::argument)?);
        }
        let keys = self.keys()?;
        Ok(Call { name, at, arguments, keys })
    }

    fn argument(&mut self) -> Result<Argument, Fault> {
        let at = self.at();
        let named = matches!(self.tokens.get(self.place + 1), Some((Token::Sign("="), _)));
        let name = match self.peek() {
            Some(Token::Name(name)) if named => Some(name.clone()),
            _ => None,
        };
        if name.is_some() {
            self.place += 2;
        }
        Ok(Argument { name, value: self.value()?, at })
    }

    fn value(&mut self) -> Result<Value, Fault> {
        if self.is_lambda() {
            return self.fault("functions written in place (`(x) => ...`) are not supported by this collector");
        }
        let at = self.at();
        let value = match self.peek() {
            Some(Token::Text(text)) => Value::Text(text.clone()),
            Some(Token::Bytes(bytes)) => Value::Bytes(bytes.clone()),
            Some(Token::Name(name)) => match name.as_str() {
                "nil" => Value::Nil,
                "true" => Value::Boolean(true),
                "false" => Value::Boolean(false),
                _ if name.starts_with(|c: char| c.is_ascii_uppercase()) && !self.is_call() => {
                    Value::Word(name.clone(), at)
                }
                _ => return self.sum(),
            },
            Some(Token::Sign("[")) => return self.deeper(Self::list),
            Some(Token::Sign("{")) => return self.deeper(Self::map),
            _ => return self.sum(),
        };
        self.place += 1;
        Ok(value)
    }

    fn is_call(&self) -> bool {
        matches!(self.tokens.get(self.place + 1), Some((Token::Sign("("), _)))
    }

    /// `(a, b) =>` begins here.
    fn is_lambda(&self) -> bool {
        let rest = self.tokens.get(self.place..).unwrap_or_default();
        let [(Token::Sign("("), _), inner @ ..] = rest else { return false };
        let parameters = |(token, _): &&(Token, usize)| matches!(token, Token::Name(_) | Token::Sign(","));
        let length = inner.iter().take_while(parameters).count();
        matches!(inner.get(length..), Some([(Token::Sign(")"), _), (Token::Sign("=>"), _), ..]))
    }

    fn list(&mut self) -> Result<Value, Fault> {
        self.place += 1;
        let mut values = Vec::new();
        while !self.sign("]") {
            if !values.is_empty() {
                self.expect(",", "or `]` in the list")?;
            }
            values.push(self.value()?);
        }
        Ok(Value::List(values))
    }

    fn map(&mut self) -> Result<Value, Fault> {
        self.place += 1;
        let mut entries = Vec::new();
        while !self.sign("}") {
            let Some(Token::Text(key)) = self.peek() else {
                return self.fault(format!("expected a key in quotes or `}}`, found {}", self.found()));
            };
            let key = key.clone();
            self.place += 1;
            self.expect(":", "after the key")?;
            entries.push((key, self.value()?));
            self.sign(",");
        }
        Ok(Value::Map(entries))
    }

    fn sum(&mut self) -> Result<Value, Fault> {
        let mut left = self.product()?;
        loop {
            let operator = if self.sign("+") {
                Operator::Add
            } else if self.sign("-") {
                Operator::Subtract
            } else {
                return Ok(left);
            };
            left = Value::Math(operator, Box::new(left), Box::new(self.product()?));
        }
    }

    fn product(&mut self) -> Result<Value, Fault> {
        let mut left = self.unit()?;
        loop {
            let operator = if self.sign("*") {
                Operator::Multiply
            } else if self.sign("/") {
                Operator::Divide
            } else {
                return Ok(left);
            };
            left = Value::Math(operator, Box::new(left), Box::new(self.unit()?));
        }
    }

    fn unit(&mut self) -> Result<Value, Fault> {
        if self.sign("-") {
            return Ok(match self.operand()? {
                Value::Integer(value) => Value::Integer(-value),
                Value::Double(value) => Value::Double(-value),
                value => Value::Negative(Box::new(value)),
            });
        }
        self.sign("+");
        self.operand()
    }

    fn operand(&mut self) -> Result<Value, Fault> {
        if self.sign("(") {
            let inner = self.deeper(Self::sum)?;
            self.expect(")", "after the value")?;
            return Ok(inner);
        }
        let (at, found) = (self.at(), self.found());
        Ok(match self.next() {
            Some(Token::Integer(value)) => Value::Integer(value),
            Some(Token::Double(value)) => Value::Double(value),
            Some(Token::Name(name)) => match name.as_str() {
                "and" | "or" | "not" | "where" | "nil" | "true" | "false" => {
                    return Err(Fault::new(at, format!("expected a value, found {found}")));
                }
                _ if matches!(self.peek(), Some(Token::Sign("("))) => {
                    if name.starts_with(|c: char| c.is_ascii_lowercase()) {
                        let what = format!("`{name}` is no converter: those begin with a capital letter");
                        return Err(Fault::new(at, what));
                    }
                    Value::Call(self.call_of(name, at)?)
                }
                _ => Value::Path(self.path(name, at)?),
            },
            _ => return Err(Fault::new(at, format!("expected a value, found {found}"))),
        })
    }

    fn path(&mut self, first: String, at: usize) -> Result<Path, Fault> {
        let mut names = vec![(first, self.keys()?)];
        while self.sign(".") {
            let Some(Token::Name(name)) = self.peek().cloned() else {
                return self.fault(format!("expected a name after `.`, found {}", self.found()));
            };
            self.place += 1;
            names.push((name, self.keys()?));
        }
        let small = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_';
        if let Some((name, _)) = names.iter().find(|(name, _)| !name.chars().all(small)) {
            return Err(Fault::new(at, format!("`{name}` is no name of a path: those have small letters only")));
        }
        Ok(Path { names, at })
    }

    fn keys(&mut self) -> Result<Vec<Key>, Fault> {
        let mut keys = Vec::new();
        while self.sign("[") {
            let key = match (self.peek(), self.tokens.get(self.place + 1)) {
                (Some(Token::Text(name)), _) => Some(Key::Name(name.clone())),
                (Some(Token::Integer(place)), Some((Token::Sign("]"), _))) => Some(Key::Place(*place)),
                _ => None,
            };
            if let Some(key) = key {
                keys.push(key);
                self.place += 1;
            } else {
                keys.push(Key::Value(Box::new(self.deeper(Self::sum)?)));
            }
            self.expect("]", "after the key")?;
        }
        Ok(keys)
    }

    fn condition(&mut self) -> Result<Condition, Fault> {
        let mut terms = vec![self.term()?];
        while self.keyword("or") {
            terms.push(self.term()?);
        }
        Ok(if terms.len() == 1 { terms.remove(0) } else { Condition::Or(terms) })
    }

    fn term(&mut self) -> Result<Condition, Fault> {
        let mut factors = vec![self.factor()?];
        while self.keyword("and") {
            factors.push(self.factor()?);
        }
        Ok(if factors.len() == 1 { factors.remove(0) } else { Condition::And(factors) })
    }

    fn factor(&mut self) -> Result<Condition, Fault> {
        let not = self.keyword("not");
        let inner = self.deeper(Self::comparison_or_more)?;
        Ok(if not { Condition::Not(Box::new(inner)) } else { inner })
    }

    fn comparison_or_more(&mut self) -> Result<Condition, Fault> {
        let start = self.place;
        // A parenthesis may hold a value that is compared, or a condition: the first that fits.
        let compared = self.comparison();
        let stopped = match compared {
            Ok(condition) => return Ok(condition),
            Err(fault) => fault,
        };
        self.place = start;
        let at = self.at();
        if self.sign("(") {
            let inner = self.condition()?;
            self.expect(")", "after the condition")?;
            return Ok(inner);
        }
        match self.next() {
            Some(Token::Name(name)) if name == "true" || name == "false" => Ok(Condition::Literal(name == "true")),
            Some(Token::Name(name)) if name.starts_with(|c: char| c.is_ascii_uppercase()) => {
                if matches!(self.peek(), Some(Token::Sign("("))) {
                    Ok(Condition::Call(self.call_of(name, at)?))
                } else {
                    Err(stopped)
                }
            }
            _ => Err(stopped),
        }
    }

    fn comparison(&mut self) -> Result<Condition, Fault> {
        let left = self.value()?;
        let comparison = match self.peek() {
            Some(Token::Sign("==")) => Comparison::Equal,
            Some(Token::Sign("!=")) => Comparison::NotEqual,
            Some(Token::Sign("<")) => Comparison::Less,
            Some(Token::Sign("<=")) => Comparison::LessOrEqual,
            Some(Token::Sign(">")) => Comparison::Greater,
            Some(Token::Sign(">=")) => Comparison::GreaterOrEqual,
            _ => {
                let what = format!("a condition compares two values, such as `... == true`; found {}", self.found());
                return self.fault(what);
            }
        };
        self.place += 1;
        Ok(Condition::Compare(comparison, left, self.value()?))
    }
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
            ("Set(a)", "no editor", 0),
            ("", "begins with an editor", 0),
            ("set(, 1)", "expected a value", 4),
            ("set(a, lower(b))", "no converter", 7),
            ("set(a, 1)[0]", "keys", 0),
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
