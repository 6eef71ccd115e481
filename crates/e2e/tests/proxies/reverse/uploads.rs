//! Requests that their server does not read, or that their client breaks off.

use std::time::Duration;

use proctor_e2e::Fixture;
use proctor_record::event::Direction::ToServer;
use proctor_record::event::HttpFailure;
use tokio::io::AsyncWriteExt;
use tokio::net::TcpListener;
use tokio::time::timeout;

use super::faults::{CALL, call, details};
use super::raw::{PATIENCE, answer, ask, receive_head, request, send};
use super::stage::{Stage, http};

#[tokio::test]
async fn a_message_that_the_server_refuses_unread_is_in_the_record() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/mcp", listener.local_addr().unwrap());
    // It answers the head, and closes the connection while the body still comes.
    tokio::spawn(async move {
        let (stream, _) = listener.accept().await.expect("a client");
        let mut stream = tokio::io::BufReader::new(stream);
        receive_head(&mut stream).await.expect("a request");
        let refused = answer("413 Content Too Large", &[], b"too large");
        stream.write_all(&refused).await.expect("it reads");
        tokio::time::sleep(Duration::from_millis(100)).await;
    });
    let stage = Stage::open(&http(&url)).await;
    let address = stage.address();
    let text = "x".repeat(16 << 20);
    let body = CALL.replace(r#""text":"x""#, &format!(r#""text":"{text}""#));
    let request = request("POST /mcp", &address, &[], &body);
    let stream = tokio::net::TcpStream::connect(&address).await.unwrap();
    let (reading, mut writing) = stream.into_split();
    let sending = tokio::spawn(async move {
        writing.write_all(request.as_bytes()).await.unwrap();
        writing
    });
    let mut reading = tokio::io::BufReader::new(reading);
    let mut head = String::new();
    let read = tokio::io::AsyncBufReadExt::read_line(&mut reading, &mut head);
    timeout(PATIENCE, read).await.expect("an answer").unwrap();
    assert!(head.starts_with("HTTP/1.1 413 "), "{head}");
    let sent = timeout(PATIENCE, sending).await;
    let _writing = sent.expect("the proxy reads all of it").unwrap();
    let recorded = async {
        // A large message is stored as a blob.
        while !stage.kept().contains("sha256") {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    let _ = timeout(Duration::from_secs(12), recorded).await;
    let record = stage.end().await;
    let said = record.said(ToServer);
    assert_eq!(said.len(), 1, "{:?}", record.lines());
    assert!(said[0] == body, "the message is complete");
}

/// A server that answers 413 to the head of a request, and then `ends`. Gives its URL.
async fn refusing<F: Future<Output = ()> + Send>(
    ends: impl Fn(tokio::net::TcpStream) -> F + Send + Sync + 'static,
) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let address = listener.local_addr().expect("an address");
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let mut stream = tokio::io::BufReader::new(stream);
            receive_head(&mut stream).await.expect("a request");
            let refused = answer("413 Content Too Large", &[], b"too large");
            stream.write_all(&refused).await.expect("it reads");
            ends(stream.into_inner()).await;
        }
    });
    format!("http://{address}/mcp")
}

/// A call with a text of this length.
fn long_call(bytes: usize) -> String {
    let text = "x".repeat(bytes);
    CALL.replace(r#""text":"x""#, &format!(r#""text":"{text}""#))
}

/// The system may reset a connection of which the server has not read everything, while the proxy still writes.
#[tokio::test]
async fn the_response_of_a_server_that_stops_reading_reaches_the_client() {
    let url = refusing(async |stream| drop(stream)).await;
    let stage = Stage::open(&http(&url)).await;
    let address = stage.address();
    let body = long_call(3 << 20);
    for _ in 0..20 {
        let request = request("POST /mcp", &address, &[], &body);
        let stream = tokio::net::TcpStream::connect(&address).await.unwrap();
        let (reading, mut writing) = stream.into_split();
        // The proxy may close the connection before it has read all of this.
        let sending = tokio::spawn(async move { writing.write_all(request.as_bytes()).await });
        let mut reading = tokio::io::BufReader::new(reading);
        let mut head = String::new();
        let read = tokio::io::AsyncBufReadExt::read_line(&mut reading, &mut head);
        timeout(PATIENCE, read).await.expect("an answer").unwrap();
        assert!(head.starts_with("HTTP/1.1 413 "), "{head}");
        drop(sending);
    }
    let record = stage.end().await;
    assert_eq!(details(&record), Vec::<String>::new());
}

#[tokio::test]
async fn a_message_is_in_the_record_though_the_server_neither_reads_it_nor_leaves() {
    let url = refusing(async |stream| {
        let _kept = stream;
        std::future::pending::<()>().await;
    })
    .await;
    let stage = Stage::open(&http(&url)).await;
    let address = stage.address();
    // More than the buffers of the system hold, so that the proxy can't pass it on.
    let body = long_call(6 << 20);
    let mut stream = send(&address, request("POST /mcp", &address, &[], &body)).await;
    let head = timeout(PATIENCE, receive_head(&mut stream)).await.unwrap();
    assert!(head.unwrap().starts_with("HTTP/1.1 413 "));
    let record = stage.end().await;
    let said = record.said(ToServer);
    assert_eq!(said.len(), 1, "{:?}", record.lines());
    assert!(said[0] == body, "the message is complete");
}

#[tokio::test]
async fn a_client_that_breaks_off_its_request_is_no_fault_of_the_server() {
    let fixture = Fixture::http(&[]);
    let stage = Stage::open(&http(fixture.url())).await;
    let address = stage.address();
    // From then on there is a file to look into.
    assert!(ask(&address, call(&address)).await.is_some());
    let whole = request("POST /mcp", &address, &[], CALL);
    drop(send(&address, &whole[..whole.len() - 10]).await);
    let recorded = async {
        while !stage.kept().contains("broke off its request\"") {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    timeout(PATIENCE, recorded).await.expect("a failure");
    let record = stage.end().await;
    assert_eq!(details(&record), Vec::<String>::new());
    assert_eq!(record.said(ToServer), [CALL]);
    let failures: Vec<HttpFailure> = record
        .http()
        .iter()
        .filter_map(|http| http.failure)
        .collect();
    assert_eq!(failures, [HttpFailure::ClientLeft], "{:?}", record.lines());
}
