//! OTLP: the wire form, views on it, JSON in and out.
