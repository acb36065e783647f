//! Starting and stopping.

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::{BoxFuture, join_all};
use tokio::task::JoinHandle;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use super::config::{GrpcSettings, HttpSettings};
use super::intake::Intake;
use super::{grpc, http};
use crate::collector::component::{Context, Outputs, Receiver, Running};
use crate::collector::deadline::Deadline;
use crate::collector::net::accept::Connections;
use crate::collector::net::listen::listen;
use crate::collector::tasks::ended;
use crate::diag::Problem;

/// So long those are waited for that are refused because there is no more time.
const REFUSED: Duration = Duration::from_millis(300);

/// A checked receiver.
pub(super) struct OtlpReceiver {
    pub grpc: Option<GrpcSettings>,
    pub http: Option<HttpSettings>,
}

impl Receiver for OtlpReceiver {
    fn endpoints(&self) -> Vec<(&'static str, &str)> {
        let grpc = self.grpc.iter().map(|settings| ("protocols.grpc.endpoint", settings.endpoint.as_str()));
        grpc.chain(self.http.iter().map(|settings| ("protocols.http.endpoint", settings.endpoint.as_str()))).collect()
    }

    fn start(
        self: Box<Self>,
        context: Context,
        outputs: Outputs,
    ) -> BoxFuture<'static, Result<Box<dyn Running>, Problem>> {
        Box::pin(async move {
            let running = self.listen(context, outputs).await?;
            Ok(Box::new(running) as Box<dyn Running>)
        })
    }
}

impl OtlpReceiver {
    pub(super) async fn listen(self, context: Context, outputs: Outputs) -> Result<Listening, Problem> {
        let (stop, abandoned) = (CancellationToken::new(), CancellationToken::new());
        let intake = Arc::new(Intake::new(context.clone(), outputs, stop.clone(), abandoned.clone()));
        // Both are bound before one of them answers.
        let grpc = match self.grpc {
            Some(settings) => Some((listen(&settings.endpoint).await?, settings)),
            None => None,
        };
        let http = match self.http {
            Some(settings) => Some((listen(&settings.endpoint).await?, settings)),
            None => None,
        };
        let mut servers = Vec::new();
        if let Some(((listener, address), settings)) = grpc {
            context.log.info(&format!("listens on {address} for OTLP/gRPC"));
            let connections = Connections::new(listener, address, context.clone());
            let (intake, stop, context) = (Arc::clone(&intake), stop.clone(), context.clone());
            servers.push(tokio::spawn(async move {
                if let Err(error) = grpc::serve(connections, settings, intake, stop).await {
                    context.failed(&format!("the gRPC server on {address} ended: {error}"));
                }
            }));
        }
        if let Some(((listener, address), settings)) = http {
            context.log.info(&format!("listens on {address} for OTLP/HTTP"));
            let connections = Connections::new(listener, address, context);
            servers.push(tokio::spawn(http::serve(connections, settings, intake.clone(), stop.clone())));
        }
        Ok(Listening { stop, abandoned, intake, servers })
    }
}

/// A receiver that answers.
pub(super) struct Listening {
    /// No new requests.
    stop: CancellationToken,
    /// No more time for those in flight.
    abandoned: CancellationToken,
    intake: Arc<Intake>,
    servers: Vec<JoinHandle<()>>,
}

impl Running for Listening {
    fn shutdown(self: Box<Self>, deadline: Deadline) -> BoxFuture<'static, ()> {
        Box::pin(async move {
            let Self { stop, abandoned, intake, mut servers } = *self;
            stop.cancel();
            let all = join_all(servers.iter_mut());
            let rest = async {
                if deadline.until(intake.under_way.nothing_to_expect()).await.is_none() {
                    // Refuses what is in flight.
                    abandoned.cancel();
                    let _ = timeout(REFUSED, intake.under_way.answered()).await;
                }
            };
            tokio::select! {
                biased;
                _ = all => return,
                () = rest => {}
            }
            join_all(servers.into_iter().map(ended)).await;
        })
    }
}
