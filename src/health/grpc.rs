//! gRPC probes: grpc.health.v1.

use tonic::Code;
use tonic::transport::Endpoint;
use tonic_health::pb::HealthCheckRequest;
use tonic_health::pb::health_check_response::ServingStatus;
use tonic_health::pb::health_client::HealthClient;

use super::ask::{addresses, words};

/// Asks whether `service` is serving, at each address of the host.
pub(super) async fn ask(host: &str, port: u16, service: &str) -> Result<(), String> {
    let mut last = "the host has no address".to_owned();
    for address in addresses(host, port).await? {
        let endpoint = Endpoint::from_shared(format!("http://{address}")).map_err(|e| e.to_string())?;
        let channel = match endpoint.connect().await {
            Ok(channel) => channel,
            Err(error) => {
                last = root_cause(&error);
                continue;
            }
        };
        let answer = HealthClient::new(channel).check(HealthCheckRequest { service: service.to_owned() }).await;
        match answer.map(|r| r.into_inner().status()) {
            Ok(ServingStatus::Serving) => return Ok(()),
            Ok(status) => last = status.as_str_name().to_owned(),
            Err(status) if status.code() == Code::NotFound => last = format!("the server knows no service `{service}`"),
            Err(status) => last = format!("{:?}: {}", status.code(), status.message()),
        }
    }
    Err(last)
}

fn root_cause(error: &tonic::transport::Error) -> String {
    let mut cause: &dyn std::error::Error = error;
    while let Some(source) = cause.source() {
        cause = source;
    }
    cause.downcast_ref::<std::io::Error>().map_or_else(|| cause.to_string(), words)
}
