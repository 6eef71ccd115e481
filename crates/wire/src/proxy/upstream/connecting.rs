//! Connections to the server that acknowledge at once what they receive.
//!
//! Its main type is [`PromptConnector`]. A server that writes the head and the body of a response apart, such as Python's
//! `http.server`, does not send the body before the head is acknowledged. Systems delay that by about 40 ms.

use std::future::Future;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use http::Uri;
use hyper::rt::{Read, ReadBufCursor, Write};
use hyper_util::client::legacy::connect::{Connected, Connection, HttpConnector};
use hyper_util::rt::TokioIo;
use proctor_contain::os;
use tokio::net::TcpStream;
use tower_service::Service;

/// Connects over TCP.
#[derive(Debug, Clone)]
pub(super) struct PromptConnector(pub(super) HttpConnector);

impl Service<Uri> for PromptConnector {
    type Response = PromptStream;
    type Error = <HttpConnector as Service<Uri>>::Error;
    type Future = Pin<Box<dyn Future<Output = Result<PromptStream, Self::Error>> + Send>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        Service::<Uri>::poll_ready(&mut self.0, context)
    }

    fn call(&mut self, uri: Uri) -> Self::Future {
        let connecting = self.0.call(uri);
        Box::pin(async { Ok(PromptStream(connecting.await?)) })
    }
}

/// A connection.
#[derive(Debug)]
pub(super) struct PromptStream(TokioIo<TcpStream>);

impl Connection for PromptStream {
    fn connected(&self) -> Connected {
        self.0.connected()
    }
}

impl Read for PromptStream {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: ReadBufCursor<'_>,
    ) -> Poll<io::Result<()>> {
        let read = ready!(Pin::new(&mut self.0).poll_read(context, buffer));
        os::acknowledge_at_once(self.0.inner());
        Poll::Ready(read)
    }
}

impl Write for PromptStream {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.0).poll_write(context, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_shutdown(context)
    }

    fn is_write_vectored(&self) -> bool {
        self.0.is_write_vectored()
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        parts: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.0).poll_write_vectored(context, parts)
    }
}
