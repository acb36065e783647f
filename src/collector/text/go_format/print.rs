//! A value as its verb says.

use std::borrow::Cow;
use std::fmt::Write as _;

use super::format::{Flags, LONGEST, Printable};
use super::{number, quote};

/// The name of a type, where it is not the usual one of the value.
type TypeName = Option<&'static str>;

/// What was printed, and how to go on.
#[derive(Default)]
pub(super) struct Printer {
    pub out: String,
    pub flags: Flags,
}

fn type_name(value: &Printable) -> &'static str {
    match value {
        Printable::Nil => "<nil>",
        Printable::Bool(_) => "bool",
        Printable::Int(_) => "int64",
        Printable::Double(_) => "float64",
        Printable::Text(_) => "string",
        Printable::Bytes(_) => "[]uint8",
        Printable::List(_, name) | Printable::Shown(_, name, _) => name,
    }
}

impl Printer {
    pub fn print(&mut self, verb: char, value: &Printable) {
        self.print_as(verb, value, None);
    }

    fn print_as(&mut self, verb: char, value: &Printable, name: TypeName) {
        match value {
            Printable::Nil if verb == 'T' => self.pad("<nil>"),
            _ if verb == 'T' => self.text(type_name(value)),
            Printable::List(..) | Printable::Shown(..) if verb == 'w' => self.bad_verb(verb, value, name),
            Printable::Nil if verb == 'v' => self.pad("<nil>"),
            Printable::Bool(value) if matches!(verb, 't' | 'v') => self.pad(if *value { "true" } else { "false" }),
            Printable::Int(value) => self.integer(verb, *value, name),
            Printable::Double(value) => self.double(verb, *value),
            Printable::Text(text) => match verb {
                'v' if self.flags.source => self.quoted(text),
                'v' | 's' => self.text(text),
                'q' => self.quoted(text),
                'x' | 'X' => self.hexadecimal(verb, text.as_bytes()),
                _ => self.bad_verb(verb, value, name),
            },
            Printable::Bytes(bytes) => self.bytes(verb, bytes, name),
            Printable::List(elements, name) => self.list(verb, elements, name),
            Printable::Shown(text, ..) if matches!(verb, 's' | 'v' | 'q' | 'x' | 'X') && !self.flags.source => {
                self.print(verb, &Printable::Text(text.clone()));
            }
            Printable::Shown(_, name, inner) => self.print_as(verb, inner, Some(name)),
            Printable::Nil | Printable::Bool(_) => self.bad_verb(verb, value, name),
        }
    }

    /// `%!d(string=a)`: the verb does not fit the value.
    fn bad_verb(&mut self, verb: char, value: &Printable, name: TypeName) {
        // Writing into memory cannot fail.
        let _ = write!(self.out, "%!{verb}(");
        self.typed(value, name);
        self.out.push(')');
    }

    /// `string=a`.
    pub fn typed(&mut self, value: &Printable, name: TypeName) {
        if *value == Printable::Nil {
            return self.out.push_str("<nil>");
        }
        let _ = write!(self.out, "{}=", name.unwrap_or(type_name(value)));
        self.print_as('v', value, name);
    }

    fn list(&mut self, verb: char, elements: &[Printable], name: &str) {
        let marks = if self.flags.source { ["{", ", ", "}"] } else { ["[", " ", "]"] };
        if self.flags.source {
            self.out.push_str(name);
        }
        self.out.push_str(marks[0]);
        for (place, element) in elements.iter().enumerate() {
            if self.out.len() > LONGEST {
                return;
            }
            if place > 0 {
                self.out.push_str(marks[1]);
            }
            match element {
                Printable::Nil => self.out.push_str(if self.flags.source { "interface {}(nil)" } else { "<nil>" }),
                Printable::Bytes(bytes) => self.bytes(verb, bytes, Some("[]uint8")),
                element => self.print(verb, element),
            }
        }
        self.out.push_str(marks[2]);
    }

    fn bytes(&mut self, verb: char, bytes: &[u8], name: TypeName) {
        let text = || String::from_utf8_lossy(bytes);
        match verb {
            's' => self.text(&text()),
            'q' => self.quoted_bytes(bytes),
            'x' | 'X' => self.hexadecimal(verb, bytes),
            'v' if self.flags.source => {
                self.out.push_str(name.unwrap_or("[]byte"));
                self.out.push('{');
                self.flags.sharp = true;
                self.elements(bytes, ", ", 'x');
                self.flags.sharp = false;
                self.out.push('}');
            }
            _ => {
                self.out.push('[');
                self.elements(bytes, " ", if verb == 'v' { 'd' } else { verb });
                self.out.push(']');
            }
        }
    }

    fn elements(&mut self, bytes: &[u8], between: &str, verb: char) {
        for (place, byte) in bytes.iter().enumerate() {
            if self.out.len() > LONGEST {
                return;
            }
            if place > 0 {
                self.out.push_str(between);
            }
            self.integer(verb, (*byte).into(), Some("uint8"));
        }
    }

    /// Blanks, or zeros, up to the width.
    fn pad(&mut self, text: &str) {
        let missing = self.flags.width.unwrap_or(0).saturating_sub(text.chars().count());
        if self.flags.minus {
            self.out.push_str(text);
            self.fill(missing, ' ');
        } else {
            self.fill(missing, if self.flags.zero { '0' } else { ' ' });
            self.out.push_str(text);
        }
    }

    fn fill(&mut self, count: usize, with: char) {
        self.out.extend(std::iter::repeat_n(with, count));
    }

    /// The same with blanks only.
    fn pad_blank(&mut self, text: &str) {
        let zero = std::mem::take(&mut self.flags.zero);
        self.pad(text);
        self.flags.zero = zero;
    }

    fn cut<'t>(&self, text: &'t str) -> &'t str {
        let end = self.flags.precision.and_then(|precision| text.char_indices().nth(precision));
        end.map_or(text, |(end, _)| &text[..end])
    }

    fn text(&mut self, text: &str) {
        self.pad(self.cut(text).to_owned().as_str());
    }

    fn quoted(&mut self, text: &str) {
        let text = self.cut(text);
        let quoted = match self.flags {
            flags if flags.sharp && quote::fits_back_quotes(text) => format!("`{text}`"),
            flags => quote::quoted(text, '"', flags.plus),
        };
        self.pad(&quoted);
    }

    /// The same for bytes, of which some may be no text: each of these is escaped.
    fn quoted_bytes(&mut self, bytes: &[u8]) {
        if let Ok(text) = std::str::from_utf8(bytes) {
            return self.quoted(text);
        }
        let (mut quoted, mut left) = (String::from('"'), self.flags.precision.unwrap_or(usize::MAX));
        for chunk in bytes.utf8_chunks() {
            let valid: String = chunk.valid().chars().take(left).collect();
            left -= valid.chars().count();
            let marked = quote::quoted(&valid, '"', self.flags.plus);
            quoted.push_str(&marked[1..marked.len() - 1]);
            for byte in chunk.invalid().iter().take(left) {
                // Writing into memory cannot fail.
                let _ = write!(quoted, "\\x{byte:02x}");
            }
            left = left.saturating_sub(chunk.invalid().len());
        }
        quoted.push('"');
        self.pad(&quoted);
    }

    fn hexadecimal(&mut self, verb: char, bytes: &[u8]) {
        let bytes = &bytes[..bytes.len().min(self.flags.precision.unwrap_or(usize::MAX))];
        let capital = verb == 'X';
        let prefix = if self.flags.sharp { ["0x", "0X"][usize::from(capital)] } else { "" };
        let hex = |bytes: &[u8]| {
            let text = data_encoding::HEXLOWER.encode(bytes);
            if capital { text.to_uppercase() } else { text }
        };
        let text = match bytes {
            [] => String::new(),
            bytes if self.flags.space => {
                bytes.chunks(1).map(|byte| format!("{prefix}{}", hex(byte))).collect::<Vec<_>>().join(" ")
            }
            bytes => format!("{prefix}{}", hex(bytes)),
        };
        self.pad(&text);
    }

    fn integer(&mut self, verb: char, value: i64, name: TypeName) {
        let size = value.unsigned_abs();
        let (digits, prefix) = match verb {
            'd' | 'v' => (size.to_string(), ""),
            'b' => (format!("{size:b}"), "0b"),
            'o' | 'O' => (format!("{size:o}"), "0"),
            'x' => (format!("{size:x}"), "0x"),
            'X' => (format!("{size:X}"), "0X"),
            'c' => return self.pad(number::character(value).encode_utf8(&mut [0; 4])),
            'q' => {
                let character = String::from(number::character(value));
                return self.pad(&quote::quoted(&character, '\'', self.flags.plus));
            }
            'U' => return self.code_point(value),
            _ => return self.bad_verb(verb, &Printable::Int(value), name),
        };
        let flags = self.flags;
        if flags.precision == Some(0) && value == 0 {
            return self.pad_blank("");
        }
        let sign = match value {
            ..0 => "-",
            _ if flags.plus => "+",
            _ if flags.space => " ",
            _ => "",
        };
        let least = match flags.width {
            _ if flags.precision.is_some() => flags.precision.unwrap_or_default(),
            // Zeros stand in for a precision.
            Some(width) if flags.zero && !flags.minus => width - sign.len().min(width),
            _ => 0,
        };
        let zeros = "0".repeat(least.saturating_sub(digits.len()));
        let has_zero = !zeros.is_empty() || digits.starts_with('0');
        let prefix = match prefix {
            "0" if verb == 'O' => {
                // `0o` stands there anyhow, after the zero that `#` asks for.
                if flags.sharp && !has_zero { "0o0" } else { "0o" }
            }
            "0" if has_zero => "",
            prefix if flags.sharp && !matches!(verb, 'd' | 'v') => prefix,
            _ => "",
        };
        self.pad_blank(&format!("{sign}{prefix}{zeros}{digits}"));
    }

    /// `U+0041`, or with `#` `U+0041 'A'`.
    fn code_point(&mut self, value: i64) {
        let digits = format!("{value:X}");
        let zeros = self.flags.precision.unwrap_or(0).max(4).saturating_sub(digits.len());
        let mut text = format!("U+{}{digits}", "0".repeat(zeros));
        let character = u32::try_from(value).ok().and_then(char::from_u32);
        if let Some(character) = character.filter(|c| self.flags.sharp && quote::is_print(*c)) {
            let _ = write!(text, " '{character}'");
        }
        self.pad_blank(&text);
    }

    fn double(&mut self, verb: char, value: f64) {
        let flags = self.flags;
        let usual = if matches!(verb, 'e' | 'E' | 'f' | 'F') { Some(6) } else { None };
        let precision = flags.precision.or(usual);
        let Some(digits) = number::double(verb, value.abs(), precision) else {
            return self.bad_verb(verb, &Printable::Double(value), None);
        };
        let negative = value.is_sign_negative() && !value.is_nan();
        if !value.is_finite() {
            let sign = match () {
                () if negative => "-",
                () if flags.plus => "+",
                () if flags.space => " ",
                () if value.is_nan() => "",
                () => "+",
            };
            return self.pad_blank(&format!("{sign}{digits}"));
        }
        let digits = if flags.sharp && verb != 'b' {
            Cow::Owned(number::with_point(&digits, verb, precision))
        } else {
            Cow::Borrowed(digits.as_str())
        };
        let sign = match () {
            () if negative => "-",
            () if flags.plus => "+",
            () if flags.space => " ",
            () => "",
        };
        let width = flags.width.unwrap_or(0);
        if !sign.is_empty() && flags.zero && !flags.minus && width > digits.len() + 1 {
            self.out.push_str(sign);
            self.fill(width - digits.len() - 1, '0');
            return self.out.push_str(&digits);
        }
        self.pad(&format!("{sign}{digits}"));
    }
}
