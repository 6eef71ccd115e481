//! Plain sockets on both sides of the proxy.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::{TcpListener, TcpStream};

/// Longer than anything here takes.
pub const PATIENCE: Duration = Duration::from_mins(3);

/// What came in, byte for byte but for the framing of its body.
#[derive(Debug, Clone)]
pub struct RawRequest {
    pub head: String,
    pub body: Vec<u8>,
}

impl RawRequest {
    pub fn header(&self, name: &str) -> Option<&str> {
        let mut lines = self.head.lines().filter_map(|line| line.split_once(": "));
        let found = lines.find(|(known, _)| known.eq_ignore_ascii_case(name));
        found.map(|(_, value)| value)
    }

    pub fn status(&self) -> &str {
        self.head.split(' ').nth(1).unwrap_or_default()
    }

    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }
}

/// A server that gives one answer to all, given as bytes, each part after the other.
pub struct RawServer {
    pub address: String,
    seen: Arc<Mutex<Vec<RawRequest>>>,
    accepting: tokio::task::JoinHandle<()>,
}

impl RawServer {
    /// It answers with what a function makes of a request, and closes if it is told to.
    pub async fn start<F>(answer: F) -> Self
    where
        F: Fn(&RawRequest) -> Vec<Vec<u8>> + Send + Sync + 'static,
    {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let address = listener.local_addr().expect("an address").to_string();
        let seen: Arc<Mutex<Vec<RawRequest>>> = Arc::default();
        let (told, answer) = (seen.clone(), Arc::new(answer));
        let accepting = tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                tokio::spawn(talk(stream, told.clone(), answer.clone()));
            }
        });
        Self {
            address,
            seen,
            accepting,
        }
    }

    pub fn url(&self) -> String {
        format!("http://{}/mcp", self.address)
    }

    /// All that came in so far.
    pub fn seen(&self) -> Vec<RawRequest> {
        self.seen.lock().expect("nobody panicked").clone()
    }
}

impl Drop for RawServer {
    fn drop(&mut self) {
        self.accepting.abort();
    }
}

async fn talk<F>(stream: TcpStream, seen: Arc<Mutex<Vec<RawRequest>>>, answer: Arc<F>)
where
    F: Fn(&RawRequest) -> Vec<Vec<u8>>,
{
    stream.set_nodelay(true).expect("a socket");
    let mut stream = BufReader::new(stream);
    while let Some(came) = receive(&mut stream).await {
        seen.lock().expect("nobody panicked").push(came.clone());
        let parts = answer(&came);
        let closes = parts.last().is_some_and(Vec::is_empty);
        for part in parts {
            if stream.write_all(&part).await.is_err() {
                return;
            }
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
        if closes {
            return;
        }
    }
}

/// The next message of either side; nothing if there is none, or not all of it.
pub async fn receive(stream: &mut BufReader<TcpStream>) -> Option<RawRequest> {
    let head = receive_head(stream).await?;
    let mut came = RawRequest {
        head,
        body: Vec::new(),
    };
    if came.header("transfer-encoding") == Some("chunked") {
        loop {
            let chunk = receive_chunk(stream).await?;
            if chunk.is_empty() {
                return Some(came);
            }
            came.body.extend(chunk);
        }
    }
    let length = came.header("content-length").map_or("0", |l| l);
    came.body = vec![0; length.parse().ok()?];
    stream.read_exact(&mut came.body).await.ok()?;
    Some(came)
}

pub async fn receive_head(stream: &mut BufReader<TcpStream>) -> Option<String> {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        if stream.read_until(b'\n', &mut head).await.ok()? == 0 {
            return None;
        }
    }
    Some(String::from_utf8_lossy(&head).into_owned())
}

/// One chunk of a body; an empty one at its end.
pub async fn receive_chunk(stream: &mut BufReader<TcpStream>) -> Option<Vec<u8>> {
    let mut size = String::new();
    stream.read_line(&mut size).await.ok()?;
    let mut chunk = vec![0; usize::from_str_radix(size.trim(), 16).ok()?];
    stream.read_exact(&mut chunk).await.ok()?;
    stream.read_exact(&mut [0; 2]).await.ok()?;
    Some(chunk)
}

/// Opens a connection, and sends bytes on it.
pub async fn send(address: &str, bytes: impl AsRef<[u8]>) -> BufReader<TcpStream> {
    let mut stream = TcpStream::connect(address).await.expect("it listens");
    stream.write_all(bytes.as_ref()).await.expect("it reads");
    BufReader::new(stream)
}

/// Sends bytes, and receives one answer.
pub async fn ask(address: &str, bytes: impl AsRef<[u8]>) -> Option<RawRequest> {
    let mut stream = send(address, bytes).await;
    let received = tokio::time::timeout(PATIENCE, receive(&mut stream));
    received.await.expect("it answers or closes")
}

/// A request with a body, and header lines.
pub fn request(line: &str, address: &str, headers: &[&str], body: &str) -> String {
    let headers = lines(headers);
    let length = body.len();
    format!("{line} HTTP/1.1\r\nHost: {address}\r\n{headers}Content-Length: {length}\r\n\r\n{body}")
}

/// An answer with a body, and header lines.
pub fn answer(status: &str, headers: &[&str], body: &[u8]) -> Vec<u8> {
    let headers = lines(headers);
    let length = body.len();
    let head = format!("HTTP/1.1 {status}\r\n{headers}Content-Length: {length}\r\n\r\n");
    [head.as_bytes(), body].concat()
}

/// The head of an answer in chunks.
pub fn chunked(headers: &[&str]) -> Vec<u8> {
    let headers = lines(headers);
    format!("HTTP/1.1 200 OK\r\n{headers}Transfer-Encoding: chunked\r\n\r\n").into_bytes()
}

pub fn chunk(bytes: &[u8]) -> Vec<u8> {
    [format!("{:x}\r\n", bytes.len()).as_bytes(), bytes, b"\r\n"].concat()
}

fn lines(headers: &[&str]) -> String {
    headers.iter().flat_map(|line| [line, "\r\n"]).collect()
}
