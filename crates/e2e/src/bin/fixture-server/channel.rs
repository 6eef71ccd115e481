//! Where messages go: lines on stdout, the response to one POST, or an event stream.

use std::io::{self, BufWriter, ErrorKind, Write};
use std::net::{Shutdown, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::sleep;
use std::time::Duration;

use crate::lock::lock;
use crate::mode::{Mode, Modes};
use crate::payload::Payload;
use crate::witness::Witness;

/// How the bytes of one message are written.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Delivery {
    Whole,
    /// After half a line of noise.
    Glued,
    /// In two writes.
    Split,
    /// Only the first half.
    Torn,
    /// Byte by byte, with this many milliseconds between them.
    Slow(u64),
    /// Without a newline.
    Unended,
}

/// Where the messages of one exchange go.
#[derive(Clone)]
pub enum Channel {
    Lines(Arc<Lines>),
    /// The response to one POST, which ends with the JSON-RPC response.
    Response(Arc<Http>),
    /// A stream that outlives the exchange.
    Stream(Arc<Http>),
}

impl Channel {
    /// Sends a message that does not end the exchange.
    pub fn send(&self, message: &Payload) -> io::Result<()> {
        match self {
            Self::Lines(lines) => lines.write(message, Delivery::Whole),
            Self::Response(http) | Self::Stream(http) => http.event(message, Delivery::Whole),
        }
    }

    /// Sends the message that ends the exchange; the status is for HTTP.
    pub fn finish(&self, status: u16, message: &Payload, delivery: Delivery) -> io::Result<()> {
        match self {
            Self::Lines(lines) => lines.write(message, delivery),
            Self::Stream(http) => http.event(message, delivery),
            Self::Response(http) => http.finish(status, message, delivery),
        }
    }

    /// Whether the client has closed the response, which cancels the request.
    pub fn closed(&self) -> bool {
        match self {
            Self::Response(http) => http.closed(),
            Self::Lines(_) | Self::Stream(_) => false,
        }
    }
}

/// Writes messages as lines to stdout, with the noise of the modes.
pub struct Lines {
    /// A message and its newline are one write, as they are in the SDKs.
    out: Mutex<BufWriter<io::Stdout>>,
    witness: Arc<Witness>,
    newline: &'static str,
    before: &'static str,
    after: &'static str,
}

impl Lines {
    pub fn new(modes: &Modes, witness: Arc<Witness>) -> Self {
        let newline = if modes.has(Mode::Crlf) { "\r\n" } else { "\n" };
        let blank = modes.has(Mode::BlankLines);
        let before = match (modes.has(Mode::LogNoise), blank) {
            (true, _) => "[INFO] fixture: {not json}\n",
            (false, true) => "\n  \n",
            (false, false) => "",
        };
        Self {
            out: Mutex::new(BufWriter::new(io::stdout())),
            witness,
            newline,
            before,
            after: if blank { "\n" } else { "" },
        }
    }

    /// Writes bytes that are not a message.
    pub fn noise(&self, bytes: &[u8]) -> io::Result<()> {
        let mut out = lock(&self.out);
        out.write_all(bytes)?;
        out.flush()
    }

    fn write(&self, message: &Payload, delivery: Delivery) -> io::Result<()> {
        self.witness.sent(message);
        let mut out = lock(&self.out);
        out.write_all(self.before.as_bytes())?;
        if delivery == Delivery::Glued {
            out.write_all(b"loading 50% ")?;
        }
        deliver(&mut *out, message, delivery)?;
        if !matches!(delivery, Delivery::Unended | Delivery::Torn) {
            out.write_all(self.newline.as_bytes())?;
            out.write_all(self.after.as_bytes())?;
        }
        out.flush()
    }
}

/// One HTTP response: a JSON body, or an event stream if there is more than the response to send.
pub struct Http {
    stream: Mutex<TcpStream>,
    witness: Arc<Witness>,
    streaming: AtomicBool,
    finished: AtomicBool,
    /// Whether every response is an event.
    always_streams: bool,
    /// Additional header lines, each with its line end.
    headers: String,
    newline: &'static str,
    bom: bool,
}

impl Http {
    pub fn new(stream: TcpStream, headers: String, modes: &Modes, witness: Arc<Witness>) -> Self {
        Self {
            stream: Mutex::new(stream),
            witness,
            streaming: AtomicBool::new(false),
            finished: AtomicBool::new(false),
            always_streams: modes.has(Mode::SseResponses),
            headers,
            newline: if modes.has(Mode::Crlf) { "\r\n" } else { "\n" },
            bom: modes.has(Mode::Bom),
        }
    }

    /// Sends the head of an event stream, unless it was sent.
    pub fn open(&self) -> io::Result<()> {
        // The lock comes first: an event of another thread must not overtake the head.
        let mut stream = lock(&self.stream);
        if self.streaming.swap(true, Ordering::SeqCst) {
            return Ok(());
        }
        let head = format!(
            "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nCache-Control: no-cache\r\nX-Accel-Buffering: no\r\n\
             Transfer-Encoding: chunked\r\n{}\r\n",
            self.headers
        );
        stream.write_all(head.as_bytes())?;
        if self.bom {
            write_chunk(&mut stream, &"\u{feff}".into(), Delivery::Whole)
        } else {
            Ok(())
        }
    }

    /// Sends an event that is not a message, such as `endpoint`.
    pub fn named_event(&self, name: &str, data: &str) -> io::Result<()> {
        self.open()?;
        let event = format!("event: {name}{0}data: {data}{0}{0}", self.newline);
        write_chunk(&mut lock(&self.stream), &event.into(), Delivery::Whole)
    }

    /// Sends the fields of an event as written, with LF for every line end.
    pub fn fields(&self, fields: &str) -> io::Result<()> {
        self.open()?;
        let event = format!("{fields}\n\n").replace('\n', self.newline);
        write_chunk(&mut lock(&self.stream), &event.into(), Delivery::Whole)
    }

    /// Ends an event stream.
    pub fn end(&self) -> io::Result<()> {
        self.finished.store(true, Ordering::SeqCst);
        lock(&self.stream).write_all(b"0\r\n\r\n")
    }

    fn event(&self, message: &Payload, delivery: Delivery) -> io::Result<()> {
        self.open()?;
        self.witness.sent(message);
        let event =
            Payload::from(format!("event: message{}data: ", self.newline)).then(message.clone());
        let end = if delivery == Delivery::Unended {
            String::new()
        } else {
            self.newline.repeat(2)
        };
        write_chunk(&mut lock(&self.stream), &event.then(end), delivery)
    }

    /// Sends several responses as events in one write, and ends the stream.
    pub fn finish_with(&self, messages: &[Payload]) -> io::Result<()> {
        self.open()?;
        self.finished.store(true, Ordering::SeqCst);
        let mut events = Vec::new();
        for message in messages {
            self.witness.sent(message);
            events.extend(format!("event: message{}data: ", self.newline).into_bytes());
            message.write_to(&mut events)?;
            events.extend(self.newline.repeat(2).into_bytes());
        }
        let mut chunk = format!("{:x}\r\n", events.len()).into_bytes();
        chunk.extend(events);
        chunk.extend(b"\r\n0\r\n\r\n");
        lock(&self.stream).write_all(&chunk)
    }

    /// Sends the response as the body, or as the last event.
    pub fn finish(&self, status: u16, message: &Payload, delivery: Delivery) -> io::Result<()> {
        self.finished.store(true, Ordering::SeqCst);
        if self.streaming.load(Ordering::SeqCst) || self.always_streams && status == 200 {
            self.event(message, delivery)?;
            if delivery == Delivery::Torn {
                return self.close();
            }
            return lock(&self.stream).write_all(b"0\r\n\r\n");
        }
        self.witness.sent(message);
        self.body(status, "application/json", message, delivery)
    }

    /// Whether the response was sent.
    pub fn is_finished(&self) -> bool {
        self.finished.load(Ordering::SeqCst)
    }

    /// Sends a whole response with a body of known length.
    pub fn body(
        &self,
        status: u16,
        kind: &str,
        body: &Payload,
        delivery: Delivery,
    ) -> io::Result<()> {
        let head = format!(
            "HTTP/1.1 {status} {}\r\nContent-Type: {kind}\r\nContent-Length: {}\r\n{}\r\n",
            reason(status),
            body.len(),
            self.headers
        );
        let mut stream = lock(&self.stream);
        stream.write_all(head.as_bytes())?;
        deliver(&mut *stream, body, delivery)?;
        drop(stream);
        if delivery == Delivery::Torn {
            self.close()
        } else {
            Ok(())
        }
    }

    /// Sends a response without a body.
    pub fn empty(&self, status: u16) -> io::Result<()> {
        // Without a length, the body of any other status would continue until the connection
        // closes.
        let length = if status == 204 {
            ""
        } else {
            "Content-Length: 0\r\n"
        };
        self.raw(&format!(
            "HTTP/1.1 {status} {}\r\n{length}{}\r\n",
            reason(status),
            self.headers
        ))
    }

    /// Sends raw bytes.
    pub fn raw(&self, bytes: &str) -> io::Result<()> {
        lock(&self.stream).write_all(bytes.as_bytes())
    }

    pub fn close(&self) -> io::Result<()> {
        lock(&self.stream).shutdown(Shutdown::Both)
    }

    fn closed(&self) -> bool {
        let stream = lock(&self.stream);
        let peek = stream
            .set_nonblocking(true)
            .and_then(|()| stream.peek(&mut [0]));
        let _ = stream.set_nonblocking(false);
        match peek {
            Ok(bytes) => bytes == 0,
            Err(error) => error.kind() != ErrorKind::WouldBlock,
        }
    }
}

fn write_chunk(stream: &mut TcpStream, chunk: &Payload, delivery: Delivery) -> io::Result<()> {
    write!(stream, "{:x}\r\n", chunk.len())?;
    deliver(stream, chunk, delivery)?;
    if delivery == Delivery::Torn {
        Ok(())
    } else {
        stream.write_all(b"\r\n")
    }
}

fn deliver(out: &mut dyn Write, message: &Payload, delivery: Delivery) -> io::Result<()> {
    match delivery {
        Delivery::Whole | Delivery::Glued | Delivery::Unended => message.write_to(out)?,
        Delivery::Split => {
            let bytes = message.to_bytes();
            let (front, back) = bytes.split_at(bytes.len() / 2);
            out.write_all(front)?;
            out.flush()?;
            sleep(Duration::from_millis(50));
            out.write_all(back)?;
        }
        Delivery::Torn => {
            let bytes = message.to_bytes();
            out.write_all(&bytes[..bytes.len() / 2])?;
        }
        Delivery::Slow(pause) => {
            for byte in message.to_bytes() {
                out.write_all(&[byte])?;
                out.flush()?;
                sleep(Duration::from_millis(pause));
            }
        }
    }
    Ok(())
}

fn reason(status: u16) -> &'static str {
    match status {
        200 => "OK",
        202 => "Accepted",
        204 => "No Content",
        307 => "Temporary Redirect",
        400 => "Bad Request",
        403 => "Forbidden",
        404 => "Not Found",
        405 => "Method Not Allowed",
        406 => "Not Acceptable",
        429 => "Too Many Requests",
        500 => "Internal Server Error",
        503 => "Service Unavailable",
        _ => "Whatever",
    }
}
