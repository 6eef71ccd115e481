//! A client on bytes: over the pipes of a program, over TCP, over HTTP.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

const INITIALIZE: &str = r#"{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"bare","version":"0"}}}"#;

const INITIALIZED: &str = r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#;

fn call(id: usize) -> String {
    format!(
        r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/call","params":{{"name":"echo","arguments":{{"text":"hi"}}}}}}"#
    )
}

pub(crate) fn authority(url: &str) -> &str {
    let rest = url.strip_prefix("http://").unwrap_or(url);
    rest.split('/').next().unwrap_or(rest)
}

pub(crate) fn connect(url: &str) -> BufReader<TcpStream> {
    let stream = TcpStream::connect(authority(url)).expect("somebody listens");
    stream.set_nodelay(true).expect("a socket can be set");
    BufReader::new(stream)
}

/// A client on bytes.
pub(crate) enum Session {
    Program {
        child: Child,
        stdin: Option<ChildStdin>,
        stdout: BufReader<ChildStdout>,
    },
    Tcp(BufReader<TcpStream>),
    Http {
        stream: BufReader<TcpStream>,
        url: String,
        headers: String,
    },
}

impl Session {
    pub(crate) fn program(program: &str, words: &[&str]) -> Self {
        let mut child = Command::new(program)
            .args(words)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .expect("it starts");
        Self::Program {
            stdin: child.stdin.take(),
            stdout: BufReader::new(child.stdout.take().expect("stdout is piped")),
            child,
        }
    }

    pub(crate) fn http(url: &str) -> Self {
        Self::Http {
            stream: connect(url),
            url: url.to_owned(),
            headers: String::new(),
        }
    }

    pub(crate) fn child(&self) -> Option<&Child> {
        match self {
            Self::Program { child, .. } => Some(child),
            Self::Tcp(_) | Self::Http { .. } => None,
        }
    }

    pub(crate) fn greet(&mut self) {
        self.ask(INITIALIZE);
        match self {
            Self::Http { .. } => self.ask(INITIALIZED),
            Self::Program { stdin, .. } => {
                let stdin = stdin.as_mut().expect("it is open");
                writeln!(stdin, "{INITIALIZED}").expect("it reads");
            }
            Self::Tcp(stream) => writeln!(stream.get_mut(), "{INITIALIZED}").expect("it reads"),
        }
    }

    pub(crate) fn call(&mut self, id: usize) {
        self.ask(&call(id));
    }

    fn ask(&mut self, message: &str) {
        match self {
            Self::Program { stdin, stdout, .. } => {
                let stdin = stdin.as_mut().expect("it is open");
                line(stdin, stdout, message);
            }
            Self::Tcp(stream) => {
                let mut out = stream
                    .get_ref()
                    .try_clone()
                    .expect("a socket can be shared");
                line(&mut out, stream, message);
            }
            Self::Http {
                stream,
                url,
                headers,
            } => {
                let head = exchange(stream, url, message, headers);
                if let Some(id) = header(&head, "mcp-session-id") {
                    *headers =
                        format!("Mcp-Session-Id: {id}\r\nMCP-Protocol-Version: 2025-11-25\r\n");
                }
            }
        }
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        if let Self::Program { child, stdin, .. } = self {
            *stdin = None;
            let _ = child.wait();
        }
    }
}

fn line(out: &mut impl Write, input: &mut impl BufRead, message: &str) {
    out.write_all(format!("{message}\n").as_bytes())
        .expect("it reads");
    let mut line = String::new();
    input.read_line(&mut line).expect("it answers");
    assert!(line.contains("result"), "{line}");
}

fn header<'a>(head: &'a str, name: &str) -> Option<&'a str> {
    head.lines().find_map(|line| {
        let (found, value) = line.split_once(':')?;
        found.eq_ignore_ascii_case(name).then(|| value.trim())
    })
}

/// One request on a connection that stays open; gives the head of the response.
fn exchange(stream: &mut BufReader<TcpStream>, url: &str, body: &str, headers: &str) -> String {
    let authority = authority(url);
    let path = url.splitn(4, '/').nth(3).unwrap_or_default();
    let request = format!(
        "POST /{path} HTTP/1.1\r\nHost: {authority}\r\nContent-Type: application/json\r\nAccept: application/json, text/event-stream\r\n{headers}Content-Length: {}\r\n\r\n{body}",
        body.len()
    );
    stream
        .get_mut()
        .write_all(request.as_bytes())
        .expect("it reads");
    let mut head = String::new();
    while !head.ends_with("\r\n\r\n") {
        let read = stream.read_line(&mut head).expect("it answers");
        assert!(read > 0, "the connection was closed: {head}");
    }
    assert!(head.starts_with("HTTP/1.1 20"), "{head}");
    let is_chunked = header(&head, "transfer-encoding").is_some();
    let length = header(&head, "content-length").and_then(|length| length.parse().ok());
    read_body(stream, length.unwrap_or(0), is_chunked);
    head
}

fn read_body(stream: &mut BufReader<TcpStream>, length: usize, is_chunked: bool) {
    let mut body = vec![0; length];
    stream.read_exact(&mut body).expect("it answers");
    let mut is_left = is_chunked;
    while is_left {
        let mut size = String::new();
        stream.read_line(&mut size).expect("it answers");
        let size = usize::from_str_radix(size.trim(), 16).expect("a size");
        let mut chunk = vec![0; size + 2];
        stream.read_exact(&mut chunk).expect("it answers");
        is_left = size > 0;
    }
}
