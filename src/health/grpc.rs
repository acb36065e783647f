//! gRPC probes: grpc.health.v1.

use std::net::SocketAddr;

use tonic::Code;
use tonic::transport::Endpoint;
use tonic_health::pb::HealthCheckRequest;
use tonic_health::pb::health_check_response::ServingStatus;
use tonic_health::pb::health_client::HealthClient;

use super::ask::{addresses, words};

/// Asks whether `service` is serving, at each address of the host.
pub(super) async fn ask(host: &str, port: u16, service: &str) -> Result<(), String> {
    let mut answered = None;
    let mut last = "the host has no address".to_owned();
    for address in addresses(host, port).await? {
        match ask_at(address, service).await {
            Ok(None) => return Ok(()),
            // An answer says more than another address that nobody listens on.
            Ok(Some(answer)) => answered = answered.or(Some(answer)),
            Err(error) => last = error,
        }
    }
    Err(answered.unwrap_or(last))
}

/// `None` if it is serving, else the server's answer; the error is that there was none.
async fn ask_at(address: SocketAddr, service: &str) -> Result<Option<String>, String> {
    let endpoint = Endpoint::from_shared(format!("http://{address}")).map_err(|e| e.to_string())?;
    let channel = endpoint.connect().await.map_err(|e| root_cause(&e))?;
    let request = HealthCheckRequest { service: service.to_owned() };
    Ok(match HealthClient::new(channel).check(request).await.map(|r| r.into_inner().status()) {
        Ok(ServingStatus::Serving) => None,
        Ok(status) => Some(status.as_str_name().to_owned()),
        Err(status) if status.code() == Code::NotFound => Some(format!("the server knows no service `{service}`")),
        Err(status) => Some(format!("{:?}: {}", status.code(), status.message())),
    })
}

fn root_cause(error: &tonic::transport::Error) -> String {
    let mut cause: &dyn std::error::Error = error;
    while let Some(source) = cause.source() {
        cause = source;
    }
    cause.downcast_ref::<std::io::Error>().map_or_else(|| cause.to_string(), words)
}
