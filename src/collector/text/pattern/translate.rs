//! From Go's grammar to the `regex` crate's.

use super::class::{ESCAPE, NOTHING, Rest, brackets, escape, fault, perl, unicode};

/// The greatest count of a repetition, and of repetitions in each other.
const MOST_REPEATS: u32 = 1000;

/// A pattern for the crate, and the names of its groups. None of the groups has a name there: Go allows names that
/// begin with a digit, and several groups of one name.
pub(super) fn translate(pattern: &str) -> Result<(String, Vec<Option<String>>), String> {
    let mut translator = Translator { whole: pattern, ..Translator::default() };
    let mut rest = pattern;
    while let Some(c) = rest.chars().next() {
        rest = translator.next(c, rest)?;
    }
    if !translator.open.is_empty() {
        return Err(fault("missing closing )", pattern));
    }
    Ok((translator.out, translator.names))
}

/// What a repetition would repeat.
#[derive(Clone, Copy, Default)]
enum Last {
    /// Nothing: a group or alternative begins.
    #[default]
    Nothing,
    Atom,
    /// An atom that is repeated, and directly before.
    Repeated,
    /// The same with something before that repeats nothing, such as flags.
    RepeatedBefore,
}

#[derive(Default)]
struct Translator<'p> {
    whole: Rest<'p>,
    out: String,
    names: Vec<Option<String>>,
    /// The groups around.
    open: Vec<Group>,
    /// Flags that hold from the next atom on; one before may still be repeated.
    flags: String,
    /// Whether repetitions take as little as they can: settled here, one by one.
    lazy: bool,
    last: Last,
    /// Where the last atom begins in `out`.
    start: usize,
    /// What begins with the last repetition.
    repetition: Rest<'p>,
    /// How many times repetitions in each other repeat what is in the last atom.
    repeats: u32,
    /// The most of it in the group so far.
    most_repeats: u32,
}

/// What was outside when a group began.
struct Group {
    start: usize,
    lazy: bool,
    most_repeats: u32,
}

impl<'p> Translator<'p> {
    /// Takes what begins with `c`; gives what is left.
    fn next(&mut self, c: char, rest: Rest<'p>) -> Result<Rest<'p>, String> {
        let after = &rest[c.len_utf8()..];
        match c {
            '(' if after.starts_with('?') => return self.perl_group(rest),
            '(' => self.open(None),
            ')' => self.close()?,
            '|' => {
                self.end_atom();
                self.write_flags();
                self.out.push('|');
                self.last = Last::Nothing;
            }
            '^' | '$' | '.' => self.atom(&c.to_string()),
            '[' => {
                let (class, after) = brackets(rest)?;
                self.atom(&class);
                return Ok(after);
            }
            '*' | '+' | '?' => return self.repeat(rest, after, &c.to_string(), None),
            '{' => match counts(after) {
                Some((least, most, after)) => return self.repeat_counted(rest, after, least, most),
                None => self.literal('{'),
            },
            '\\' => return self.backslash(rest),
            c => self.literal(c),
        }
        Ok(after)
    }

    fn backslash(&mut self, rest: Rest<'p>) -> Result<Rest<'p>, String> {
        let letter = rest[1..].chars().next();
        let after = &rest[(1 + letter.map_or(0, char::len_utf8))..];
        match letter {
            Some('A') => self.atom(r"\A"),
            Some('z') => self.atom(r"\z"),
            Some('b') => self.atom(r"(?-u:\b)"),
            Some('B') => self.atom(r"(?-u:\B)"),
            Some('C') => return Err(fault(ESCAPE, r"\C")),
            Some('Q') => {
                let (literal, after) = after.split_once(r"\E").unwrap_or((after, ""));
                literal.chars().for_each(|c| self.literal(c));
                return Ok(after);
            }
            Some('p' | 'P') => {
                let (class, after) = unicode(rest)?;
                self.atom(&class);
                return Ok(after);
            }
            Some(letter) if perl(letter).is_some() => self.atom(perl(letter).unwrap_or_default()),
            _ => {
                let (number, after) = escape(rest)?;
                match char::from_u32(number) {
                    Some(c) => self.literal(c),
                    None => self.atom(NOTHING),
                }
                return Ok(after);
            }
        }
        Ok(after)
    }

    /// The former atom has its repetition, if it has one.
    fn end_atom(&mut self) {
        if !matches!(self.last, Last::Nothing) {
            self.most_repeats = self.most_repeats.max(self.repeats);
        }
    }

    fn write_flags(&mut self) {
        let flags = std::mem::take(&mut self.flags);
        self.out.push_str(&flags);
    }

    fn atom(&mut self, text: &str) {
        self.end_atom();
        self.write_flags();
        self.start = self.out.len();
        self.out.push_str(text);
        self.last = Last::Atom;
        self.repeats = 1;
    }

    fn literal(&mut self, c: char) {
        if c.is_ascii_alphanumeric() || !c.is_ascii() {
            self.atom(c.encode_utf8(&mut [0; 4]));
        } else {
            self.atom(&format!(r"\x{:02X}", u32::from(c)));
        }
    }

    /// Begins a group: one that captures, or one with these flags.
    fn open(&mut self, flags: Option<&str>) {
        self.end_atom();
        self.write_flags();
        self.open.push(Group { start: self.out.len(), lazy: self.lazy, most_repeats: self.most_repeats });
        match flags {
            None => {
                self.names.push(None);
                self.out.push('(');
            }
            Some(flags) => self.out.extend(["(?", flags, ":"]),
        }
        self.last = Last::Nothing;
        self.most_repeats = 1;
    }

    fn close(&mut self) -> Result<(), String> {
        let Some(group) = self.open.pop() else { return Err(fault("unexpected )", self.whole)) };
        self.end_atom();
        self.flags.clear();
        self.out.push(')');
        self.last = Last::Atom;
        self.start = group.start;
        self.lazy = group.lazy;
        self.repeats = self.most_repeats;
        self.most_repeats = group.most_repeats;
        Ok(())
    }

    /// `(?P<name>`, `(?<name>`, `(?i-s:` or `(?i-s)`.
    fn perl_group(&mut self, rest: Rest<'p>) -> Result<Rest<'p>, String> {
        if let Some(named) = rest.strip_prefix("(?P<").or_else(|| rest.strip_prefix("(?<"))
            && !named.is_empty()
        {
            let Some((name, after)) = named.split_once('>') else { return Err(fault("invalid named capture", rest)) };
            if name.is_empty() || !name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_') {
                return Err(fault("invalid named capture", &rest[..rest.len() - after.len()]));
            }
            self.open(None);
            if let Some(last) = self.names.last_mut() {
                *last = Some(name.to_owned());
            }
            return Ok(after);
        }
        let (mut flags, mut lazy) = ([None; 3], self.lazy);
        let (mut negative, mut any) = (false, false);
        for (place, c) in rest.char_indices().skip(2) {
            let after = &rest[place + c.len_utf8()..];
            match (c, FLAGS.iter().position(|flag| *flag == c)) {
                (_, Some(flag)) => flags[flag] = Some(!negative),
                ('U', _) => lazy = !negative,
                ('-', _) if !negative => (negative, any) = (true, false),
                (':' | ')', _) if any || !negative => {
                    let flags = written(flags);
                    if c == ':' {
                        self.open(Some(&flags));
                    } else {
                        if !flags.is_empty() {
                            self.flags.extend(["(?", &flags, ")"]);
                        }
                        if matches!(self.last, Last::Repeated) {
                            self.last = Last::RepeatedBefore;
                        }
                    }
                    self.lazy = lazy;
                    return Ok(after);
                }
                _ => return Err(fault(PERL, &rest[..place + c.len_utf8()])),
            }
            any |= c != '-';
        }
        Err(fault(PERL, rest))
    }

    fn repeat_counted(
        &mut self,
        rest: Rest<'p>,
        after: Rest<'p>,
        least: Option<u32>,
        most: Most,
    ) -> Result<Rest<'p>, String> {
        let whole = &rest[..rest.len() - after.len()];
        let wrong = || fault("invalid repeat count", whole);
        let least = least.filter(|least| *least <= MOST_REPEATS).ok_or_else(wrong)?;
        let (text, counted) = match most {
            Most::Unlimited => (format!("{{{least},}}"), if least == 0 { None } else { Some(least) }),
            Most::Times(Some(most)) if most >= least && most <= MOST_REPEATS => {
                (format!("{{{least},{most}}}"), Some(most))
            }
            Most::Times(_) => return Err(wrong()),
        };
        self.repeat(rest, after, &text, counted)
    }

    /// Repeats the last atom. `counted`: how many times at most, where there is a count.
    fn repeat(
        &mut self,
        rest: Rest<'p>,
        mut after: Rest<'p>,
        text: &str,
        counted: Option<u32>,
    ) -> Result<Rest<'p>, String> {
        let counts = &rest[..rest.len() - after.len()];
        let mut lazy = self.lazy;
        if let Some(further) = after.strip_prefix('?') {
            (after, lazy) = (further, !lazy);
        }
        let operator = &rest[..rest.len() - after.len()];
        match self.last {
            Last::Nothing => return Err(fault("missing argument to repetition operator", operator)),
            Last::Repeated => {
                let both = &self.repetition[..self.repetition.len() - after.len()];
                return Err(fault("invalid nested repetition operator", both));
            }
            Last::RepeatedBefore => {
                self.out.insert_str(self.start, "(?:");
                self.out.push(')');
            }
            Last::Atom => {}
        }
        match counted {
            // What is repeated no times is nothing, but its groups are still counted.
            Some(0) => {
                self.repeats = 1;
                self.out.insert_str(self.start, "(?:");
                self.out.extend([NOTHING, ")?"]);
                (self.last, self.repetition) = (Last::Repeated, rest);
                return Ok(after);
            }
            Some(times) => {
                let repeats = self.repeats.saturating_mul(times);
                if repeats > MOST_REPEATS && times >= 2 {
                    return Err(fault("invalid repeat count", counts));
                }
                self.repeats = repeats;
            }
            None => {}
        }
        self.out.push_str(text);
        if lazy {
            self.out.push('?');
        }
        (self.last, self.repetition) = (Last::Repeated, rest);
        Ok(after)
    }
}

const PERL: &str = "invalid or unsupported Perl syntax";

/// The flags that both have: letter case, lines, a dot that is any character.
const FLAGS: [char; 3] = ['i', 'm', 's'];

/// Flags that are set or unset, as the crate wants them.
fn written(flags: [Option<bool>; 3]) -> String {
    let of = |wanted: bool| FLAGS.iter().zip(flags).filter(move |(_, set)| *set == Some(wanted)).map(|(flag, _)| *flag);
    let set: String = of(true).collect();
    let unset: String = of(false).collect();
    if unset.is_empty() { set } else { format!("{set}-{unset}") }
}

/// The upper end of a count.
#[derive(Clone, Copy)]
enum Most {
    Unlimited,
    /// None: a number beyond all limits.
    Times(Option<u32>),
}

/// Reads a count after its brace; None if that is none, and the brace is a character.
fn counts(rest: Rest<'_>) -> Option<(Option<u32>, Most, Rest<'_>)> {
    let (least, rest) = number(rest)?;
    let Some(rest) = rest.strip_prefix(',') else {
        return Some((least, Most::Times(least), rest.strip_prefix('}')?));
    };
    if let Some(rest) = rest.strip_prefix('}') {
        return Some((least, Most::Unlimited, rest));
    }
    let (most, rest) = number(rest)?;
    Some((least, Most::Times(most), rest.strip_prefix('}')?))
}

/// Digits without a zero in front; their number, unless it is beyond all limits.
fn number(text: &str) -> Option<(Option<u32>, Rest<'_>)> {
    let length = text.bytes().take_while(u8::is_ascii_digit).count();
    let (digits, rest) = text.split_at(length);
    let good = length == 1 || length > 1 && !digits.starts_with('0');
    good.then(|| (digits.parse().ok(), rest))
}
