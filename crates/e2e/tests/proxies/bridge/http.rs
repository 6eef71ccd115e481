//! A client on bytes, which can be as rude as it likes.

use std::time::Duration;

use proctor_wire::proxy::Bridge;
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::TcpStream;
use tokio::time::timeout;

/// How long anything may take before it counts as hanging.
const BOUND: Duration = Duration::from_mins(5);
/// What official clients accept.
const BOTH: (&str, &str) = ("accept", "application/json, text/event-stream");

/// Somebody who knows the way.
#[derive(Clone)]
pub struct Http {
    address: String,
    path: String,
    /// What goes with every request.
    pub headers: Vec<(String, String)>,
}

/// A response, as far as it has come.
pub struct Reply {
    pub status: u16,
    /// In lower case.
    pub headers: Vec<(String, String)>,
    reader: BufReader<TcpStream>,
}

impl Http {
    pub fn to(bridge: &Bridge) -> Self {
        Self::at(bridge.url(), bridge.headers())
    }

    pub fn at(url: &str, headers: &[(String, String)]) -> Self {
        let rest = url.strip_prefix("http://").expect("the URL is one of HTTP");
        let (address, path) = rest.split_once('/').expect("the URL has a path");
        Self {
            address: address.to_owned(),
            path: format!("/{path}"),
            headers: headers.to_vec(),
        }
    }

    pub fn with(&self, name: &str, value: &str) -> Self {
        let mut other = self.clone();
        other.headers.retain(|(known, _)| known != name);
        other.headers.push((name.to_owned(), value.to_owned()));
        other
    }

    pub fn without(&self, name: &str) -> Self {
        let mut other = self.clone();
        other.headers.retain(|(known, _)| known != name);
        other
    }

    pub fn on(&self, path: &str) -> Self {
        let mut other = self.clone();
        path.clone_into(&mut other.path);
        other
    }

    pub fn path(&self) -> &str {
        &self.path
    }

    /// Opens a session; gives a client of it, and the answer.
    pub async fn initialize(&self) -> (Self, Value) {
        let params = json!({
            "protocolVersion": "2025-11-25",
            "capabilities": {"sampling": {}, "elicitation": {}, "roots": {}},
            "clientInfo": {"name": "raw", "version": "0"},
        });
        let message =
            json!({"jsonrpc": "2.0", "id": "init", "method": "initialize", "params": params});
        let reply = self.post(&message).await;
        assert_eq!(reply.status, 200);
        let session = reply.header("mcp-session-id").expect("a session is opened");
        let client = self.with("mcp-session-id", &session);
        let answer = reply.json().await;
        let told = json!({"jsonrpc": "2.0", "method": "notifications/initialized"});
        assert_eq!(client.post(&told).await.status, 202);
        (client, answer)
    }

    pub async fn post(&self, message: &Value) -> Reply {
        self.try_post(message).await.expect("there is a response")
    }

    /// Nothing if the connection breaks before there is a response.
    pub async fn try_post(&self, message: &Value) -> Option<Reply> {
        self.send("POST", message.to_string().as_bytes()).await
    }

    pub async fn get(&self) -> Reply {
        let reply = self.send("GET", b"").await;
        reply.expect("there is a response")
    }

    pub async fn send(&self, method: &str, body: &[u8]) -> Option<Reply> {
        let mut head = format!("{method} {} HTTP/1.1\r\n", self.path);
        let has = |name: &str| self.headers.iter().any(|(known, _)| known == name);
        if !has("host") {
            head += &format!("host: {}\r\n", self.address);
        }
        if !has(BOTH.0) {
            head += &format!("{}: {}\r\n", BOTH.0, BOTH.1);
        }
        if !body.is_empty() && !has("transfer-encoding") {
            head += &format!("content-length: {}\r\n", body.len());
        }
        for (name, value) in &self.headers {
            head += &format!("{name}: {value}\r\n");
        }
        head += "\r\n";
        let mut stream = TcpStream::connect(&self.address).await.ok()?;
        stream.write_all(head.as_bytes()).await.ok()?;
        // Who is refused early is not read to the end.
        let _ = stream.write_all(body).await;
        let mut reader = BufReader::new(stream);
        let status = line(&mut reader).await?;
        let status = status.split(' ').nth(1)?.parse().ok()?;
        let mut headers = Vec::new();
        loop {
            let next = line(&mut reader).await?;
            let Some((name, value)) = next.split_once(':') else {
                break;
            };
            headers.push((name.to_ascii_lowercase(), value.trim().to_owned()));
        }
        Some(Reply {
            status,
            headers,
            reader,
        })
    }
}

impl Reply {
    pub fn header(&self, name: &str) -> Option<String> {
        let found = self.headers.iter().find(|(known, _)| known == name);
        found.map(|(_, value)| value.clone())
    }

    pub fn is_stream(&self) -> bool {
        self.header("content-type").as_deref() == Some("text/event-stream")
    }

    /// The whole body.
    pub async fn text(mut self) -> String {
        let mut body = Vec::new();
        if let Some(length) = self.header("content-length") {
            body.resize(length.parse().expect("a length is a number"), 0);
            let reading = self.reader.read_exact(&mut body);
            let read = timeout(BOUND, reading).await.expect("the body comes");
            read.expect("the body is whole");
        } else {
            while let Some(chunk) = self.chunk().await {
                body.extend(chunk);
            }
        }
        String::from_utf8(body).expect("the body is text")
    }

    /// The answer, whichever way it comes: a busy machine may take longer than it is held back.
    pub async fn json(mut self) -> Value {
        if self.is_stream() {
            return self.events().await.pop().expect("there is an answer");
        }
        let text = self.text().await;
        serde_json::from_str(&text).unwrap_or_else(|_| panic!("`{text}` is no JSON"))
    }

    /// That there is no answer, and why, as far as the client is told.
    pub async fn fails(mut self, why: &str) {
        if self.is_stream() {
            assert!(self.is_cut().await, "{why}");
        } else {
            assert_eq!(self.status, 502, "{why}");
            let text = self.text().await;
            assert!(text.contains(why), "`{text}` does not say `{why}`");
        }
    }

    /// The next message of an event stream; nothing at its end, whether it should be there or not.
    pub async fn event(&mut self) -> Option<Value> {
        let mut text = Vec::new();
        // An event comes in parts, each in a chunk of its own.
        while !text.ends_with(b"\n\n") {
            text.extend(self.chunk().await?);
        }
        let text = String::from_utf8(text).expect("an event is text");
        let data = text.lines().find_map(|line| line.strip_prefix("data: "));
        let data = data.expect("an event has data");
        assert_eq!(text.matches("data: ").count(), 1, "{text}");
        Some(serde_json::from_str(data).expect("the data is JSON"))
    }

    /// Everything that still comes, up to the answer.
    pub async fn events(&mut self) -> Vec<Value> {
        let mut all = Vec::new();
        while let Some(event) = self.event().await {
            all.push(event);
        }
        all
    }

    /// Whether an event stream ends without the end that it should have.
    pub async fn is_cut(&mut self) -> bool {
        let mut rest = Vec::new();
        let is_whole = |rest: &[u8]| rest.ends_with(b"0\r\n\r\n");
        while !is_whole(&rest) {
            let reading = self.reader.read_buf(&mut rest);
            // A reset is an end, too.
            let read = timeout(BOUND, reading).await.expect("the stream ends");
            if read.is_ok_and(|read| read > 0) {
                continue;
            }
            return true;
        }
        false
    }

    async fn chunk(&mut self) -> Option<Vec<u8>> {
        let size = line(&mut self.reader).await?;
        let size = usize::from_str_radix(size.trim(), 16).ok()?;
        let mut chunk = vec![0; size + 2];
        let reading = self.reader.read_exact(&mut chunk);
        timeout(BOUND, reading)
            .await
            .expect("the chunk comes")
            .ok()?;
        chunk.truncate(size);
        (size > 0).then_some(chunk)
    }
}

async fn line(reader: &mut BufReader<TcpStream>) -> Option<String> {
    let mut line = String::new();
    let reading = reader.read_line(&mut line);
    let read = timeout(BOUND, reading)
        .await
        .expect("the line comes")
        .ok()?;
    (read > 0).then(|| line.trim_end().to_owned())
}
