//! The protobuf wire form, by hand: a [`Reader`] that yields numbered values of one message, and a
//! [`Writer`] that appends them. Both know wire types only; what a number means stands in `schema`.
//!
//! Payloads are validated once when they enter (`validate`); whoever reads them afterwards uses
//! [`fields`], which cannot fail on validated bytes and simply ends at the first broken one otherwise.

use bytes::Bytes;

/// Why bytes are no protobuf message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum WireError {
    /// The message ends inside a field.
    #[error("unexpected end of data")]
    Truncated,
    /// A varint has more than ten bytes.
    #[error("integer overflow")]
    Overflow,
    /// Field number 0, or one beyond 31 bits.
    #[error("illegal field number")]
    IllegalField,
    /// Wire types 6 and 7 do not exist; an end of a group needs a start.
    #[error("illegal wire type")]
    IllegalType,
    /// Groups within groups, deeper than [`MAX_DEPTH`].
    #[error("nested too deeply")]
    TooDeep,
}

/// How deep messages may nest, on the wire and in JSON. The reference collector has no such limit; a
/// list within a list costs two levels, a map within a map three.
pub const MAX_DEPTH: usize = 200;

/// The value of one field as the wire form knows it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Value<'a> {
    /// int32, int64, uint32, uint64, sint32, bool, enum.
    Varint(u64),
    /// fixed64, sfixed64, double.
    Fixed64(u64),
    /// string, bytes, message, packed list.
    Bytes(&'a [u8]),
    /// fixed32.
    Fixed32(u32),
    /// A group; OTLP has none, so its content is skipped.
    Group,
}

impl<'a> Value<'a> {
    /// The bytes of a length-delimited value; empty for any other.
    #[must_use]
    pub fn bytes(self) -> &'a [u8] {
        if let Value::Bytes(bytes) = self { bytes } else { &[] }
    }

    /// The number of a varint or fixed value, as unsigned bits; 0 for a length-delimited one.
    #[must_use]
    pub fn bits(self) -> u64 {
        match self {
            Value::Varint(number) | Value::Fixed64(number) => number,
            Value::Fixed32(number) => u64::from(number),
            Value::Bytes(_) | Value::Group => 0,
        }
    }

    /// The number as int64 or sfixed64.
    #[must_use]
    pub fn int64(self) -> i64 {
        self.bits().cast_signed()
    }

    /// The number as uint32; bits above are cut off, as every protobuf library does.
    #[must_use]
    #[expect(clippy::cast_possible_truncation, reason = "protobuf defines the cut")]
    pub fn uint32(self) -> u32 {
        self.bits() as u32
    }

    /// The number as int32 or enum; bits above are cut off.
    #[must_use]
    pub fn int32(self) -> i32 {
        self.uint32().cast_signed()
    }

    /// The number as sint32 (zigzag).
    #[must_use]
    pub fn sint32(self) -> i32 {
        let number = self.uint32();
        (number >> 1).cast_signed() ^ -(number & 1).cast_signed()
    }

    /// The bits of a double.
    #[must_use]
    pub fn double(self) -> f64 {
        f64::from_bits(self.bits())
    }
}

/// Reads the fields of one message in the order in which they stand.
#[derive(Debug, Clone)]
pub struct Reader<'a> {
    bytes: &'a [u8],
    position: usize,
}

impl<'a> Reader<'a> {
    /// A reader at the start of a message.
    #[must_use]
    pub fn new(bytes: &'a [u8]) -> Self {
        Self { bytes, position: 0 }
    }

    /// Offset of the next field's tag within the message.
    #[must_use]
    pub fn position(&self) -> usize {
        self.position
    }

    /// Field number and value of the next field; None at the end.
    pub fn read(&mut self) -> Result<Option<(u32, Value<'a>)>, WireError> {
        if self.position == self.bytes.len() {
            return Ok(None);
        }
        let (number, wire_type) = self.tag()?;
        let value = match wire_type {
            0 => Value::Varint(self.varint()?),
            1 => Value::Fixed64(u64::from_le_bytes(self.array()?)),
            2 => Value::Bytes(self.length_delimited()?),
            3 => {
                self.skip_group()?;
                Value::Group
            }
            5 => Value::Fixed32(u32::from_le_bytes(self.array()?)),
            _ => return Err(WireError::IllegalType),
        };
        Ok(Some((number, value)))
    }

    fn tag(&mut self) -> Result<(u32, u8), WireError> {
        let tag = self.varint()?;
        let number = u32::try_from(tag >> 3).map_err(|_| WireError::IllegalField)?;
        if number == 0 || number > i32::MAX.cast_unsigned() {
            return Err(WireError::IllegalField);
        }
        Ok((number, (tag & 7) as u8))
    }

    /// A varint at the current position (an element of a packed list).
    #[inline]
    pub fn varint(&mut self) -> Result<u64, WireError> {
        match self.bytes.get(self.position) {
            Some(&byte) if byte < 0x80 => {
                self.position += 1;
                Ok(u64::from(byte))
            }
            _ => self.long_varint(),
        }
    }

    fn long_varint(&mut self) -> Result<u64, WireError> {
        let mut number = 0;
        for shift in (0..64).step_by(7) {
            let byte = *self.bytes.get(self.position).ok_or(WireError::Truncated)?;
            self.position += 1;
            number |= u64::from(byte & 0x7f) << shift;
            if byte < 0x80 {
                return Ok(number);
            }
        }
        Err(WireError::Overflow)
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], WireError> {
        let rest = self.bytes.get(self.position..).unwrap_or_default();
        let array = *rest.first_chunk::<N>().ok_or(WireError::Truncated)?;
        self.position += N;
        Ok(array)
    }

    fn length_delimited(&mut self) -> Result<&'a [u8], WireError> {
        let length = usize::try_from(self.varint()?).map_err(|_| WireError::Overflow)?;
        let end = self.position.checked_add(length).ok_or(WireError::Truncated)?;
        let bytes = self.bytes.get(self.position..end).ok_or(WireError::Truncated)?;
        self.position = end;
        Ok(bytes)
    }

    fn skip_group(&mut self) -> Result<(), WireError> {
        let mut depth = 1;
        while depth > 0 {
            if self.position == self.bytes.len() {
                return Err(WireError::Truncated);
            }
            match self.tag()?.1 {
                0 => drop(self.varint()?),
                1 => drop(self.array::<8>()?),
                2 => drop(self.length_delimited()?),
                3 if depth == MAX_DEPTH => return Err(WireError::TooDeep),
                3 => depth += 1,
                4 => depth -= 1,
                5 => drop(self.array::<4>()?),
                _ => return Err(WireError::IllegalType),
            }
        }
        Ok(())
    }
}

/// The fields of a validated message; ends early where the bytes are broken.
pub fn fields(message: &[u8]) -> impl Iterator<Item = (u32, Value<'_>)> {
    let mut reader = Reader::new(message);
    std::iter::from_fn(move || reader.read().ok().flatten())
}

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

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests may panic")]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read() {
        let mut writer = Writer::new();
        writer.varint_field(1, u64::MAX);
        writer.sint32_field(2, -3);
        writer.double_field(3, -0.5);
        writer.message_field(4, |inner| inner.bytes_field(1, &[7; 300]));
        writer.fixed32_field(16, 9);
        writer.packed_varint(5, [1, 300]);
        writer.packed_double(6, [1.0].into_iter());
        let all: Vec<_> = fields(writer.as_slice()).collect();
        assert_eq!(all.len(), 7);
        assert_eq!(all[0], (1, Value::Varint(u64::MAX)));
        assert_eq!(all[1].1.sint32(), -3);
        assert!((all[2].1.double() + 0.5).abs() < f64::EPSILON);
        assert_eq!(fields(all[3].1.bytes()).next().unwrap().1.bytes(), &[7; 300]);
        assert_eq!(all[4], (16, Value::Fixed32(9)));
        assert_eq!(all[5].1.bytes(), &[1, 0xac, 2]);
        assert_eq!(all[6].1.bytes().len(), 8);
    }

    #[test]
    fn broken_bytes_are_errors() {
        let error = |bytes: &[u8]| {
            let mut reader = Reader::new(bytes);
            loop {
                match reader.read() {
                    Ok(Some(_)) => {}
                    Ok(None) => return None,
                    Err(error) => return Some(error),
                }
            }
        };
        assert_eq!(error(&[0x0a, 5, 1]), Some(WireError::Truncated));
        assert_eq!(error(&[0x08]), Some(WireError::Truncated));
        assert_eq!(error(&[0x00, 1]), Some(WireError::IllegalField));
        assert_eq!(error(&[0x0f]), Some(WireError::IllegalType));
        assert_eq!(error(&[0x0c]), Some(WireError::IllegalType), "an end of a group without a start");
        assert_eq!(error(&[0x0b, 0x08, 1]), Some(WireError::Truncated), "an unfinished group");
        assert_eq!(error(&[0x0b, 0x08, 1, 0x0c]), None);
        assert_eq!(error(&[0x0b; 1000]), Some(WireError::TooDeep));
        assert_eq!(error(&[0x08, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 1]), Some(WireError::Overflow));
        assert_eq!(error(&[0x0a, 255, 255, 255, 255, 255, 255, 255, 255, 255, 1]), Some(WireError::Truncated));
    }

    #[test]
    fn sizes_of_varints() {
        for number in [0, 1, 127, 128, 16383, 16384, u64::from(u32::MAX), u64::MAX] {
            let mut writer = Writer::new();
            writer.varint(number);
            assert_eq!(writer.len(), varint_size(number), "{number}");
        }
    }
}
