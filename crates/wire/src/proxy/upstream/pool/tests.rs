use http_body_util::BodyExt as _;
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::{TcpListener, TcpStream};
use tokio::time::timeout;

use super::*;
use crate::proxy::upstream::Upstream;

const LIMIT: Duration = Duration::from_secs(20);

/// A server, and a client of it.
struct Place {
    server: TcpListener,
    upstream: Upstream,
}

impl Place {
    async fn new() -> Self {
        let server = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}/mcp", server.local_addr().unwrap());
        let none: Vec<(&String, &String)> = Vec::new();
        Self {
            upstream: Upstream::new(&url, none).unwrap(),
            server,
        }
    }

    /// Sends a request.
    async fn ask(&self) -> Result<http::Response<PooledBody>, String> {
        let body = http_body_util::Full::new(Bytes::from_static(b"question"));
        let body = body.map_err(|never| match never {}).boxed_unsync();
        let request = http::Request::post("/").body(body).unwrap();
        let sent = self.upstream.send(request, "/mcp").await;
        sent.map_err(|error| error.to_string())
    }

    async fn connected(&self) -> BufReader<TcpStream> {
        let accepted = timeout(LIMIT, self.server.accept()).await;
        BufReader::new(accepted.expect("a connection").unwrap().0)
    }

    /// Answers a request that arrives on a connection.
    async fn exchange(&self, stream: &mut BufReader<TcpStream>, text: &str) {
        let serve = async {
            take(stream).await;
            stream.write_all(text.as_bytes()).await.unwrap();
        };
        let read = async {
            let response = self.ask().await.expect("a response");
            response.into_body().collect().await.unwrap();
        };
        timeout(LIMIT, async { tokio::join!(serve, read) })
            .await
            .expect("an exchange on the connection that is there");
    }

    /// Makes an exchange on a new connection.
    async fn first_exchange(&self) -> BufReader<TcpStream> {
        let serve = async {
            let mut stream = self.connected().await;
            take(&mut stream).await;
            stream.write_all(SHORT.as_bytes()).await.unwrap();
            stream
        };
        let (response, stream) = tokio::join!(self.ask(), serve);
        response.unwrap().into_body().collect().await.unwrap();
        stream
    }

    /// The number of connections that could be used again.
    fn idle(&self) -> usize {
        lock(&self.upstream.pool.idle).connections.len()
    }
}

/// Reads a request.
async fn take(stream: &mut BufReader<TcpStream>) {
    let mut line = String::new();
    while line != "\r\n" {
        line.clear();
        assert_ne!(stream.read_line(&mut line).await.unwrap(), 0, "a request");
    }
    let mut body = [0; 8];
    stream.read_exact(&mut body).await.unwrap();
    assert_eq!(&body, b"question");
}

const SHORT: &str = "HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok";
const EMPTY: &str = "HTTP/1.1 202 Accepted\r\ncontent-length: 0\r\n\r\n";
const OLD: &str = "HTTP/1.0 200 OK\r\nconnection: keep-alive\r\ncontent-length: 2\r\n\r\nok";
const CHUNKED: &str = "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n";

#[tokio::test]
async fn a_connection_serves_one_exchange_after_another() {
    let place = Place::new().await;
    let mut stream = place.first_exchange().await;
    for text in [SHORT, EMPTY, CHUNKED, SHORT] {
        place.exchange(&mut stream, text).await;
        assert_eq!(place.idle(), 1);
    }
}

#[tokio::test]
async fn a_connection_whose_response_was_not_read_is_closed() {
    let place = Place::new().await;
    let serve = async {
        let mut stream = place.connected().await;
        take(&mut stream).await;
        let head = "HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\npart";
        stream.write_all(head.as_bytes()).await.unwrap();
        stream
    };
    let (response, mut stream) = tokio::join!(place.ask(), serve);
    drop(response.unwrap());
    assert_eq!(place.idle(), 0);
    let mut rest = Vec::new();
    let closed = timeout(LIMIT, stream.read_to_end(&mut rest)).await;
    // It ends, or is reset because of the unread part.
    let _ = closed.expect("the end of the connection");
}

#[tokio::test]
async fn a_connection_to_a_server_of_an_older_http_is_not_used_again() {
    let place = Place::new().await;
    let mut stream = place.first_exchange().await;
    place.exchange(&mut stream, OLD).await;
    // On such a connection, a body without a length would not be sent.
    assert_eq!(place.idle(), 0);
    let mut rest = Vec::new();
    let closed = timeout(LIMIT, stream.read_to_end(&mut rest)).await;
    assert_eq!(closed.expect("the end of the connection").unwrap(), 0);
}

#[tokio::test]
async fn a_request_on_a_connection_that_the_server_closed_is_sent_on_another() {
    let place = Place::new().await;
    drop(place.first_exchange().await);
    let has_noticed = || {
        let idle = lock(&place.upstream.pool.idle);
        idle.connections
            .iter()
            .all(|(sender, _)| sender.is_closed())
    };
    while !has_noticed() {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    assert_eq!(place.idle(), 1);
    let again = timeout(LIMIT, place.first_exchange()).await;
    again.expect("a response on another connection");
}

#[tokio::test]
async fn a_request_that_was_sent_is_not_sent_again() {
    let place = Place::new().await;
    let mut stream = place.first_exchange().await;
    // The server reads the second request, and closes the connection without a response.
    let (response, ()) = tokio::join!(place.ask(), async {
        take(&mut stream).await;
        drop(stream);
    });
    let error = response.expect_err("no response");
    assert!(
        error.starts_with("no response from http://127.0.0.1:"),
        "{error}"
    );
    let other = timeout(Duration::from_millis(100), place.server.accept()).await;
    assert!(other.is_err(), "another connection");
}

#[tokio::test]
async fn idle_connections_are_closed_after_a_while() {
    let place = Place::new().await;
    let mut stream = place.first_exchange().await;
    let mut rest = Vec::new();
    let ended = timeout(LIMIT, stream.read_to_end(&mut rest)).await;
    assert_eq!(ended.expect("the end of the connection").unwrap(), 0);
    assert_eq!(place.idle(), 0);
    assert!(!lock(&place.upstream.pool.idle).is_watched);
}

#[test]
fn a_connection_is_idle_for_less_than_the_server_says() {
    let check = |said: Option<&'static str>, expected: u64| {
        let mut headers = HeaderMap::new();
        headers.extend(said.map(|said| {
            let name = http::HeaderName::from_static("keep-alive");
            (name, http::HeaderValue::from_static(said))
        }));
        assert_eq!(
            idle_time(&headers),
            Duration::from_secs(expected),
            "{said:?}"
        );
    };
    check(None, 3);
    check(Some("timeout=5, max=1000"), 3);
    check(Some("max=5, Timeout = 2"), 1);
    check(Some("timeout=1"), 0);
    check(Some("timeout=0"), 0);
    check(Some("timeout=soon"), 3);
    check(Some("5"), 3);
}
