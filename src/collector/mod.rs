//! The embedded collector: the same collector.yaml as otelcol, as a child process.
