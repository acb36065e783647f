//! Values, and functions with their arguments.

use super::super::Fault;
use super::super::lexer::Token;
use super::super::syntax::{Argument, Call, Key, Operator, Path, Value};
use super::reader::Parser;

impl Parser {
    /// A name that is followed by arguments.
    pub fn call(&mut self, otherwise: &str) -> Result<Call, Fault> {
        let at = self.at();
        match self.next() {
            Some(Token::Name(name)) => self.call_of(name, at),
            _ => Err(Fault::new(at, otherwise)),
        }
    }

    pub fn call_of(&mut self, name: String, at: usize) -> Result<Call, Fault> {
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
            Some(Token::Name(name)) if named && name.starts_with(|c: char| c.is_ascii_lowercase()) => {
                Some(name.clone())
            }
            _ => None,
        };
        if name.is_some() {
            self.place += 2;
        }
        Ok(Argument { name, value: self.value()?, at })
    }

    pub fn value(&mut self) -> Result<Value, Fault> {
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
        self.chain([("+", Operator::Add), ("-", Operator::Subtract)], Self::product)
    }

    fn product(&mut self) -> Result<Value, Fault> {
        self.chain([("*", Operator::Multiply), ("/", Operator::Divide)], Self::unit)
    }

    /// Operands with operators of one rank between them, from left to right.
    fn chain(
        &mut self,
        operators: [(&'static str, Operator); 2],
        operand: fn(&mut Self) -> Result<Value, Fault>,
    ) -> Result<Value, Fault> {
        let mut left = operand(self)?;
        while let Some((_, operator)) = operators.into_iter().find(|(sign, _)| self.sign(sign)) {
            self.calculation()?;
            left = Value::Math(operator, Box::new(left), Box::new(operand(self)?));
        }
        Ok(left)
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
                _ if matches!(self.peek(), Some(Token::Sign("("))) => Value::Call(self.call_of(name, at)?),
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
}
