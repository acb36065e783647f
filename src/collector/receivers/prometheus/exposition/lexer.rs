//! Tokens of an exposition page, for both dialects.
//!
//! A lexer is a position and a state: what a byte means depends on where in a line it stands. The two dialects share
//! the tokens; what differs is where blanks and comments may stand. Text 0.0.4 allows blanks anywhere between tokens
//! and ends with a line break even where the page has none; OpenMetrics counts every blank.

/// The two text formats that a target may answer with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dialect {
    /// The Prometheus text format, version 0.0.4 (and 1.0.0, which adds quoted names).
    Text,
    /// OpenMetrics text, version 1.0.0.
    OpenMetrics,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Token {
    Invalid,
    End,
    EndWord,
    LineBreak,
    Comment,
    Help,
    Type,
    Unit,
    Text,
    MetricName,
    BraceOpen,
    BraceClose,
    LabelName,
    Quoted,
    LabelValue,
    Equal,
    Comma,
    Value,
    Timestamp,
}

impl Token {
    /// The token in an error message.
    pub(super) fn describe(self) -> &'static str {
        match self {
            Self::Invalid => "an unexpected character",
            Self::End => "the end of the page",
            Self::EndWord => "`# EOF`",
            Self::LineBreak => "the end of the line",
            Self::Comment => "a comment",
            Self::Help => "HELP",
            Self::Type => "TYPE",
            Self::Unit => "UNIT",
            Self::Text => "text",
            Self::MetricName => "a metric name",
            Self::BraceOpen => "`{`",
            Self::BraceClose => "`}`",
            Self::LabelName => "a label name",
            Self::Quoted => "a quoted name",
            Self::LabelValue => "a label value",
            Self::Equal => "`=`",
            Self::Comma => "`,`",
            Self::Value => "a value",
            Self::Timestamp => "a timestamp",
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    LineStart,
    Comment,
    MetadataName,
    MetadataText,
    Labels,
    LabelValue,
    Value,
    Timestamp,
    Exemplar,
    ExemplarValue,
    ExemplarTimestamp,
}

/// The lexer of one page.
#[derive(Clone, Debug)]
pub(super) struct Lexer<'a> {
    page: &'a [u8],
    dialect: Dialect,
    state: State,
    /// Where the last token starts.
    pub(super) start: usize,
    /// Where the last token ends, and the next begins.
    pub(super) end: usize,
}

impl<'a> Lexer<'a> {
    pub(super) fn new(page: &'a [u8], dialect: Dialect) -> Self {
        Self { page, dialect, state: State::LineStart, start: 0, end: 0 }
    }

    /// The bytes from `from` to `to`, cut to the page: the line break that text 0.0.4 adds is in no slice.
    pub(super) fn slice(&self, from: usize, to: usize) -> &'a [u8] {
        let to = to.min(self.page.len());
        self.page.get(from.min(to)..to).unwrap_or_default()
    }

    /// The bytes of the last token.
    pub(super) fn token_text(&self) -> &'a [u8] {
        self.slice(self.start, self.end)
    }

    /// Which line (counted from 1) a position is in.
    pub(super) fn line_of(&self, position: usize) -> usize {
        self.slice(0, position).split(|byte| *byte == b'\n').count()
    }

    pub(super) fn next_token(&mut self) -> Token {
        match self.dialect {
            Dialect::Text => self.next_of_text(),
            Dialect::OpenMetrics => self.next_of_openmetrics(),
        }
    }

    /// The byte at a position. Text 0.0.4 always ends with a line break, be it in the page or not.
    fn byte(&self, at: usize) -> Option<u8> {
        match self.page.get(at) {
            Some(byte) => Some(*byte),
            None if at == self.page.len() && self.dialect == Dialect::Text => Some(b'\n'),
            None => None,
        }
    }

    /// Ends the token before `end`.
    fn take(&mut self, end: usize, state: State, token: Token) -> Token {
        self.end = end;
        self.state = state;
        token
    }

    /// The end of the run of bytes that `belongs` accepts.
    fn run(&self, from: usize, belongs: impl Fn(u8) -> bool) -> usize {
        let mut at = from;
        while self.page.get(at).copied().is_some_and(&belongs) {
            at += 1;
        }
        at
    }

    fn is(&self, at: usize, word: &[u8]) -> bool {
        self.page.get(at..).is_some_and(|rest| rest.starts_with(word))
    }

    /// The end of a string in double quotes that starts at `from`; `None` if it is never closed or holds what it may
    /// not.
    fn quoted(&self, from: usize, line_break: bool, nul: bool) -> Option<usize> {
        let allowed = |byte: u8| (line_break || byte != b'\n') && (nul || byte != 0);
        let mut at = from + 1;
        loop {
            match self.byte(at)? {
                b'"' => return Some(at + 1),
                b'\\' => match self.byte(at + 1)? {
                    b'\n' => return None,
                    0 if !nul => return None,
                    _ => at += 2,
                },
                byte if allowed(byte) => at += 1,
                _ => return None,
            }
        }
    }

    fn quoted_token(&mut self, line_break: bool, nul: bool, state: State, token: Token) -> Token {
        match self.quoted(self.start, line_break, nul) {
            Some(end) => self.take(end, state, token),
            None => Token::Invalid,
        }
    }

    fn next_of_text(&mut self) -> Token {
        loop {
            self.start = self.end;
            let Some(byte) = self.byte(self.start) else { return Token::End };
            if matches!(byte, b' ' | b'\t') && self.state != State::MetadataText {
                self.end = self.run(self.start, is_blank);
                continue;
            }
            return match self.state {
                State::LineStart => match byte {
                    b'\n' => self.take(self.start + 1, State::LineStart, Token::LineBreak),
                    b'#' => {
                        let after = self.run(self.start + 1, is_blank);
                        let is_comment = after == self.start + 1;
                        self.end = after;
                        if is_comment {
                            return self.rest_of_comment(false);
                        }
                        self.state = State::Comment;
                        continue;
                    }
                    0 => Token::End,
                    b'{' => self.take(self.start + 1, State::Labels, Token::BraceOpen),
                    byte if starts_metric_name(byte) => {
                        let end = self.run(self.start, in_metric_name);
                        self.take(end, State::Value, Token::MetricName)
                    }
                    _ => Token::Invalid,
                },
                State::Comment => match self.keyword() {
                    Some((token, end)) => self.take(end, State::MetadataName, token),
                    None => self.rest_of_comment(true),
                },
                State::MetadataName => self.metadata_name(byte),
                State::MetadataText => {
                    let end = self.run(self.start, |byte| byte != b'\n');
                    let blanks = self.run(self.start, is_blank);
                    if blanks == end {
                        self.start = end;
                    }
                    self.take(end, State::LineStart, Token::Text)
                }
                State::Labels => self.in_labels(byte, State::Labels, true),
                State::LabelValue if byte == b'"' => self.quoted_token(true, true, State::Labels, Token::LabelValue),
                State::Value => {
                    if byte == b'{' {
                        return self.take(self.start + 1, State::Labels, Token::BraceOpen);
                    }
                    let end = self.run(self.start, |byte| !matches!(byte, b'{' | b' ' | b'\t' | b'\n' | 0));
                    if end == self.start {
                        return Token::Invalid;
                    }
                    self.take(end, State::Timestamp, Token::Value)
                }
                State::Timestamp if byte == b'\n' => self.take(self.start + 1, State::LineStart, Token::LineBreak),
                State::Timestamp if byte.is_ascii_digit() => {
                    let end = self.run(self.start, |byte| byte.is_ascii_digit());
                    self.take(end, State::Timestamp, Token::Timestamp)
                }
                _ => Token::Invalid,
            };
        }
    }

    /// `HELP` or `TYPE` with the blanks after it.
    fn keyword(&self) -> Option<(Token, usize)> {
        [(b"HELP", Token::Help), (b"TYPE", Token::Type)].into_iter().find_map(|(word, token)| {
            let after = self.start + word.len();
            let end = self.run(after, is_blank);
            (self.is(self.start, word) && end > after).then_some((token, end))
        })
    }

    /// Everything up to the line break. A NUL ends the page where the comment is no `# ` one.
    fn rest_of_comment(&mut self, nul: bool) -> Token {
        self.end = self.run(self.end, |byte| byte != b'\n' && (nul || byte != 0));
        if self.byte(self.end) == Some(b'\n') {
            self.state = State::LineStart;
            Token::Comment
        } else {
            Token::End
        }
    }

    fn metadata_name(&mut self, byte: u8) -> Token {
        if byte == b'"' {
            return self.quoted_token(true, false, State::MetadataText, Token::MetricName);
        }
        if !starts_metric_name(byte) {
            return Token::Invalid;
        }
        let end = self.run(self.start, in_metric_name);
        self.take(end, State::MetadataText, Token::MetricName)
    }

    /// Inside braces, of a sample or of an exemplar.
    fn in_labels(&mut self, byte: u8, state: State, quoted_line_break: bool) -> Token {
        let exemplar = state == State::Exemplar;
        let (after_brace, after_equal) =
            if exemplar { (State::ExemplarValue, State::ExemplarValue) } else { (State::Value, State::LabelValue) };
        match byte {
            b'"' => self.quoted_token(quoted_line_break, false, state, Token::Quoted),
            b'}' => self.take(self.start + 1, after_brace, Token::BraceClose),
            b'=' => self.take(self.start + 1, after_equal, Token::Equal),
            b',' => self.take(self.start + 1, state, Token::Comma),
            byte if starts_label_name(byte) => {
                let end = self.run(self.start, in_label_name);
                self.take(end, state, Token::LabelName)
            }
            _ => Token::Invalid,
        }
    }

    fn next_of_openmetrics(&mut self) -> Token {
        self.start = self.end;
        let Some(byte) = self.byte(self.start) else { return Token::End };
        match self.state {
            State::LineStart => match byte {
                b'#' if self.byte(self.start + 1) == Some(b' ') => self.openmetrics_keyword(),
                b'{' => self.take(self.start + 1, State::Labels, Token::BraceOpen),
                byte if starts_metric_name(byte) => {
                    let end = self.run(self.start, in_metric_name);
                    self.take(end, State::Value, Token::MetricName)
                }
                _ => Token::Invalid,
            },
            State::MetadataName => self.metadata_name(byte),
            State::MetadataText => {
                let end = self.run(self.start, |byte| byte != b'\n');
                if byte == b' ' && self.byte(end) == Some(b'\n') {
                    self.take(end + 1, State::LineStart, Token::Text)
                } else {
                    Token::Invalid
                }
            }
            State::Labels => self.in_labels(byte, State::Labels, true),
            State::LabelValue if byte == b'"' => self.quoted_token(false, true, State::Labels, Token::LabelValue),
            State::Value if byte == b'{' => self.take(self.start + 1, State::Labels, Token::BraceOpen),
            State::Value => self.blank_and_word(State::Timestamp, Token::Value),
            State::Timestamp | State::ExemplarTimestamp if byte == b'\n' => {
                self.take(self.start + 1, State::LineStart, Token::LineBreak)
            }
            State::Timestamp if self.is(self.start, b" # {") => {
                self.take(self.start + 4, State::Exemplar, Token::Comment)
            }
            // Not an exemplar after all, and no timestamp either.
            State::Timestamp if self.is(self.start, b" # ") => Token::Invalid,
            State::Timestamp => self.blank_and_word(State::Timestamp, Token::Timestamp),
            State::Exemplar => self.in_labels(byte, State::Exemplar, false),
            State::ExemplarValue if byte == b'"' => self.quoted_token(false, false, State::Exemplar, Token::LabelValue),
            State::ExemplarValue => self.blank_and_word(State::ExemplarTimestamp, Token::Value),
            State::ExemplarTimestamp => self.blank_and_word(State::ExemplarTimestamp, Token::Timestamp),
            State::Comment | State::LabelValue => Token::Invalid,
        }
    }

    /// `# HELP `, `# TYPE `, `# UNIT ` or `# EOF`: OpenMetrics has no other comments.
    fn openmetrics_keyword(&mut self) -> Token {
        let word = self.start + 2;
        for (text, token) in [(&b"HELP "[..], Token::Help), (&b"TYPE "[..], Token::Type), (&b"UNIT "[..], Token::Unit)]
        {
            if self.is(word, text) {
                return self.take(word + text.len(), State::MetadataName, token);
            }
        }
        if self.is(word, b"EOF") {
            let end = word + 3;
            let end = if self.byte(end) == Some(b'\n') { end + 1 } else { end };
            return self.take(end, State::LineStart, Token::EndWord);
        }
        Token::Invalid
    }

    /// Exactly one blank and then what is neither blank nor line break.
    fn blank_and_word(&mut self, state: State, token: Token) -> Token {
        let word = self.start + 1;
        let end = self.run(word, |byte| !matches!(byte, b' ' | b'\n' | 0));
        if self.byte(self.start) == Some(b' ') && end > word { self.take(end, state, token) } else { Token::Invalid }
    }
}

fn is_blank(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t')
}

fn starts_metric_name(byte: u8) -> bool {
    byte.is_ascii_alphabetic() || matches!(byte, b'_' | b':')
}

fn in_metric_name(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b':')
}

fn starts_label_name(byte: u8) -> bool {
    byte.is_ascii_alphabetic() || byte == b'_'
}

fn in_label_name(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_'
}
