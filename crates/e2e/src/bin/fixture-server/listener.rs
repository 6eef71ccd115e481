//! Listens on loopback, prints the URL, and serves every connection in its own thread.

use std::io::{self, BufReader, Read, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::sync::Arc;
use std::thread;

use crate::http::HttpRequest;

/// Whether a connection can serve another request.
#[derive(PartialEq, Eq)]
pub enum Connection {
    Reusable,
    Done,
}

/// Serves requests forever. The URL is the first line on stdout.
pub fn listen<S: Send + Sync + 'static>(
    port: u16,
    path: &str,
    state: S,
    handle: fn(&Arc<S>, &HttpRequest, &TcpStream) -> io::Result<Connection>,
) -> io::Result<()> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, port))?;
    let port = listener.local_addr()?.port();
    let mut stdout = io::stdout();
    stdout.write_all(format!("http://127.0.0.1:{port}{path}\n").as_bytes())?;
    stdout.flush()?;
    let state = Arc::new(state);
    for stream in listener.incoming() {
        let (stream, state) = (stream?, state.clone());
        // Errors of a connection concern only its client.
        thread::spawn(move || serve_connection(&state, &stream, handle));
    }
    Ok(())
}

fn serve_connection<S>(
    state: &Arc<S>,
    stream: &TcpStream,
    handle: fn(&Arc<S>, &HttpRequest, &TcpStream) -> io::Result<Connection>,
) -> io::Result<()> {
    stream.set_nodelay(true)?;
    let mut reader = BufReader::new(stream.try_clone()?);
    while let Some(request) = HttpRequest::read(&mut reader)? {
        if handle(state, &request, stream)? == Connection::Done {
            break;
        }
    }
    stream.shutdown(std::net::Shutdown::Both)
}

/// Waits until the client closes a stream on which it sends nothing more.
pub fn wait_for_close(mut stream: &TcpStream) {
    let mut bytes = [0; 64];
    while stream.read(&mut bytes).is_ok_and(|read| read > 0) {}
}
