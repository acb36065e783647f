//! The `otlp` receiver: OTLP/gRPC and OTLP/HTTP (protobuf and JSON), as the reference collector answers them.
//!
//! A request is taken as a whole or not at all: the answer is success (an empty partial success), or the refusal of the
//! pipelines as a google.rpc.Status. What cannot be read never reaches the pipelines; a request without items neither.
//! The bytes of a protobuf request are validated and passed on as they are ([`crate::otlp::Payload`]).

mod body;
mod config;
mod grpc;
mod http;
mod intake;
mod leaving;
mod path;
mod protocol;
mod receiver;
mod status;
#[cfg(test)]
mod tests;
mod under_way;

pub use config::FACTORY;
