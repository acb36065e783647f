//! An object that is being written.

use super::text::write_string;

/// Commas are where they belong.
pub(super) struct Object<'a> {
    pub(super) out: &'a mut Vec<u8>,
    empty: bool,
}

impl<'a> Object<'a> {
    pub(super) fn start(out: &'a mut Vec<u8>) -> Self {
        out.push(b'{');
        Self { out, empty: true }
    }

    /// `key` has its quotes and colon.
    pub(super) fn key(&mut self, key: &str) {
        if !self.empty {
            self.out.push(b',');
        }
        self.empty = false;
        self.out.extend_from_slice(key.as_bytes());
    }

    /// A text unless it is empty.
    pub(super) fn text(&mut self, key: &str, text: &[u8]) {
        if !text.is_empty() {
            self.key(key);
            write_string(self.out, text);
        }
    }

    /// A list unless it is empty.
    pub(super) fn list<T>(
        &mut self,
        key: &str,
        items: impl IntoIterator<Item = T>,
        mut write: impl FnMut(&mut Vec<u8>, T),
    ) {
        let mut items = items.into_iter();
        let Some(first) = items.next() else { return };
        self.key(key);
        self.out.push(b'[');
        write(self.out, first);
        for item in items {
            self.out.push(b',');
            write(self.out, item);
        }
        self.out.push(b']');
    }

    pub(super) fn end(self) {
        self.out.push(b'}');
    }
}
