//! Messages of all signals.

use super::table::{Field, Kind, Message, Presence, fields};

/// Any value of an attribute or a log body.
pub static ANY_VALUE: Message = Message::new(
    "AnyValue",
    fields![
        [1, "stringValue", "string_value", Kind::String, OneOf],
        [2, "boolValue", "bool_value", Kind::Bool, OneOf],
        [3, "intValue", "int_value", Kind::Int64, OneOf],
        [4, "doubleValue", "double_value", Kind::Double, OneOf],
        [5, "arrayValue", "array_value", Kind::Message(&ARRAY_VALUE), OneOf],
        [6, "kvlistValue", "kvlist_value", Kind::Message(&KEY_VALUE_LIST), OneOf],
        [7, "bytesValue", "bytes_value", Kind::Bytes, OneOf],
        [8, "stringValueStrindex", "string_value_strindex", Kind::Int32, OneOf],
    ],
);

/// A list of values.
pub static ARRAY_VALUE: Message =
    Message::new("ArrayValue", fields![[1, "values", "values", Kind::Message(&ANY_VALUE), Repeated]]);

/// A map of values.
pub static KEY_VALUE_LIST: Message =
    Message::new("KeyValueList", fields![[1, "values", "values", Kind::Message(&KEY_VALUE), Repeated]]);

/// An attribute.
pub static KEY_VALUE: Message = Message::new(
    "KeyValue",
    fields![
        [1, "key", "key", Kind::String, Implicit],
        [2, "value", "value", Kind::Message(&ANY_VALUE), Always],
        [3, "keyStrindex", "key_strindex", Kind::Int32, Implicit],
    ],
);

/// Who recorded the items.
pub static SCOPE: Message = Message::new(
    "InstrumentationScope",
    fields![
        [1, "name", "name", Kind::String, Implicit],
        [2, "version", "version", Kind::String, Implicit],
        [3, "attributes", "attributes", Kind::Message(&KEY_VALUE), Repeated],
        [4, "droppedAttributesCount", "dropped_attributes_count", Kind::Uint32, Implicit],
    ],
);

/// What the telemetry is about.
pub static RESOURCE: Message = Message::new(
    "Resource",
    fields![
        [1, "attributes", "attributes", Kind::Message(&KEY_VALUE), Repeated],
        [2, "droppedAttributesCount", "dropped_attributes_count", Kind::Uint32, Implicit],
        [3, "entityRefs", "entity_refs", Kind::Message(&ENTITY_REF), Repeated],
    ],
);

/// Which attributes of a resource name an entity.
pub static ENTITY_REF: Message = Message::new(
    "EntityRef",
    fields![
        [1, "schemaUrl", "schema_url", Kind::String, Implicit],
        [2, "type", "type", Kind::String, Implicit],
        [3, "idKeys", "id_keys", Kind::String, Repeated],
        [4, "descriptionKeys", "description_keys", Kind::String, Repeated],
    ],
);
