//! One question, whatever its kind.

use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use futures_util::StreamExt as _;
use futures_util::stream::FuturesUnordered;
use tokio::net::TcpStream;
use tokio::time::{Instant, timeout};

use super::addresses::Addresses;
use super::{exec, grpc, http};

/// What is asked, with every reference filled in.
#[derive(Clone, Debug)]
pub enum TargetKind {
    /// An HTTP GET.
    Http {
        /// A name or an address.
        host: String,
        /// The port.
        port: u16,
        /// The first that is not answered 404 or 405 decides.
        paths: Vec<String>,
        /// Accepted statuses, both ends included.
        statuses: Vec<(u16, u16)>,
    },
    /// A connection that opens.
    Tcp {
        /// A name or an address.
        host: String,
        /// The port.
        port: u16,
    },
    /// A command that ends with 0.
    Exec(exec::Command),
    /// grpc.health.v1.
    Grpc {
        /// A name or an address.
        host: String,
        /// The port.
        port: u16,
        /// The service asked for; empty is the whole server.
        service: String,
    },
}

/// A question and its limit.
#[derive(Clone, Debug)]
pub struct Target {
    /// What is asked.
    pub kind: TargetKind,
    /// Limit of one request.
    pub request_timeout: Duration,
}

/// What it takes to ask again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Effort {
    /// Nobody was there: it disturbs nobody.
    None,
    /// A server had to answer.
    Little,
    /// A program had to run, or much was to be read.
    Much,
}

/// An answer that is not good.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Bad {
    /// The answer in few words: `connection refused`, `503 at /health`, `exited 1`.
    pub text: String,
    /// What it took.
    pub effort: Effort,
    /// Whether nobody listens where it was asked.
    pub refused: bool,
}

impl Bad {
    /// Words of somebody who answered.
    pub(super) fn answer(text: impl Into<String>) -> Self {
        Self { text: text.into(), effort: Effort::Little, refused: false }
    }

    /// An answer that took much.
    pub(super) fn costly(text: impl Into<String>) -> Self {
        Self { text: text.into(), effort: Effort::Much, refused: false }
    }

    /// Nobody was there to answer.
    pub(super) fn nobody(text: impl Into<String>) -> Self {
        Self { text: text.into(), effort: Effort::None, refused: false }
    }

    /// A connection that could not be made.
    pub(super) fn unconnected(error: &io::Error) -> Self {
        Self { refused: error.kind() == io::ErrorKind::ConnectionRefused, ..Self::nobody(words(error)) }
    }
}

/// How long a connection may lie idle before it is used again.
const FRESH: Duration = Duration::from_secs(1);

/// A connection that was kept, to whom, and since when.
type Kept = (SocketAddr, TcpStream, Instant);

/// Asks the same question again and again.
#[derive(Debug)]
pub struct Prober {
    target: Target,
    addresses: Addresses,
    kept: Option<Kept>,
    /// Whether somebody has taken a connection.
    heard: bool,
    /// The addresses that were asked last.
    asked: Vec<SocketAddr>,
    /// Whether all of them are this machine's own and nobody was there.
    deserted: bool,
}

impl Prober {
    /// Asks nothing yet.
    #[must_use]
    pub fn new(target: Target) -> Self {
        let addresses = match &target.kind {
            TargetKind::Http { host, port, .. }
            | TargetKind::Tcp { host, port }
            | TargetKind::Grpc { host, port, .. } => Addresses::new(host.clone(), *port),
            TargetKind::Exec(_) => Addresses::default(),
        };
        Self { target, addresses, kept: None, heard: false, asked: Vec::new(), deserted: false }
    }

    /// The limit of one question.
    pub(super) fn limit(&self) -> Duration {
        self.target.request_timeout
    }

    /// Asks once, each address of the host at the same time, each within the limit of a request. Good is the address that
    /// gave the answer; `None` if it was a command's.
    pub async fn ask(&mut self) -> Result<Option<SocketAddr>, Bad> {
        let limit = self.target.request_timeout;
        let late = || Bad::answer(format!("no answer within {} s", limit.as_secs_f64()));
        if let TargetKind::Exec(command) = &self.target.kind {
            let answer = timeout(limit, exec::ask(command)).await;
            return answer.unwrap_or_else(|_| Err(Bad { effort: Effort::Much, ..late() })).map(|()| None);
        }
        let addresses = match timeout(limit, self.addresses.get()).await {
            Ok(found) => found?,
            Err(_) => return Err(late()),
        };
        self.deserted = false;
        self.asked.clone_from(&addresses);
        let (kind, heard) = (&self.target.kind, self.heard);
        let mut kept = self.kept.take().filter(|(_, _, since)| since.elapsed() < FRESH);
        let mut questions: FuturesUnordered<_> = addresses
            .into_iter()
            .enumerate()
            .map(|(index, address)| {
                let mut open = kept.take_if(|(whose, ..)| *whose == address).map(|(_, stream, _)| stream);
                async move {
                    let answer = timeout(limit, ask_at(kind, address, &mut open, heard)).await;
                    (index, address, answer.unwrap_or_else(|_| Err(late())), open)
                }
            })
            .collect();
        let mut worst: Option<(usize, Bad)> = None;
        while let Some((index, address, answer, open)) = questions.next().await {
            let Err(bad) = answer else { return Ok(Some(address)) };
            if let Some(stream) = open {
                self.kept = Some((address, stream, Instant::now()));
            }
            // An answer says more than an address that nobody listens on; else the first address is meant.
            let tells_more = |(other, known): &(usize, Bad)| (bad.effort, *other) > (known.effort, index);
            if worst.as_ref().is_none_or(tells_more) {
                worst = Some((index, bad));
            }
        }
        let bad = worst.map_or_else(|| Bad::nobody("the host has no address"), |(_, bad)| bad);
        self.heard = bad.effort > Effort::None;
        self.deserted = !self.heard && self.asked.iter().all(|address| address.ip().is_loopback());
        Err(bad)
    }

    /// The addresses that were asked last; none if that was a command.
    #[must_use]
    pub fn asked(&self) -> &[SocketAddr] {
        &self.asked
    }

    /// Addresses of this machine, one of which must have a listener before the next answer can be another than the last
    /// one; none if that is not known.
    pub(super) fn deserted(&self) -> &[SocketAddr] {
        if self.deserted { &self.asked } else { &[] }
    }
}

async fn ask_at(kind: &TargetKind, address: SocketAddr, open: &mut Option<TcpStream>, heard: bool) -> Result<(), Bad> {
    match kind {
        TargetKind::Http { host, paths, statuses, .. } => http::ask(address, host, paths, statuses, open).await,
        TargetKind::Tcp { .. } => connect(address).await.map(drop),
        TargetKind::Grpc { service, .. } => {
            // A channel takes more than a connection: none is made before somebody is there.
            if !heard {
                connect(address).await?;
            }
            grpc::ask(address, service).await
        }
        // It has no address.
        TargetKind::Exec(_) => Ok(()),
    }
}

/// A connection of its own.
pub(super) async fn connect(address: SocketAddr) -> Result<TcpStream, Bad> {
    TcpStream::connect(address).await.map_err(|error| Bad::unconnected(&error))
}

/// An I/O error as people say it.
pub(super) fn words(error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::ConnectionRefused => "connection refused".into(),
        io::ErrorKind::ConnectionReset => "connection reset".into(),
        io::ErrorKind::HostUnreachable => "host unreachable".into(),
        io::ErrorKind::NetworkUnreachable => "network unreachable".into(),
        io::ErrorKind::UnexpectedEof => "connection closed without an answer".into(),
        _ => error.to_string(),
    }
}
