//! A stream to a service, over TCP, TLS or a unix socket.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpStream, UnixStream};

use crate::address::Address;

#[derive(Debug)]
pub(crate) enum Stream {
    Tcp(TcpStream),
    Unix(UnixStream),
    #[cfg(feature = "tls")]
    Tls(Box<tokio_rustls::client::TlsStream<TcpStream>>),
}

/// What TLS needs; nothing without the feature.
#[derive(Clone, Default)]
pub(crate) struct TlsSettings {
    #[cfg(feature = "tls")]
    pub(crate) config: Option<std::sync::Arc<tokio_rustls::rustls::ClientConfig>>,
}

impl Stream {
    pub(crate) async fn connect(address: &Address, tls: &TlsSettings) -> io::Result<Self> {
        match address {
            Address::Unix(path) => Ok(Self::Unix(UnixStream::connect(path).await?)),
            Address::Tcp { host, port } => Ok(Self::Tcp(tcp(host, *port).await?)),
            #[cfg(feature = "tls")]
            Address::Tls { host, port } => {
                let stream = tcp(host, *port).await?;
                Ok(Self::Tls(Box::new(crate::tls::handshake(tls, host, stream).await?)))
            }
            #[cfg(not(feature = "tls"))]
            Address::Tls { .. } => {
                let _ = tls;
                Err(io::Error::other("built without the feature \"tls\""))
            }
        }
    }

    pub(crate) fn poll_read(
        &mut self,
        cx: &mut Context<'_>,
        into: &mut [u8],
    ) -> Poll<io::Result<usize>> {
        let mut buffer = ReadBuf::new(into);
        let done = match self {
            Self::Tcp(stream) => Pin::new(stream).poll_read(cx, &mut buffer),
            Self::Unix(stream) => Pin::new(stream).poll_read(cx, &mut buffer),
            #[cfg(feature = "tls")]
            Self::Tls(stream) => Pin::new(stream).poll_read(cx, &mut buffer),
        };
        done.map_ok(|()| buffer.filled().len())
    }

    pub(crate) fn poll_write(
        &mut self,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        match self {
            Self::Tcp(stream) => Pin::new(stream).poll_write(cx, bytes),
            Self::Unix(stream) => Pin::new(stream).poll_write(cx, bytes),
            #[cfg(feature = "tls")]
            Self::Tls(stream) => Pin::new(stream).poll_write(cx, bytes),
        }
    }

    /// Only TLS keeps anything back.
    pub(crate) fn poll_flush(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let _ = &cx;
        match self {
            Self::Tcp(_) | Self::Unix(_) => Poll::Ready(Ok(())),
            #[cfg(feature = "tls")]
            Self::Tls(stream) => Pin::new(stream).poll_flush(cx),
        }
    }
}

async fn tcp(host: &str, port: u16) -> io::Result<TcpStream> {
    let stream = TcpStream::connect((host, port)).await?;
    // Questions are small and answers are awaited.
    stream.set_nodelay(true)?;
    Ok(stream)
}
