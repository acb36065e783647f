//! Readiness probes: HTTP, TCP, exec, gRPC.
