//! Conditions.

use super::super::Fault;
use super::super::lexer::Token;
use super::super::syntax::{Comparison, Condition};
use super::reader::Parser;

impl Parser {
    pub fn condition(&mut self) -> Result<Condition, Fault> {
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
