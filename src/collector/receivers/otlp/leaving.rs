//! Connections that end when their server does, or when they are too old.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio::time::{Sleep, sleep};
use tokio_util::sync::{CancellationToken, WaitForCancellationFutureOwned};
use tonic::transport::server::{Connected, TcpConnectInfo};

/// A connection. The library's server gives each to a task of its own, which a server that is dropped leaves behind.
pub(super) struct Leaving {
    stream: TcpStream,
    gone: Pin<Box<WaitForCancellationFutureOwned>>,
    too_old: Option<Pin<Box<Sleep>>>,
}

impl Leaving {
    /// One that breaks off when `gone` is cancelled, or after the longest time that it may take.
    pub fn new(stream: TcpStream, gone: &CancellationToken, longest: Option<Duration>) -> Self {
        let too_old = longest.map(|longest| Box::pin(sleep(longest)));
        Self { stream, gone: Box::pin(gone.clone().cancelled_owned()), too_old }
    }

    fn is_over(&mut self, context: &mut Context<'_>) -> bool {
        let is_too_old = |end: &mut Pin<Box<Sleep>>| end.is_elapsed() || end.as_mut().poll(context).is_ready();
        self.too_old.as_mut().is_some_and(is_too_old) || self.gone.as_mut().poll(context).is_ready()
    }
}

impl AsyncRead for Leaving {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        if self.is_over(context) {
            return Poll::Ready(Err(io::ErrorKind::ConnectionAborted.into()));
        }
        Pin::new(&mut self.stream).poll_read(context, buffer)
    }
}

impl AsyncWrite for Leaving {
    fn poll_write(mut self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(context, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        parts: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write_vectored(context, parts)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }
}

impl Connected for Leaving {
    type ConnectInfo = TcpConnectInfo;

    fn connect_info(&self) -> Self::ConnectInfo {
        self.stream.connect_info()
    }
}
