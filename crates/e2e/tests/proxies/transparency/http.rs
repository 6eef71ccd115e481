//! As much of an HTTP client as the script needs, on bytes: messages as they stand in bodies and streams.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::time::Duration;

/// How long nothing may come.
const QUIET: Duration = Duration::from_mins(3);

/// A response, as far as it has come.
pub struct Response {
    head: String,
    connection: TcpStream,
    body: BufReader<Box<dyn Read + Send>>,
}

/// Asks, on a connection of its own.
pub fn ask(method: &str, url: &str, headers: &[(String, String)], body: &str) -> Response {
    let rest = url.strip_prefix("http://").expect("a URL is on HTTP");
    let (address, path) = rest.split_once('/').expect("a URL has a path");
    let mut stream = TcpStream::connect(address).expect("somebody listens");
    stream
        .set_read_timeout(Some(QUIET))
        .expect("a time-out can be set");
    let mut request = format!(
        "{method} /{path} HTTP/1.1\r\nhost: {address}\r\nconnection: close\r\n\
         content-type: application/json\r\naccept: application/json, text/event-stream\r\n\
         content-length: {}\r\n",
        body.len()
    );
    for (name, value) in headers {
        request.push_str(&format!("{name}: {value}\r\n"));
    }
    stream
        .write_all(format!("{request}\r\n{body}").as_bytes())
        .expect("a request can be sent");
    Response::begin(stream)
}

impl Response {
    fn begin(stream: TcpStream) -> Self {
        let connection = stream.try_clone().expect("a socket can be shared");
        let mut stream = BufReader::new(stream);
        let mut head = String::new();
        while !head.ends_with("\r\n\r\n") {
            let read = stream.read_line(&mut head).expect("a head can be read");
            assert!(read > 0, "no whole head: `{head}`");
        }
        let value = |name: &str| value_of(&head, name);
        let body: Box<dyn Read + Send> = if value("transfer-encoding").is_some() {
            Box::new(Chunks {
                stream,
                left: 0,
                is_over: false,
            })
        } else {
            let length = value("content-length").and_then(|text| text.parse().ok());
            Box::new(stream.take(length.unwrap_or(0)))
        };
        Self {
            body: BufReader::new(body),
            head,
            connection,
        }
    }

    /// Its connection, which can be ended from elsewhere.
    pub fn connection(&self) -> TcpStream {
        self.connection.try_clone().expect("a socket can be shared")
    }

    /// A header.
    pub fn header(&self, name: &str) -> Option<String> {
        value_of(&self.head, name)
    }

    /// The next message, as it stands there.
    pub fn next(&mut self) -> Option<String> {
        let kind = self.header("content-type").unwrap_or_default();
        if kind.starts_with("text/event-stream") {
            return self.event();
        }
        let mut text = String::new();
        self.body
            .read_to_string(&mut text)
            .unwrap_or_else(|error| panic!("no whole body: {error}: {}{text}", self.head));
        Some(text).filter(|text| !text.is_empty())
    }

    /// The data of the next event that has some.
    fn event(&mut self) -> Option<String> {
        let mut data: Vec<String> = Vec::new();
        let mut line = String::new();
        loop {
            line.clear();
            // A stream that is cut is at its end.
            if self.body.read_line(&mut line).unwrap_or(0) == 0 {
                return None;
            }
            let text = line.trim_end_matches(['\r', '\n']);
            if let Some(part) = text.strip_prefix("data:") {
                data.push(part.strip_prefix(' ').unwrap_or(part).to_owned());
            } else if text.is_empty() && data.iter().any(|part| !part.is_empty()) {
                return Some(data.join("\n"));
            }
        }
    }
}

fn value_of(head: &str, name: &str) -> Option<String> {
    let lines = head.lines().filter_map(|line| line.split_once(':'));
    let mut values = lines.filter(|(found, _)| found.eq_ignore_ascii_case(name));
    values.next().map(|(_, value)| value.trim().to_owned())
}

/// A body in chunks.
struct Chunks {
    stream: BufReader<TcpStream>,
    left: usize,
    is_over: bool,
}

impl Read for Chunks {
    fn read(&mut self, to: &mut [u8]) -> std::io::Result<usize> {
        let mut line = String::new();
        // An end of line stands behind each chunk, too.
        while self.left == 0 && !self.is_over {
            line.clear();
            if self.stream.read_line(&mut line)? == 0 {
                self.is_over = true;
            } else if !line.trim().is_empty() {
                self.left = usize::from_str_radix(line.trim(), 16).unwrap_or(0);
                self.is_over = self.left == 0;
            }
        }
        let most = self.left.min(to.len());
        let read = self.stream.read(&mut to[..most])?;
        self.left -= read;
        Ok(read)
    }
}
