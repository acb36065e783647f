//! The format: flags, widths, indexes, verbs.

use std::fmt::Write as _;

use super::print::Printer;

/// A value to print.
#[derive(Clone, Debug, PartialEq)]
pub enum Printable {
    /// `nil`.
    Nil,
    /// A boolean.
    Bool(bool),
    /// An int64.
    Int(i64),
    /// A float64.
    Double(f64),
    /// A string.
    Text(String),
    /// A slice of bytes.
    Bytes(Vec<u8>),
    /// A slice, with the name of its type.
    List(Vec<Printable>, &'static str),
    /// Something with a text of its own, such as an id or a time; the name of its type; and what it is to verbs that
    /// want no text.
    Shown(String, &'static str, Box<Printable>),
}

/// What stands between `%` and the verb.
#[derive(Clone, Copy, Default)]
pub(super) struct Flags {
    pub minus: bool,
    pub plus: bool,
    pub sharp: bool,
    pub space: bool,
    pub zero: bool,
    /// `%#v`: as Go's source has it.
    pub source: bool,
    pub width: Option<usize>,
    pub precision: Option<usize>,
}

/// The greatest width, precision or index; Go's.
const GREATEST: usize = 1_000_000;

/// The longest result, in bytes: a few bytes of format can ask for a million blanks.
pub(super) const LONGEST: usize = 4 << 20;

/// Prints `arguments` into `format`. What does not fit is said in the text, as in Go; a result that is too long is an
/// error.
pub fn format(format: &str, arguments: &[Printable]) -> Result<String, String> {
    let mut walk = Walk { printer: Printer::default(), rest: format, arguments, next: 0, reordered: false };
    while let Some((before, directive)) = walk.rest.split_once('%') {
        walk.printer.out.push_str(before);
        walk.rest = directive;
        walk.directive();
        if walk.printer.out.len() > LONGEST {
            return Err(format!("the formatted text is longer than {LONGEST} bytes"));
        }
    }
    let rest = walk.rest;
    walk.printer.out.push_str(rest);
    walk.extra();
    Ok(walk.printer.out)
}

struct Walk<'a> {
    printer: Printer,
    rest: &'a str,
    arguments: &'a [Printable],
    /// The place of the next argument.
    next: usize,
    /// An index was given: then it is no mistake that arguments are left.
    reordered: bool,
}

impl Walk<'_> {
    fn sign(&mut self, sign: char) -> bool {
        let after = self.rest.strip_prefix(sign);
        self.rest = after.unwrap_or(self.rest);
        after.is_some()
    }

    /// What stands after `%`.
    fn directive(&mut self) {
        let mut flags = Flags::default();
        let after = self.rest.trim_start_matches(['-', '+', '#', ' ', '0']);
        for flag in self.rest[..self.rest.len() - after.len()].chars() {
            match flag {
                '-' => flags.minus = true,
                '+' => flags.plus = true,
                '#' => flags.sharp = true,
                ' ' => flags.space = true,
                _ => flags.zero = true,
            }
        }
        self.rest = after;
        let mut good = true;
        let mut indexed = self.index(&mut good);
        if self.sign('*') {
            indexed = false;
            match self.counted() {
                Some(width) => {
                    flags.minus |= width < 0;
                    flags.width = usize::try_from(width.unsigned_abs()).ok();
                }
                None => self.printer.out.push_str("%!(BADWIDTH)"),
            }
        } else {
            flags.width = self.number();
            good &= !(indexed && flags.width.is_some());
        }
        if self.sign('.') {
            good &= !indexed;
            indexed = self.index(&mut good);
            if self.sign('*') {
                indexed = false;
                flags.precision = self.counted().and_then(|precision| usize::try_from(precision).ok());
                if flags.precision.is_none() {
                    self.printer.out.push_str("%!(BADPREC)");
                }
            } else {
                flags.precision = Some(self.number().unwrap_or(0));
            }
        }
        if !indexed {
            self.index(&mut good);
        }
        let mut characters = self.rest.chars();
        let Some(verb) = characters.next() else { return self.printer.out.push_str("%!(NOVERB)") };
        self.rest = characters.as_str();
        self.verb(verb, flags, good);
    }

    fn verb(&mut self, verb: char, mut flags: Flags, good: bool) {
        let (printer, argument) = (&mut self.printer, self.arguments.get(self.next));
        // Writing into memory cannot fail.
        let _ = match argument {
            _ if verb == '%' => return printer.out.push('%'),
            _ if !good => write!(printer.out, "%!{verb}(BADINDEX)"),
            None => write!(printer.out, "%!{verb}(MISSING)"),
            Some(argument) => {
                if verb == 'v' || verb == 'w' {
                    flags = Flags { source: flags.sharp, sharp: false, plus: false, ..flags };
                }
                printer.flags = flags;
                printer.print(verb, argument);
                self.next += 1;
                Ok(())
            }
        };
    }

    /// `[2]`: which argument comes next.
    fn index(&mut self, good: &mut bool) -> bool {
        let Some(inside) = self.rest.strip_prefix('[') else { return false };
        self.reordered = true;
        let Some((digits, after)) = inside.split_once(']') else {
            (self.rest, *good) = (inside, false);
            return false;
        };
        self.rest = after;
        let plain = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
        let number = digits.parse::<usize>().ok().filter(|_| plain);
        match number.and_then(|number| number.checked_sub(1)) {
            Some(place) if place < self.arguments.len() => {
                self.next = place;
                true
            }
            _ => {
                *good = false;
                // Only a number counts as an index then.
                number.is_some()
            }
        }
    }

    /// Digits. A number that is too great takes the rest of the format with it.
    fn number(&mut self) -> Option<usize> {
        let after = self.rest.trim_start_matches(|c: char| c.is_ascii_digit());
        let digits = &self.rest[..self.rest.len() - after.len()];
        if digits.is_empty() {
            return None;
        }
        let before_last = digits[..digits.len() - 1].trim_start_matches('0');
        let number = digits
            .parse()
            .ok()
            .filter(|_| before_last.parse().is_ok_and(|number: usize| number <= GREATEST) || before_last.is_empty());
        self.rest = if number.is_some() { after } else { "" };
        number.map(|number: usize| number.min(LONGEST + 1))
    }

    /// A number among the arguments.
    fn counted(&mut self) -> Option<i64> {
        let argument = self.arguments.get(self.next)?;
        self.next += 1;
        let Printable::Int(number) = argument else { return None };
        usize::try_from(number.unsigned_abs()).is_ok_and(|size| size <= GREATEST).then_some(*number)
    }

    /// Arguments that nobody asked for.
    fn extra(&mut self) {
        let left = self.arguments.get(self.next..).unwrap_or_default();
        if self.reordered || left.is_empty() {
            return;
        }
        self.printer.flags = Flags::default();
        self.printer.out.push_str("%!(EXTRA ");
        for (place, argument) in left.iter().enumerate() {
            if place > 0 {
                self.printer.out.push_str(", ");
            }
            self.printer.typed(argument, None);
        }
        self.printer.out.push(')');
    }
}
