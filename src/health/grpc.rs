//! gRPC probes: grpc.health.v1.

use std::net::SocketAddr;

use tonic::Code;
use tonic::transport::Endpoint;
use tonic_health::pb::HealthCheckRequest;
use tonic_health::pb::health_check_response::ServingStatus;
use tonic_health::pb::health_client::HealthClient;

use super::ask::{Bad, words};

/// Asks whether `service` is serving.
pub(super) async fn ask(address: SocketAddr, service: &str) -> Result<(), Bad> {
    let bad = |text: String| Bad::costly(text);
    let endpoint = Endpoint::from_shared(format!("http://{address}")).map_err(|e| bad(e.to_string()))?;
    let channel = endpoint.connect().await.map_err(|error| match io_error(&error) {
        Some(error) => Bad::unconnected(error),
        None => bad(error.to_string()),
    })?;
    let request = HealthCheckRequest { service: service.to_owned() };
    match HealthClient::new(channel).check(request).await.map(|r| r.into_inner().status()) {
        Ok(ServingStatus::Serving) => Ok(()),
        Ok(status) => Err(bad(status.as_str_name().to_owned())),
        Err(status) if status.code() == Code::NotFound => Err(bad(format!("the server knows no service `{service}`"))),
        Err(status) => Err(bad(match io_error(&status) {
            Some(error) => words(error),
            None => format!("{:?}: {}", status.code(), status.message()),
        })),
    }
}

/// The error of the system at the bottom of another.
fn io_error<'a>(error: &'a (dyn std::error::Error + 'static)) -> Option<&'a std::io::Error> {
    let mut cause = error;
    loop {
        if let Some(found) = cause.downcast_ref::<std::io::Error>() {
            return Some(found);
        }
        cause = cause.source()?;
    }
}
