//! OTLP as a library: the wire form, JSON, views and edits, against recorded requests and the messages of
//! opentelemetry-proto.

mod arbitrary;
mod golden;
mod strategies;
mod views;
