//! Reading the fields of one message.

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
    #[inline]
    pub fn bytes(self) -> &'a [u8] {
        if let Value::Bytes(bytes) = self { bytes } else { &[] }
    }

    /// The number of a varint or fixed value, as unsigned bits; 0 for a length-delimited one.
    #[must_use]
    #[inline]
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
    #[inline]
    pub fn new(bytes: &'a [u8]) -> Self {
        Self { bytes, position: 0 }
    }

    /// Offset of the next field's tag within the message.
    #[must_use]
    #[inline]
    pub fn position(&self) -> usize {
        self.position
    }

    /// No field is left.
    #[must_use]
    #[inline]
    pub fn is_at_end(&self) -> bool {
        self.position == self.bytes.len()
    }

    /// Field number and value of the next field; None at the end.
    #[inline(always)]
    #[expect(clippy::inline_always, reason = "all passes over all bytes are made of this")]
    pub fn read(&mut self) -> Result<Option<(u32, Value<'a>)>, WireError> {
        match self.short_field() {
            None => self.read_any(),
            field => Ok(field),
        }
    }

    /// Passes over the next field and gives its number; None at the end.
    #[inline(always)]
    #[expect(clippy::inline_always, reason = "all passes over all bytes are made of this")]
    pub fn skip(&mut self) -> Result<Option<u32>, WireError> {
        match self.short_field() {
            Some((number, _)) => Ok(Some(number)),
            None => Ok(self.read_any()?.map(|(number, _)| number)),
        }
    }

    /// A field as most are: one byte of tag; bytes with one byte of length, a number of few bytes, or eight bytes.
    #[inline(always)]
    #[expect(clippy::inline_always, reason = "all passes over all bytes are made of this")]
    fn short_field(&mut self) -> Option<(u32, Value<'a>)> {
        let [tag @ 8..=127, rest @ ..] = self.bytes.get(self.position..)? else { return None };
        let (value, size) = match (tag & 7, rest) {
            (2, [length @ ..=127, rest @ ..]) => {
                let bytes = rest.get(..usize::from(*length))?;
                (Value::Bytes(bytes), 2 + bytes.len())
            }
            (0, rest) => {
                let (number, size) = short_varint(rest)?;
                (Value::Varint(number), 1 + size)
            }
            (1, rest) => (Value::Fixed64(u64::from_le_bytes(*rest.first_chunk()?)), 9),
            _ => return None,
        };
        self.position += size;
        Some((u32::from(tag >> 3), value))
    }

    /// Field number and bytes of the next field if it is length-delimited; None, and nothing is read, if it is not.
    #[inline(always)]
    #[expect(clippy::inline_always, reason = "all passes over all bytes are made of this")]
    pub fn read_bytes(&mut self) -> Option<(u32, &'a [u8])> {
        self.short_bytes().or_else(|| self.long_bytes())
    }

    /// A field as most are: bytes, with one byte of tag and one of length.
    #[inline(always)]
    #[expect(clippy::inline_always, reason = "all passes over all bytes are made of this")]
    fn short_bytes(&mut self) -> Option<(u32, &'a [u8])> {
        let [tag @ 8..=127, length @ ..=127, rest @ ..] = self.bytes.get(self.position..)? else { return None };
        if tag & 7 != 2 {
            return None;
        }
        let bytes = rest.get(..usize::from(*length))?;
        self.position += 2 + bytes.len();
        Some((u32::from(tag >> 3), bytes))
    }

    fn long_bytes(&mut self) -> Option<(u32, &'a [u8])> {
        let before = self.position;
        if let Ok(Some((number, Value::Bytes(bytes)))) = self.read_any() {
            return Some((number, bytes));
        }
        self.position = before;
        None
    }

    fn read_any(&mut self) -> Result<Option<(u32, Value<'a>)>, WireError> {
        if self.is_at_end() {
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

    #[inline]
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

    #[inline]
    fn array<const N: usize>(&mut self) -> Result<[u8; N], WireError> {
        let rest = self.bytes.get(self.position..).unwrap_or_default();
        let array = *rest.first_chunk::<N>().ok_or(WireError::Truncated)?;
        self.position += N;
        Ok(array)
    }

    #[inline]
    fn length_delimited(&mut self) -> Result<&'a [u8], WireError> {
        let length = usize::try_from(self.varint()?).map_err(|_| WireError::Overflow)?;
        let end = self.position.checked_add(length).ok_or(WireError::Truncated)?;
        let bytes = self.bytes.get(self.position..end).ok_or(WireError::Truncated)?;
        self.position = end;
        Ok(bytes)
    }

    #[cold]
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

/// A number of at most eight bytes, and how many these are; None for all else.
#[inline(always)]
#[expect(clippy::inline_always, reason = "all passes over all bytes are made of this")]
fn short_varint(bytes: &[u8]) -> Option<(u64, usize)> {
    let mut number = 0;
    for (place, byte) in bytes.iter().take(8).enumerate() {
        number |= u64::from(byte & 0x7f) << (7 * place);
        if *byte < 0x80 {
            return Some((number, place + 1));
        }
    }
    None
}

/// The fields of a validated message; ends early where the bytes are broken.
#[inline]
pub fn fields(message: &[u8]) -> impl Iterator<Item = (u32, Value<'_>)> {
    let mut reader = Reader::new(message);
    std::iter::from_fn(move || reader.read().ok().flatten())
}

/// The bytes of all fields of one number, which must be length-delimited ones, of a validated message.
#[inline]
pub fn bytes_fields(message: &[u8], wanted: u32) -> impl Iterator<Item = &[u8]> {
    let mut reader = Reader::new(message);
    std::iter::from_fn(move || {
        loop {
            match reader.read_bytes() {
                Some((number, bytes)) if number == wanted => return Some(bytes),
                Some(_) => {}
                None => drop(reader.read().ok()??),
            }
        }
    })
}
