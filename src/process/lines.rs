//! Bytes as whole lines of text with something in front of each.

use std::borrow::Cow;

/// A line that is longer is shown without the rest of it.
pub const LONGEST_LINE: usize = 1024 * 1024;
/// What stands for the rest.
const CUT: &str = " ... (cut here; the log has the whole line)";

/// Collects bytes until a line is whole.
#[derive(Debug, Default)]
pub(super) struct Lines {
    /// The beginning of the line that is not whole yet; never longer than [`LONGEST_LINE`].
    line: Vec<u8>,
    /// The rest of the line is left out.
    cut: bool,
}

impl Lines {
    /// Adds the lines that `bytes` make whole to `out`, each with `prefix` in front of it. What is no UTF-8 is replaced.
    pub(super) fn take(&mut self, bytes: &[u8], prefix: &str, out: &mut Vec<u8>) {
        let Some(first) = memchr::memchr(b'\n', bytes) else { return self.begin(bytes, prefix, out) };
        let mut whole = bytes;
        if self.cut {
            self.cut = false;
            whole = &bytes[first + 1..];
        } else if !self.line.is_empty() {
            self.begin(&bytes[..first], prefix, out);
            self.end(prefix, out);
            whole = &bytes[first + 1..];
        }
        let last = memchr::memrchr(b'\n', whole).map_or(0, |end| end + 1);
        let (whole, rest) = whole.split_at(last);
        let text = text_of(whole);
        out.reserve(text.len() + text.len() / 8);
        let mut at = 0;
        for end in memchr::memchr_iter(b'\n', text.as_bytes()) {
            push(&text.as_bytes()[at..end], prefix, out);
            at = end + 1;
        }
        self.begin(rest, prefix, out);
    }

    /// There will be nothing more: what has no end gets one.
    pub(super) fn end(&mut self, prefix: &str, out: &mut Vec<u8>) {
        if !std::mem::take(&mut self.cut) && !self.line.is_empty() {
            push(text_of(&self.line).as_bytes(), prefix, out);
        }
        self.line.clear();
    }

    /// More of a line that is not whole yet.
    fn begin(&mut self, bytes: &[u8], prefix: &str, out: &mut Vec<u8>) {
        if self.cut {
            return;
        }
        let room = LONGEST_LINE - self.line.len();
        if bytes.len() <= room {
            self.line.extend_from_slice(bytes);
            return;
        }
        self.line.extend_from_slice(&bytes[..room]);
        // Not in the middle of a character.
        let half = self.line.utf8_chunks().last().map_or(0, |chunk| chunk.invalid().len());
        self.line.truncate(LONGEST_LINE - half);
        self.line.extend_from_slice(CUT.as_bytes());
        push(text_of(&self.line).as_bytes(), prefix, out);
        self.line = Vec::new();
        self.cut = true;
    }
}

/// The same as text. Most of it is; what only replaces is ten times slower than what only looks.
fn text_of(bytes: &[u8]) -> Cow<'_, str> {
    str::from_utf8(bytes).map_or_else(|_| String::from_utf8_lossy(bytes), Cow::Borrowed)
}

/// One line, without a `\r` at its end.
fn push(line: &[u8], prefix: &str, out: &mut Vec<u8>) {
    out.extend_from_slice(prefix.as_bytes());
    out.extend_from_slice(line.strip_suffix(b"\r").unwrap_or(line));
    out.push(b'\n');
}

#[cfg(test)]
mod tests {
    use super::{CUT, LONGEST_LINE, Lines};

    fn shown(pieces: &[&[u8]]) -> String {
        let mut lines = Lines::default();
        let mut out = Vec::new();
        for piece in pieces {
            lines.take(piece, "> ", &mut out);
        }
        lines.end("> ", &mut out);
        String::from_utf8(out).expect("text")
    }

    #[test]
    fn lines_are_whole_however_they_come() {
        let text = "one\n\ntwo \u{20ac}\r\nthree\u{1f980}".as_bytes();
        let expected = "> one\n> \n> two \u{20ac}\n> three\u{1f980}\n";
        for size in 1..=text.len() {
            let pieces: Vec<&[u8]> = text.chunks(size).collect();
            assert_eq!(shown(&pieces), expected, "in pieces of {size}");
        }
        assert_eq!(shown(&[]), "");
        assert_eq!(shown(&[b"\n"]), "> \n");
        assert_eq!(shown(&[b"a\xffb\nc\xe2\x82"]), "> a\u{fffd}b\n> c\u{fffd}\n");
    }

    #[test]
    fn a_line_is_shown_up_to_its_limit() {
        let longest = vec![b'x'; LONGEST_LINE];
        assert_eq!(shown(&[&longest, b"\nnext\n"]).len(), "> \n> next\n".len() + LONGEST_LINE);
        // A character that the limit divides is left out.
        let mut long = vec![b'x'; LONGEST_LINE - 1];
        long.extend("\u{20ac}".as_bytes());
        for size in [1000, 4096, long.len()] {
            let mut pieces: Vec<&[u8]> = long.chunks(size).collect();
            pieces.extend([b"more".as_slice(), b"and more\nnext\n"]);
            let text = shown(&pieces);
            let lines: Vec<&str> = text.lines().collect();
            assert_eq!(lines.len(), 2);
            assert_eq!(lines[0].len(), "> ".len() + LONGEST_LINE - 1 + CUT.len());
            assert!(lines[0].ends_with(&format!("x{CUT}")) && lines[1] == "> next");
        }
    }
}
