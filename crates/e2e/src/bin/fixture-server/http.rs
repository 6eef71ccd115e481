//! HTTP on bytes: heads and bodies of requests, without knowledge of MCP.

use std::io::{self, BufRead, BufReader, ErrorKind, Read};
use std::net::TcpStream;

/// The maximum size of a request.
const LARGEST: u64 = 64 * 1024 * 1024;

pub struct HttpRequest {
    pub method: String,
    /// The path, without the query.
    pub path: String,
    pub query: String,
    /// The request line and the headers as received.
    pub head: String,
    pub body: Vec<u8>,
}

impl HttpRequest {
    /// Reads the next request of a connection; `None` when the client has closed it.
    pub fn read(stream: &mut BufReader<TcpStream>) -> io::Result<Option<Self>> {
        let mut head = String::new();
        while !head.ends_with("\r\n\r\n") {
            if stream.by_ref().take(LARGEST).read_line(&mut head)? == 0 {
                return Ok(None);
            }
        }
        let mut words = head.split_whitespace();
        let (Some(method), Some(target)) = (words.next(), words.next()) else {
            return Err(ErrorKind::InvalidData.into());
        };
        let (path, query) = target.split_once('?').unwrap_or((target, ""));
        let (method, path, query) = (method.to_owned(), path.to_owned(), query.to_owned());
        let mut request = Self {
            method,
            path,
            query,
            head,
            body: Vec::new(),
        };
        request.body = request.read_body(stream)?;
        Ok(Some(request))
    }

    /// Returns a header; the case of its name does not matter.
    pub fn header(&self, name: &str) -> Option<&str> {
        let mut headers = self
            .head
            .lines()
            .skip(1)
            .filter_map(|line| line.split_once(':'));
        headers
            .find(|(known, _)| known.eq_ignore_ascii_case(name))
            .map(|(_, value)| value.trim())
    }

    fn read_body(&self, stream: &mut BufReader<TcpStream>) -> io::Result<Vec<u8>> {
        if self
            .header("transfer-encoding")
            .is_some_and(|coding| coding.eq_ignore_ascii_case("chunked"))
        {
            return read_chunks(stream);
        }
        let length = self
            .header("content-length")
            .map_or(Some(0), |length| length.parse().ok());
        let length = length.ok_or(ErrorKind::InvalidData)?;
        read_exactly(stream, length)
    }
}

fn read_chunks(stream: &mut BufReader<TcpStream>) -> io::Result<Vec<u8>> {
    let mut body = Vec::new();
    loop {
        let mut size = String::new();
        stream.read_line(&mut size)?;
        let size = u64::from_str_radix(size.trim(), 16).map_err(|_| ErrorKind::InvalidData)?;
        body.extend(read_exactly(stream, size)?);
        read_exactly(stream, 2)?;
        if size == 0 {
            return Ok(body);
        }
    }
}

fn read_exactly(stream: &mut BufReader<TcpStream>, length: u64) -> io::Result<Vec<u8>> {
    if length > LARGEST {
        return Err(ErrorKind::InvalidData.into());
    }
    let mut bytes = Vec::new();
    stream.by_ref().take(length).read_to_end(&mut bytes)?;
    Ok(bytes)
}
