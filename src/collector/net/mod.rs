//! Listening, and what both sides of a connection need: HTTP servers, encodings of bodies, framed gRPC messages, TLS.

pub mod accept;
pub mod encoding;
pub mod grpc_message;
pub mod host;
pub mod http_server;
pub mod listen;
pub mod portions;
pub mod tls;
