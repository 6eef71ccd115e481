//! Connections to the server that acknowledge at once a response of which more is to come.
//!
//! Its main type is [`PromptConnector`]. A server that writes the head and the body of a response apart, such as Python's
//! `http.server`, does not send the body before the head is acknowledged. Systems delay that by about 40 ms.

mod progress;

use std::future::Future;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use http::Uri;
use hyper_util::client::legacy::connect::{Connected, Connection, HttpConnector};
use hyper_util::rt::TokioIo;
use proctor_contain::os;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tower_service::Service;

use self::progress::ResponseProgress;

/// Connects over TCP.
#[derive(Debug, Clone)]
pub(super) struct PromptConnector(pub(super) HttpConnector);

impl Service<Uri> for PromptConnector {
    type Response = TokioIo<PromptStream>;
    type Error = <HttpConnector as Service<Uri>>::Error;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, Self::Error>> + Send>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        Service::<Uri>::poll_ready(&mut self.0, context)
    }

    fn call(&mut self, uri: Uri) -> Self::Future {
        let connecting = self.0.call(uri);
        Box::pin(async {
            Ok(TokioIo::new(PromptStream::new(
                connecting.await?.into_inner(),
            )))
        })
    }
}

/// A connection.
#[derive(Debug)]
pub(super) struct PromptStream {
    stream: TcpStream,
    progress: ResponseProgress,
}

impl PromptStream {
    fn new(stream: TcpStream) -> Self {
        Self {
            stream,
            progress: ResponseProgress::default(),
        }
    }
}

impl Connection for PromptStream {
    fn connected(&self) -> Connected {
        self.stream.connected()
    }
}

impl AsyncRead for PromptStream {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        let read = ready!(Pin::new(&mut self.stream).poll_read(context, buffer));
        let is_whole = self.progress.take(&buffer.filled()[before..]);
        // The next request acknowledges a whole response.
        if !is_whole {
            os::acknowledge_at_once(&self.stream);
        }
        Poll::Ready(read)
    }
}

impl AsyncWrite for PromptStream {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(context, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        parts: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write_vectored(context, parts)
    }
}
