//! Going through the words of a statement.

use super::super::Fault;
use super::super::lexer::{Token, split};

/// How deep things may nest.
const DEEPEST: usize = 50;

/// How many calculations a statement may have: each is one level deeper for whoever carries them out.
const MOST_CALCULATIONS: usize = 200;

/// The words, and how far they are read.
pub(super) struct Parser {
    pub tokens: Vec<(Token, usize)>,
    /// Where the text ends.
    end: usize,
    pub place: usize,
    depth: usize,
    calculations: usize,
}

impl Parser {
    pub fn new(text: &str) -> Result<Self, Fault> {
        Ok(Self { tokens: split(text)?, end: text.len(), place: 0, depth: 0, calculations: 0 })
    }

    pub fn peek(&self) -> Option<&Token> {
        self.tokens.get(self.place).map(|(token, _)| token)
    }

    /// Where the next word begins.
    pub fn at(&self) -> usize {
        self.tokens.get(self.place).map_or(self.end, |(_, at)| *at)
    }

    pub fn next(&mut self) -> Option<Token> {
        let token = self.peek().cloned();
        self.place += 1;
        token
    }

    pub fn sign(&mut self, sign: &str) -> bool {
        let found = matches!(self.peek(), Some(Token::Sign(next)) if *next == sign);
        self.place += usize::from(found);
        found
    }

    pub fn keyword(&mut self, word: &str) -> bool {
        let found = matches!(self.peek(), Some(Token::Name(next)) if next == word);
        self.place += usize::from(found);
        found
    }

    pub fn fault<T>(&self, what: impl Into<String>) -> Result<T, Fault> {
        Err(Fault::new(self.at(), what))
    }

    /// Counts one.
    pub fn calculation(&mut self) -> Result<(), Fault> {
        self.calculations += 1;
        if self.calculations > MOST_CALCULATIONS {
            return self.fault(format!("more than {MOST_CALCULATIONS} calculations in one statement"));
        }
        Ok(())
    }

    pub fn expect(&mut self, sign: &str, place: &str) -> Result<(), Fault> {
        if self.sign(sign) {
            return Ok(());
        }
        self.fault(format!("expected `{sign}` {place}, found {}", self.found()))
    }

    pub fn found(&self) -> String {
        self.peek().map_or_else(|| "the end".to_owned(), |token| format!("`{}`", token.shown()))
    }

    pub fn end(&self) -> Result<(), Fault> {
        if self.peek().is_none() { Ok(()) } else { self.fault(format!("unexpected {}", self.found())) }
    }

    /// Runs `read` one level deeper.
    pub fn deeper<T>(&mut self, read: impl FnOnce(&mut Self) -> Result<T, Fault>) -> Result<T, Fault> {
        if self.depth >= DEEPEST {
            return self.fault("it is nested too deeply");
        }
        self.depth += 1;
        let result = read(self);
        self.depth -= 1;
        result
    }
}
