//! The receiver over real sockets.

mod configuration;
mod grpc;
mod http;
mod server;
mod shutdown;
