//! OTLP/JSON to wire form, with the rules of the reference: names in `lowerCamelCase` or `snake_case`,
//! enums as number or name, 64-bit numbers as number or text, ids in hexadecimal of either case, bytes
//! in base64, unknown keys skipped, `null` for no text, list or message, the last of a repeated key.

use std::borrow::Cow;
use std::str::FromStr;
use std::sync::Arc;

use bytes::Bytes;
use data_encoding::{BASE64_MIME_PERMISSIVE, HEXLOWER_PERMISSIVE};

use crate::diag::excerpt;
use crate::otlp::metric::Metric;
use crate::otlp::payload::{Payload, ResourceItems, ScopeItems, Signal};
use crate::otlp::records::{Items, Records};
use crate::otlp::resource::Resource;
use crate::otlp::schema::{self, Field, FieldKind, Message, Presence};
use crate::otlp::validate::DecodeError;
use crate::otlp::value::Text;
use crate::otlp::wire::{MAX_DEPTH, Writer};

use super::read::JsonReader;

type Decoded<T = ()> = Result<T, DecodeError>;

/// Keys that depend on the signal: of the resources, scopes, former scopes and items.
const fn keys(signal: Signal) -> [[&'static str; 2]; 4] {
    match signal {
        Signal::Traces => [
            ["resourceSpans", "resource_spans"],
            ["scopeSpans", "scope_spans"],
            ["deprecatedScopeSpans", "deprecated_scope_spans"],
            ["spans", "spans"],
        ],
        Signal::Metrics => [
            ["resourceMetrics", "resource_metrics"],
            ["scopeMetrics", "scope_metrics"],
            ["deprecatedScopeMetrics", "deprecated_scope_metrics"],
            ["metrics", "metrics"],
        ],
        Signal::Logs => [
            ["resourceLogs", "resource_logs"],
            ["scopeLogs", "scope_logs"],
            ["deprecatedScopeLogs", "deprecated_scope_logs"],
            ["logRecords", "log_records"],
        ],
    }
}

fn is(key: &[u8], names: [&str; 2]) -> bool {
    names.iter().any(|name| name.as_bytes() == key)
}

const SCHEMA_URL: [&str; 2] = ["schemaUrl", "schema_url"];

impl Payload {
    /// Reads an export request of OTLP/JSON.
    pub fn from_json(signal: Signal, text: &[u8]) -> Result<Self, DecodeError> {
        let [resources, scopes, deprecated, items] = keys(signal);
        let mut payload = Self::new(signal);
        let reader = &mut JsonReader::new(text);
        nullable_object(reader, |reader, key| {
            if !is(key, resources) {
                return reader.skip(1);
            }
            nullable_list(reader, |reader| {
                let (mut entry, mut former) = (ResourceItems::default(), Vec::new());
                let mut resource = Writer::new();
                nullable_object(reader, |reader, key| match key {
                    b"resource" => decode_message(reader, &mut resource, &schema::RESOURCE, 2),
                    key if is(key, scopes) => nullable_list(reader, |reader| {
                        entry.scopes.push(decode_scope(reader, signal, items)?);
                        Ok(())
                    }),
                    key if is(key, deprecated) => nullable_list(reader, |reader| {
                        former.push(decode_scope(reader, signal, items)?);
                        Ok(())
                    }),
                    key if is(key, SCHEMA_URL) => decode_text(reader).map(|text| entry.schema_url = text),
                    _ => reader.skip(2),
                })?;
                let (wire, mut decoded) = (resource.into_bytes(), Resource::default());
                decoded.merge(&wire, &wire);
                entry.resource = Arc::new(decoded);
                if entry.scopes.is_empty() {
                    entry.scopes = former;
                }
                payload.resources.push(entry);
                Ok(())
            })
        })?;
        Ok(payload)
    }
}

fn decode_scope(reader: &mut JsonReader<'_>, signal: Signal, items: [&str; 2]) -> Decoded<ScopeItems> {
    let (mut scope, mut schema_url) = (Writer::new(), Text::default());
    let (mut records, mut count, mut metrics) = (Writer::new(), 0, Vec::new());
    let item = signal.item();
    nullable_object(reader, |reader, key| match key {
        b"scope" => decode_message(reader, &mut scope, &schema::SCOPE, 3),
        key if is(key, items) => nullable_list(reader, |reader| {
            if signal == Signal::Metrics {
                let mut metric = Writer::new();
                decode_message(reader, &mut metric, item, 3)?;
                let wire = metric.into_bytes();
                metrics.push(Metric::decode(&wire, &wire));
            } else {
                let start = records.start_message(Records::FIELD);
                decode_message(reader, &mut records, item, 3)?;
                records.end_message(start);
                count += 1;
            }
            Ok(())
        }),
        key if is(key, SCHEMA_URL) => decode_text(reader).map(|text| schema_url = text),
        _ => reader.skip(3),
    })?;
    let items = match signal {
        Signal::Metrics => Items::Metrics(metrics),
        Signal::Traces | Signal::Logs => {
            let mut run = Records::default();
            run.push_run(records.into_bytes(), count);
            Items::Records(run)
        }
    };
    Ok(ScopeItems { scope: scope.into_bytes(), schema_url, items })
}

fn nullable_object(reader: &mut JsonReader<'_>, take: impl FnMut(&mut JsonReader<'_>, &[u8]) -> Decoded) -> Decoded {
    if reader.null() { Ok(()) } else { reader.object(take) }
}

fn nullable_list(reader: &mut JsonReader<'_>, take: impl FnMut(&mut JsonReader<'_>) -> Decoded) -> Decoded {
    if reader.null() { Ok(()) } else { reader.list(take) }
}

fn decode_text(reader: &mut JsonReader<'_>) -> Decoded<Text> {
    if reader.null() {
        return Ok(Text::default());
    }
    Ok(Bytes::from(reader.string()?.into_owned()).into())
}

/// Appends the fields of an object to `writer`.
fn decode_message(
    reader: &mut JsonReader<'_>,
    writer: &mut Writer,
    message: &'static Message,
    depth: usize,
) -> Decoded {
    if depth > MAX_DEPTH {
        return Err(reader.error("nested too deeply"));
    }
    // Senders write fields in order: the next key is probably that of the next field.
    let (mut next, mut seen) = (0, 0_u32);
    nullable_object(reader, |reader, key| {
        let Some(slot) = find(message, key, next) else { return reader.skip(depth) };
        let field = &message.fields[slot];
        let again = seen & 1 << slot != 0;
        (next, seen) = (slot + 1, seen | 1 << slot);
        decode_field(reader, writer, field, again, depth).map_err(|error| error.within(field.name()))
    })
}

fn find(message: &Message, key: &[u8], next: usize) -> Option<usize> {
    let matches = |field: &Field| field.name().as_bytes() == key || field.snake_name.as_bytes() == key;
    if message.fields.get(next).is_some_and(matches) {
        return Some(next);
    }
    message.fields.iter().position(matches)
}

/// Appends one field. `again` says that the key was there before: then a default is written too, since
/// it takes the place of the former value.
fn decode_field(
    reader: &mut JsonReader<'_>,
    writer: &mut Writer,
    field: &'static Field,
    again: bool,
    depth: usize,
) -> Decoded {
    let number = field.number;
    match (field.presence, field.kind) {
        (Presence::Repeated, FieldKind::Message(message)) => nullable_list(reader, |reader| {
            let start = writer.start_message(number);
            decode_message(reader, writer, message, depth + 1)?;
            writer.end_message(start);
            Ok(())
        }),
        (Presence::Repeated, FieldKind::String) => nullable_list(reader, |reader| {
            writer.bytes_field(number, decode_text(reader)?.as_bytes());
            Ok(())
        }),
        (Presence::Repeated, kind) => decode_packed(reader, writer, number, kind),
        (Presence::Always, FieldKind::Message(_)) if reader.null() => Ok(()),
        (_, FieldKind::Message(message)) => {
            let start = writer.start_message(number);
            decode_message(reader, writer, message, depth + 1)?;
            writer.end_message(start);
            Ok(())
        }
        (presence, kind) => {
            let keep_default = again || presence != Presence::Implicit;
            decode_scalar(reader, kind)?.write(writer, number, keep_default);
            Ok(())
        }
    }
}

fn decode_packed(reader: &mut JsonReader<'_>, writer: &mut Writer, number: u32, kind: FieldKind) -> Decoded {
    let before = writer.len();
    let start = writer.start_message(number);
    let content = writer.len();
    nullable_list(reader, |reader| {
        match decode_scalar(reader, kind)? {
            Scalar::Varint(value) => writer.varint(value),
            Scalar::Fixed64(value) => writer.raw(&value.to_le_bytes()),
            Scalar::Fixed32(value) => writer.raw(&value.to_le_bytes()),
            Scalar::Bytes(_) => {}
        }
        Ok(())
    })?;
    if writer.len() == content {
        writer.truncate(before);
    } else {
        writer.end_message(start);
    }
    Ok(())
}

/// A scalar in the wire type of its field.
enum Scalar<'a> {
    Varint(u64),
    Fixed64(u64),
    Fixed32(u32),
    Bytes(Cow<'a, [u8]>),
}

impl Scalar<'_> {
    fn write(&self, writer: &mut Writer, number: u32, keep_default: bool) {
        match self {
            Self::Varint(value) if *value != 0 || keep_default => writer.varint_field(number, *value),
            Self::Fixed64(value) if *value != 0 || keep_default => writer.fixed64_field(number, *value),
            Self::Fixed32(value) if *value != 0 || keep_default => writer.fixed32_field(number, *value),
            Self::Bytes(bytes) if !bytes.is_empty() || keep_default => writer.bytes_field(number, bytes),
            _ => {}
        }
    }
}

fn decode_scalar<'a>(reader: &mut JsonReader<'a>, kind: FieldKind) -> Decoded<Scalar<'a>> {
    Ok(match kind {
        FieldKind::String if reader.null() => Scalar::Bytes(Cow::Borrowed(&[])),
        FieldKind::String => Scalar::Bytes(reader.string()?),
        FieldKind::Bytes => Scalar::Bytes(decode_base64(reader)?.into()),
        FieldKind::Id(length) => Scalar::Bytes(decode_id(reader, length)?.into()),
        FieldKind::Bool => Scalar::Varint(reader.boolean()?.into()),
        FieldKind::Int32 => Scalar::Varint(i64::from(decode_signed::<i32>(reader)?).cast_unsigned()),
        FieldKind::Sint32 => {
            let value = decode_signed::<i32>(reader)?;
            Scalar::Varint((value << 1 ^ value >> 31).cast_unsigned().into())
        }
        FieldKind::Enum(names) => Scalar::Varint(i64::from(decode_enum(reader, names)?).cast_unsigned()),
        FieldKind::Uint32 => Scalar::Varint(decode_unsigned::<u32>(reader)?.into()),
        FieldKind::Fixed32 => Scalar::Fixed32(decode_unsigned(reader)?),
        FieldKind::Int64 => Scalar::Varint(decode_signed::<i64>(reader)?.cast_unsigned()),
        FieldKind::Uint64 => Scalar::Varint(decode_unsigned(reader)?),
        FieldKind::Sfixed64 => Scalar::Fixed64(decode_signed::<i64>(reader)?.cast_unsigned()),
        FieldKind::Fixed64 => Scalar::Fixed64(decode_unsigned(reader)?),
        FieldKind::Double => Scalar::Fixed64(decode_double(reader)?.to_bits()),
        FieldKind::Message(_) => return Err(reader.error("a message where a scalar is expected")),
    })
}

/// The text of a number, which may stand in quotes.
fn number_text<'a>(reader: &mut JsonReader<'a>) -> Decoded<Cow<'a, str>> {
    if reader.peek() != Some(b'"') {
        return reader.number().map(Cow::Borrowed);
    }
    match reader.string()? {
        Cow::Borrowed(text) => std::str::from_utf8(text).map(Cow::Borrowed).map_err(|_| reader.error("not a number")),
        Cow::Owned(text) => String::from_utf8(text).map(Cow::Owned).map_err(|_| reader.error("not a number")),
    }
}

fn decode_signed<N: FromStr>(reader: &mut JsonReader<'_>) -> Decoded<N> {
    let text = number_text(reader)?;
    text.parse().map_err(|_| reader.error(&format!("`{}` is no integer of this size", excerpt(&text, 40))))
}

fn decode_unsigned<N: FromStr>(reader: &mut JsonReader<'_>) -> Decoded<N> {
    let text = number_text(reader)?;
    let number = if text.starts_with('+') { None } else { text.parse().ok() };
    number.ok_or_else(|| reader.error(&format!("`{}` is no integer from 0 on of this size", excerpt(&text, 40))))
}

fn decode_double(reader: &mut JsonReader<'_>) -> Decoded<f64> {
    let text = number_text(reader)?;
    let signed_nan = text.starts_with(['+', '-']) && text[1..].eq_ignore_ascii_case("nan");
    let number = text.parse::<f64>().ok().filter(|number| {
        // A number too great for a double is refused; infinity has to be said.
        !signed_nan && (number.is_finite() || !text.bytes().any(|byte| byte.is_ascii_digit()))
    });
    // The NaN that Go reads, which is not that of Rust.
    let number = number.map(|number| if number.is_nan() { f64::from_bits(0x7ff8_0000_0000_0001) } else { number });
    number.ok_or_else(|| reader.error(&format!("`{}` is no double", excerpt(&text, 40))))
}

fn decode_enum(reader: &mut JsonReader<'_>, names: &[&str]) -> Decoded<i32> {
    if reader.peek() != Some(b'"') {
        return decode_signed(reader);
    }
    let name = reader.string()?;
    let place = names.iter().position(|known| known.as_bytes() == &*name);
    place.and_then(|place| i32::try_from(place).ok()).ok_or_else(|| {
        let name = String::from_utf8_lossy(&name);
        reader.error(&format!("unknown name `{}`", excerpt(&name, 40)))
    })
}

/// No id is an empty text or one of zeros.
fn decode_id(reader: &mut JsonReader<'_>, length: usize) -> Decoded<Vec<u8>> {
    let text = reader.string()?;
    if text.is_empty() {
        return Ok(Vec::new());
    }
    if text.len() != 2 * length {
        return Err(reader.error(&format!("an id has {} hexadecimal digits, not {}", 2 * length, text.len())));
    }
    let id = HEXLOWER_PERMISSIVE.decode(&text).map_err(|_| reader.error("an id has hexadecimal digits only"))?;
    Ok(if id.iter().all(|byte| *byte == 0) { Vec::new() } else { id })
}

fn decode_base64(reader: &mut JsonReader<'_>) -> Decoded<Vec<u8>> {
    let text = reader.string()?;
    // The permissive one: line ends pass and superfluous bits are not looked at, as in the reference.
    BASE64_MIME_PERMISSIVE.decode(&text).map_err(|_| reader.error("not base64 of the standard alphabet with padding"))
}
