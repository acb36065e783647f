#![expect(clippy::unwrap_used, reason = "tests may panic")]

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
