//! Connections to the server that acknowledge at once a response of which more is to come, and that read the response of
//! a server that no longer reads.
//!
//! Its main type is [`PromptConnector`]. A server that writes the head and the body of a response apart, such as Python's
//! `http.server`, does not send the body before the head is acknowledged. Systems delay that by about 40 ms.

mod progress;

use std::future::Future;
use std::io::{self, ErrorKind};
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
    /// Whether the server no longer reads. Its response may have arrived.
    is_refused: bool,
}

impl PromptStream {
    fn new(stream: TcpStream) -> Self {
        Self {
            stream,
            progress: ResponseProgress::default(),
            is_refused: false,
        }
    }

    /// The result of a write. If the server has closed the connection, the write never ends: after an error, the caller
    /// would not read the response. Reading ends in any case, with the response or with an error.
    fn written(
        &mut self,
        context: &mut Context<'_>,
        write: impl FnOnce(Pin<&mut TcpStream>, &mut Context<'_>) -> Poll<io::Result<usize>>,
    ) -> Poll<io::Result<usize>> {
        if self.is_refused {
            return Poll::Pending;
        }
        let written = write(Pin::new(&mut self.stream), context);
        let is_refused = |error: &io::Error| {
            let kind = error.kind();
            matches!(kind, ErrorKind::BrokenPipe | ErrorKind::ConnectionReset)
        };
        if let Poll::Ready(Err(error)) = &written
            && is_refused(error)
        {
            self.is_refused = true;
            // The caller reads before it writes again.
            context.waker().wake_by_ref();
            return Poll::Pending;
        }
        written
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
        self.written(context, |stream, context| stream.poll_write(context, bytes))
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
        self.written(context, |stream, context| {
            stream.poll_write_vectored(context, parts)
        })
    }
}
