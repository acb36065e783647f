//! Appending fields to a buffer.

use bytes::Bytes;

/// Appends fields to a buffer. Every function writes its field whatever the value; whoever wants the
/// proto3 rule (a default is not written) leaves the call out.
#[derive(Debug, Default, Clone)]
pub struct Writer {
    buffer: Vec<u8>,
}

impl Writer {
    /// An empty writer.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// An empty writer with room for `capacity` bytes.
    #[must_use]
    pub fn with_capacity(capacity: usize) -> Self {
        Self { buffer: Vec::with_capacity(capacity) }
    }

    /// Bytes written so far.
    #[must_use]
    pub fn len(&self) -> usize {
        self.buffer.len()
    }

    /// Nothing has been written.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.buffer.is_empty()
    }

    /// What has been written.
    #[must_use]
    pub fn as_slice(&self) -> &[u8] {
        &self.buffer
    }

    /// The finished message.
    #[must_use]
    pub fn into_vec(self) -> Vec<u8> {
        self.buffer
    }

    /// The finished message, to be shared.
    #[must_use]
    pub fn into_bytes(self) -> Bytes {
        self.buffer.into()
    }

    /// Forgets what was written, keeps the memory.
    pub fn clear(&mut self) {
        self.buffer.clear();
    }

    /// Forgets what was written after the first `length` bytes.
    pub fn truncate(&mut self, length: usize) {
        self.buffer.truncate(length);
    }

    /// Bytes that are wire form already (whole fields).
    pub fn raw(&mut self, fields: &[u8]) {
        self.buffer.extend_from_slice(fields);
    }

    /// A bare varint: an element of a packed list, a length.
    #[expect(clippy::cast_possible_truncation, reason = "seven bits at a time")]
    pub fn varint(&mut self, mut number: u64) {
        while number >= 0x80 {
            self.buffer.push(number as u8 | 0x80);
            number >>= 7;
        }
        self.buffer.push(number as u8);
    }

    fn tag(&mut self, number: u32, wire_type: u32) {
        self.varint(u64::from(number << 3 | wire_type));
    }

    /// uint32, uint64, enum, and int32 or int64 as unsigned bits (`i64::cast_unsigned`).
    pub fn varint_field(&mut self, number: u32, value: u64) {
        self.tag(number, 0);
        self.varint(value);
    }

    /// int64, int32 and enum: negative numbers take ten bytes.
    pub fn int64_field(&mut self, number: u32, value: i64) {
        self.varint_field(number, value.cast_unsigned());
    }

    /// sint32: zigzag.
    pub fn sint32_field(&mut self, number: u32, value: i32) {
        self.varint_field(number, u64::from((value << 1 ^ value >> 31).cast_unsigned()));
    }

    /// bool.
    pub fn bool_field(&mut self, number: u32, value: bool) {
        self.varint_field(number, u64::from(value));
    }

    /// fixed64, and sfixed64 as unsigned bits.
    pub fn fixed64_field(&mut self, number: u32, value: u64) {
        self.tag(number, 1);
        self.buffer.extend_from_slice(&value.to_le_bytes());
    }

    /// double.
    pub fn double_field(&mut self, number: u32, value: f64) {
        self.fixed64_field(number, value.to_bits());
    }

    /// fixed32.
    pub fn fixed32_field(&mut self, number: u32, value: u32) {
        self.tag(number, 5);
        self.buffer.extend_from_slice(&value.to_le_bytes());
    }

    /// string, bytes, or a message that is wire form already.
    pub fn bytes_field(&mut self, number: u32, value: &[u8]) {
        self.message_header(number, value.len());
        self.buffer.extend_from_slice(value);
    }

    /// Tag and length of a message whose content of `length` bytes follows.
    pub fn message_header(&mut self, number: u32, length: usize) {
        self.tag(number, 2);
        self.varint(length as u64);
    }

    /// A message (or packed list), written in place by `content`.
    pub fn message_field(&mut self, number: u32, content: impl FnOnce(&mut Writer)) {
        let start = self.start_message(number);
        content(self);
        self.end_message(start);
    }

    /// Begins a message; what is written until [`Writer::end_message`] is its content. One byte is
    /// kept for its length; a longer length moves the content.
    pub fn start_message(&mut self, number: u32) -> MessageStart {
        self.tag(number, 2);
        self.buffer.push(0);
        MessageStart(self.buffer.len())
    }

    /// Ends the message begun at `start`.
    #[expect(clippy::cast_possible_truncation, reason = "below 128, checked")]
    #[expect(clippy::needless_pass_by_value, reason = "a message ends once")]
    pub fn end_message(&mut self, start: MessageStart) {
        let MessageStart(start) = start;
        let length = self.buffer.len() - start;
        if length < 0x80 {
            self.buffer[start - 1] = length as u8;
            return;
        }
        let extra = varint_size(length as u64) - 1;
        let end = self.buffer.len();
        self.buffer.resize(end + extra, 0);
        self.buffer.copy_within(start..end, start + extra);
        let (mut rest, first) = (length as u64, start - 1);
        for byte in &mut self.buffer[first..first + extra] {
            *byte = rest as u8 | 0x80;
            rest >>= 7;
        }
        self.buffer[first + extra] = rest as u8;
    }

    /// repeated fixed64, packed.
    pub fn packed_fixed64(&mut self, number: u32, values: impl ExactSizeIterator<Item = u64>) {
        self.message_header(number, values.len() * 8);
        for value in values {
            self.buffer.extend_from_slice(&value.to_le_bytes());
        }
    }

    /// repeated double, packed.
    pub fn packed_double(&mut self, number: u32, values: impl ExactSizeIterator<Item = f64>) {
        self.packed_fixed64(number, values.map(f64::to_bits));
    }

    /// repeated uint64, packed.
    pub fn packed_varint(&mut self, number: u32, values: impl IntoIterator<Item = u64>) {
        self.message_field(number, |writer| values.into_iter().for_each(|value| writer.varint(value)));
    }
}

/// Where the content of an unfinished message begins.
#[derive(Debug)]
#[must_use = "a message that is begun has to be ended"]
pub struct MessageStart(usize);

/// Bytes that a varint takes.
#[must_use]
pub fn varint_size(number: u64) -> usize {
    (70 - (number | 1).leading_zeros() as usize) / 7
}
