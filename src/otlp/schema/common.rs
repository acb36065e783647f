//! Messages of all signals.

use super::table::{Field, FieldKind, Message, Presence, fields};

/// Any value of an attribute or a log body.
pub static ANY_VALUE: Message = Message::new(
    "AnyValue",
    fields![
        [1, "stringValue", "string_value", FieldKind::String, OneOf],
        [2, "boolValue", "bool_value", FieldKind::Bool, OneOf],
        [3, "intValue", "int_value", FieldKind::Int64, OneOf],
        [4, "doubleValue", "double_value", FieldKind::Double, OneOf],
        [5, "arrayValue", "array_value", FieldKind::Message(&ARRAY_VALUE), OneOf],
        [6, "kvlistValue", "kvlist_value", FieldKind::Message(&KEY_VALUE_LIST), OneOf],
        [7, "bytesValue", "bytes_value", FieldKind::Bytes, OneOf],
        [8, "stringValueStrindex", "string_value_strindex", FieldKind::Int32, OneOf],
    ],
);

/// A list of values.
pub static ARRAY_VALUE: Message =
    Message::new("ArrayValue", fields![[1, "values", "values", FieldKind::Message(&ANY_VALUE), Repeated]]);

/// A map of values.
pub static KEY_VALUE_LIST: Message =
    Message::new("KeyValueList", fields![[1, "values", "values", FieldKind::Message(&KEY_VALUE), Repeated]]);

/// An attribute.
pub static KEY_VALUE: Message = Message::new(
    "KeyValue",
    fields![
        [1, "key", "key", FieldKind::String, Implicit],
        [2, "value", "value", FieldKind::Message(&ANY_VALUE), Always],
        [3, "keyStrindex", "key_strindex", FieldKind::Int32, Implicit],
    ],
);

/// Who recorded the items.
pub static SCOPE: Message = Message::new(
    "InstrumentationScope",
    fields![
        [1, "name", "name", FieldKind::String, Implicit],
        [2, "version", "version", FieldKind::String, Implicit],
        [3, "attributes", "attributes", FieldKind::Message(&KEY_VALUE), Repeated],
        [4, "droppedAttributesCount", "dropped_attributes_count", FieldKind::Uint32, Implicit],
    ],
);

/// What the telemetry is about.
pub static RESOURCE: Message = Message::new(
    "Resource",
    fields![
        [1, "attributes", "attributes", FieldKind::Message(&KEY_VALUE), Repeated],
        [2, "droppedAttributesCount", "dropped_attributes_count", FieldKind::Uint32, Implicit],
        [3, "entityRefs", "entity_refs", FieldKind::Message(&ENTITY_REF), Repeated],
    ],
);

/// Which attributes of a resource name an entity.
pub static ENTITY_REF: Message = Message::new(
    "EntityRef",
    fields![
        [1, "schemaUrl", "schema_url", FieldKind::String, Implicit],
        [2, "type", "type", FieldKind::String, Implicit],
        [3, "idKeys", "id_keys", FieldKind::String, Repeated],
        [4, "descriptionKeys", "description_keys", FieldKind::String, Repeated],
    ],
);
