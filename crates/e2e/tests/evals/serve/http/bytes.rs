//! A client of one request, down to the bytes.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use serde_json::Value;

use crate::serve::text;

/// What came back for one request.
pub(super) struct ReceivedBytes {
    pub(super) head: String,
    pub(super) body: Vec<u8>,
}

impl ReceivedBytes {
    pub(super) fn header(&self, name: &str) -> Option<&str> {
        let mut lines = self
            .head
            .lines()
            .skip(1)
            .filter_map(|line| line.split_once(':'));
        let found = lines.find(|(known, _)| known.eq_ignore_ascii_case(name));
        found.map(|(_, value)| value.trim())
    }

    /// The message in it, be it the body or the data of the last event.
    pub(super) fn message(&self) -> Value {
        let body = text(&self.body);
        let line = body.lines().rfind(|line| line.contains('{')).unwrap();
        serde_json::from_str(line.trim_start_matches("data:").trim()).unwrap()
    }
}

pub(super) fn open(
    url: &str,
    method: &str,
    headers: &[(&str, &str)],
    body: &[u8],
) -> BufReader<TcpStream> {
    let rest = url.strip_prefix("http://").unwrap();
    let (address, path) = rest.split_once('/').unwrap();
    let mut stream = TcpStream::connect(address).unwrap();
    stream
        .set_read_timeout(Some(Duration::from_mins(3)))
        .unwrap();
    let mut request =
        format!("{method} /{path} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n");
    for (name, value) in headers {
        request.push_str(&format!("{name}: {value}\r\n"));
    }
    if method == "POST" {
        request.push_str(&format!(
            "Content-Type: application/json\r\nContent-Length: {}\r\n",
            body.len()
        ));
    }
    stream
        .write_all(&[request.as_bytes(), b"\r\n", body].concat())
        .unwrap();
    BufReader::new(stream)
}

pub(super) fn head(stream: &mut BufReader<TcpStream>) -> String {
    let mut head = String::new();
    while !head.ends_with("\r\n\r\n") {
        assert!(stream.read_line(&mut head).unwrap() > 0, "{head}");
    }
    head
}

/// The next piece of a body that comes in chunks; nothing at its end.
pub(super) fn chunk(stream: &mut BufReader<TcpStream>) -> Vec<u8> {
    let mut size = String::new();
    stream.read_line(&mut size).unwrap();
    let mut chunk = vec![0; usize::from_str_radix(size.trim(), 16).unwrap()];
    stream.read_exact(&mut chunk).unwrap();
    stream.read_exact(&mut [0; 2]).unwrap();
    chunk
}

pub(super) fn post(url: &str, headers: &[(&str, &str)], body: &str) -> ReceivedBytes {
    let mut stream = open(url, "POST", headers, body.as_bytes());
    let mut got = ReceivedBytes {
        head: head(&mut stream),
        body: Vec::new(),
    };
    // The fixture says neither how long that is, nor that it has ended.
    if got.head.starts_with("HTTP/1.1 202") {
        return got;
    }
    if got.header("transfer-encoding").is_some() {
        loop {
            let chunk = chunk(&mut stream);
            got.body.extend(&chunk);
            if chunk.is_empty() {
                return got;
            }
        }
    }
    match got.header("content-length").map(str::parse) {
        Some(length) => {
            got.body.resize(length.unwrap(), 0);
            stream.read_exact(&mut got.body).unwrap();
        }
        None => drop(stream.read_to_end(&mut got.body).unwrap()),
    }
    got
}
