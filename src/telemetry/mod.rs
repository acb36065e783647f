//! gymrun's own telemetry: events and samples as OTLP.
