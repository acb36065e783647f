//! A stream that is read in portions.

use std::io::{self, IoSlice};
use std::pin::Pin;
use std::task::{Context, Poll};

use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, ReadBuf, Take};

/// The most that one read gives. Servers have a buffer for each connection that grows while reads fill it, to 400 KiB, and
/// is kept: this fits into one of 64 KiB.
const PORTION: u64 = 60 << 10;

/// A stream of which little is read at once, however much there is.
pub struct Portions<S> {
    stream: Take<S>,
}

impl<S: AsyncRead> Portions<S> {
    /// This stream.
    pub fn of(stream: S) -> Self {
        Self { stream: stream.take(PORTION) }
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Portions<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        self.stream.set_limit(PORTION);
        Pin::new(&mut self.stream).poll_read(context, buffer)
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> AsyncWrite for Portions<S> {
    fn poll_write(mut self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(self.stream.get_mut()).poll_write(context, bytes)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(self.stream.get_mut()).poll_write_vectored(context, slices)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.get_ref().is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(self.stream.get_mut()).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(self.stream.get_mut()).poll_shutdown(context)
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::AsyncWriteExt as _;

    use super::*;

    #[tokio::test]
    async fn all_comes_through_in_portions() {
        let (mut far, near) = tokio::io::duplex(1 << 20);
        let mut near = Portions::of(near);
        let sent: Vec<u8> = (0..200_000_u32).map(|number| number.to_le_bytes()[0]).collect();
        far.write_all(&sent).await.expect("room");
        far.shutdown().await.expect("ends");
        let (mut read, mut buffer) = (Vec::new(), vec![0; 1 << 20]);
        loop {
            let size = near.read(&mut buffer).await.expect("reads");
            assert!(size as u64 <= PORTION);
            if size == 0 {
                break;
            }
            read.extend_from_slice(&buffer[..size]);
        }
        assert_eq!(read, sent);
        near.write_all(b"answer").await.expect("writes");
        near.shutdown().await.expect("ends");
        let mut answer = Vec::new();
        far.read_to_end(&mut answer).await.expect("reads");
        assert_eq!(answer, b"answer");
    }
}
