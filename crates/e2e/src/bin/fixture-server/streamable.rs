//! The streamable HTTP transport, in both eras.

use std::collections::HashMap;
use std::io;
use std::net::TcpStream;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use serde_json::Value;

use crate::channel::{Channel, Delivery, Http};
use crate::exchange::Exchange;
use crate::http::HttpRequest;
use crate::listener::{Connection, listen, wait_for_close};
use crate::lock::lock;
use crate::message::{
    Era, FixtureMessage, HEADER_MISMATCH, PARSE_ERROR, Reply, Request, STATELESS, answer,
};
use crate::mode::Mode;
use crate::options::Eras;
use crate::server::{Server, apparent_era};
use crate::session::{Change, Session};
use crate::spoilt_http;
use crate::witness::base64;

/// The error codes of servers in the handshake era; the specification does not define them.
const BAD_REQUEST: i64 = -32000;
const SESSION_NOT_FOUND: i64 = -32001;

/// The event id from which the GET stream is resumed.
const STANDING: &str = "standing";

/// Returns an event that is sent on every stream of a request.
fn repeated() -> String {
    let params = r#"{"level":"info","data":"said once"}"#;
    let message =
        format!(r#"{{"jsonrpc":"2.0","method":"notifications/message","params":{params}}}"#);
    format!("id: repeated\ndata: {message}")
}

struct Endpoint {
    server: Arc<Server>,
    sessions: Mutex<HashMap<String, Arc<Session>>>,
    opened: AtomicU64,
    /// Requests whose stream was closed, by the event id for resuming, and how often it will still
    /// close.
    closed: Mutex<HashMap<String, (Exchange, u64)>>,
    /// The session of requests without a session id.
    common: Arc<Session>,
}

/// Serves `/mcp` forever.
pub fn serve(server: &Arc<Server>, port: u16) -> io::Result<()> {
    let endpoint = Endpoint {
        server: server.clone(),
        sessions: Mutex::default(),
        opened: AtomicU64::new(0),
        closed: Mutex::default(),
        common: server.open_session(),
    };
    listen(port, "/mcp", endpoint, handle)
}

fn handle(
    endpoint: &Arc<Endpoint>,
    request: &HttpRequest,
    stream: &TcpStream,
) -> io::Result<Connection> {
    endpoint
        .server
        .witness
        .received(&request.body, Some(&request.head));
    let plain = endpoint.response(stream, String::new())?;
    if request.path != "/mcp" {
        plain.empty(404)?;
        return Ok(Connection::Reusable);
    }
    if request
        .header("origin")
        .is_some_and(|origin| !is_loopback(origin))
    {
        plain.empty(403)?;
        return Ok(Connection::Reusable);
    }
    match request.method.as_str() {
        "POST" => endpoint.post(request, stream, plain),
        "GET" => endpoint.get(request, stream, &plain),
        "DELETE" => endpoint.delete(request, &plain),
        _ => refuse_method(&plain),
    }
}

impl Endpoint {
    fn response(&self, stream: &TcpStream, headers: String) -> io::Result<Arc<Http>> {
        let modes = &self.server.options.modes;
        let stream = stream.try_clone()?;
        Ok(Arc::new(Http::new(
            stream,
            headers,
            modes,
            self.server.witness.clone(),
        )))
    }

    fn post(
        self: &Arc<Self>,
        http: &HttpRequest,
        stream: &TcpStream,
        response: Arc<Http>,
    ) -> io::Result<Connection> {
        let accept = http.header("accept").unwrap_or_default();
        let both = accept.contains("application/json") && accept.contains("text/event-stream");
        if !both && !accept.contains("*/*") {
            refuse(
                &response,
                406,
                BAD_REQUEST,
                "the client must accept application/json and text/event-stream",
            )?;
            return Ok(Connection::Reusable);
        }
        match FixtureMessage::parse(&http.body) {
            FixtureMessage::Request(request) => self.request(request, http, stream, response),
            FixtureMessage::Notification { method, params } => {
                let session = self.session(http).unwrap_or_else(|_| self.common.clone());
                let answered = self
                    .server
                    .has(Mode::AnswerNotification)
                    .then(|| Channel::Response(response.clone()));
                self.server
                    .notice(&method, &params, &session, answered.as_ref());
                if answered.is_none() {
                    response.empty(202)?;
                }
                Ok(Connection::Reusable)
            }
            FixtureMessage::Answer { id, body } => {
                if let Ok(session) = self.session(http) {
                    session.answered(&id, body);
                }
                response.empty(202)?;
                Ok(Connection::Reusable)
            }
            FixtureMessage::Broken => {
                refuse(&response, 400, PARSE_ERROR, "not a message")?;
                Ok(Connection::Reusable)
            }
        }
    }

    fn request(
        self: &Arc<Self>,
        request: Request,
        http: &HttpRequest,
        stream: &TcpStream,
        response: Arc<Http>,
    ) -> io::Result<Connection> {
        let era = match self.server.options.eras {
            Eras::Handshake => Era::Handshake,
            Eras::Stateless => Era::Stateless,
            Eras::Both if http.header("mcp-protocol-version") == Some(STATELESS) => Era::Stateless,
            Eras::Both => apparent_era(&request),
        };
        let opens = era == Era::Handshake && request.method == "initialize";
        let stray = self.server.has(Mode::StraySession);
        if opens && stray && http.header("mcp-session-id").is_some() {
            refuse(&response, 404, SESSION_NOT_FOUND, "session not found")?;
            return Ok(Connection::Reusable);
        }
        let (session, response) = if opens {
            let (session, headers) = self.open();
            (session, self.response(stream, headers)?)
        } else if era == Era::Handshake {
            match self.session(http) {
                Ok(session) => (session, response),
                Err((status, code, message)) => {
                    let header = if stray {
                        "Mcp-Session-Id: stray\r\n".to_owned()
                    } else {
                        String::new()
                    };
                    let response = self.response(stream, header)?;
                    refuse(&response, status, code, message)?;
                    return Ok(Connection::Reusable);
                }
            }
        } else {
            if request.method != "initialize"
                && let Some(mismatch) = mismatch(&request, http)
            {
                refuse_request(&response, &request.id, 400, HEADER_MISMATCH, &mismatch)?;
                return Ok(Connection::Reusable);
            }
            (self.common.clone(), response)
        };
        let listens = era == Era::Stateless && request.method == "subscriptions/listen";
        let channel = if listens {
            Channel::Stream(response.clone())
        } else {
            Channel::Response(response.clone())
        };
        let exchange = Exchange::new(&self.server, &session, channel, request, era);
        if spoilt_http::answers(&exchange, &response)? {
            return Ok(Connection::Done);
        }
        if let Some(times) = exchange.number(Mode::ClosesStream, 1) {
            return self.close_early(exchange, times, &response);
        }
        self.server.serve(exchange);
        if !response.is_finished() {
            wait_for_close(stream);
            return Ok(Connection::Done);
        }
        Ok(Connection::Reusable)
    }

    /// Opens the GET stream for notifications that belong to no request. The stateless era has
    /// none.
    fn get(
        &self,
        http: &HttpRequest,
        stream: &TcpStream,
        response: &Arc<Http>,
    ) -> io::Result<Connection> {
        if self.server.options.eras == Eras::Stateless || self.server.has(Mode::NoGet) {
            return refuse_method(response);
        }
        if !http
            .header("accept")
            .unwrap_or_default()
            .contains("text/event-stream")
        {
            refuse(
                response,
                406,
                BAD_REQUEST,
                "the client must accept text/event-stream",
            )?;
            return Ok(Connection::Reusable);
        }
        match self.session(http) {
            Ok(_)
                if http
                    .header("last-event-id")
                    .is_some_and(|id| id != STANDING) =>
            {
                self.resume(http, stream, response)
            }
            Ok(_) if self.server.has(Mode::ClosesGet) && http.header("last-event-id").is_none() => {
                response.fields(&format!("id: {STANDING}\nretry: 50\ndata: "))?;
                response.end()?;
                Ok(Connection::Reusable)
            }
            Ok(session) if self.server.has(Mode::ClosesGet) => {
                session.add_outlet(Channel::Stream(response.clone()), None, || response.open())?;
                session.announce(Change::Tools);
                wait_for_close(stream);
                Ok(Connection::Done)
            }
            Ok(session) => {
                if let Some(late) = self.server.options.modes.number(Mode::LateGet, 500) {
                    thread::sleep(Duration::from_millis(late));
                }
                session.add_outlet(Channel::Stream(response.clone()), None, || response.open())?;
                wait_for_close(stream);
                Ok(Connection::Done)
            }
            Err((status, code, message)) => {
                refuse(response, status, code, message)?;
                Ok(Connection::Reusable)
            }
        }
    }

    /// Closes a stream before its response.
    fn close_early(
        &self,
        exchange: Exchange,
        times: u64,
        response: &Http,
    ) -> io::Result<Connection> {
        let id = format!("{}-{times}", exchange.request.id);
        if exchange.has(Mode::RepeatsEvents) {
            response.fields(&repeated())?;
        }
        response.fields(&format!("id: {id}\nretry: 50\ndata: "))?;
        lock(&self.closed).insert(id, (exchange, times));
        response.end()?;
        Ok(Connection::Reusable)
    }

    /// Resumes a closed stream.
    fn resume(
        &self,
        http: &HttpRequest,
        stream: &TcpStream,
        response: &Arc<Http>,
    ) -> io::Result<Connection> {
        let id = http.header("last-event-id").unwrap_or_default();
        let found = lock(&self.closed).remove(id);
        match found {
            None => refuse(response, 400, BAD_REQUEST, "unknown event")?,
            Some((exchange, times)) if times > 1 => {
                return self.close_early(exchange, times - 1, response);
            }
            Some((mut exchange, _)) => {
                response.open()?;
                if exchange.has(Mode::RepeatsEvents) {
                    response.fields(&repeated())?;
                }
                exchange.channel = Channel::Response(response.clone());
                self.server.serve(exchange);
                if !response.is_finished() {
                    wait_for_close(stream);
                    return Ok(Connection::Done);
                }
            }
        }
        Ok(Connection::Reusable)
    }

    fn delete(&self, http: &HttpRequest, response: &Http) -> io::Result<Connection> {
        if self.server.options.eras == Eras::Stateless || self.server.has(Mode::NoSession) {
            return refuse_method(response);
        }
        let ended = http
            .header("mcp-session-id")
            .and_then(|id| lock(&self.sessions).remove(id));
        match ended {
            Some(_) => response.body(200, "text/plain", &"".into(), Delivery::Whole)?,
            None => refuse(response, 404, SESSION_NOT_FOUND, "session not found")?,
        }
        Ok(Connection::Reusable)
    }

    /// Creates a session, and the header with its id.
    fn open(&self) -> (Arc<Session>, String) {
        if self.server.has(Mode::NoSession) {
            return (self.common.clone(), String::new());
        }
        let number = self.opened.fetch_add(1, Ordering::SeqCst) + 1;
        let id = format!("fixture-{}-{number}", std::process::id());
        let session = self.server.open_session();
        let header = format!("Mcp-Session-Id: {id}\r\n");
        lock(&self.sessions).insert(id, session.clone());
        (session, header)
    }

    /// Returns the session of a request; otherwise the status, code and text of the refusal.
    fn session(&self, http: &HttpRequest) -> Result<Arc<Session>, (u16, i64, &'static str)> {
        if self.server.has(Mode::NoSession) {
            return Ok(self.common.clone());
        }
        let id = http.header("mcp-session-id");
        let id = id.ok_or((400, BAD_REQUEST, "bad request: no session id"))?;
        let session = lock(&self.sessions).get(id).cloned();
        session.ok_or((404, SESSION_NOT_FOUND, "session not found"))
    }
}

/// Returns how the headers of a stateless request differ from its body.
fn mismatch(request: &Request, http: &HttpRequest) -> Option<String> {
    let mut wanted = vec![
        ("MCP-Protocol-Version", request.version()),
        ("Mcp-Method", Some(request.method.as_str())),
        ("Mcp-Name", request.subject()),
    ];
    if request.subject() == Some("env") {
        wanted.push(("Mcp-Param-Variable", request.argument("name").as_str()));
    }
    wanted.into_iter().find_map(|(header, value)| {
        let value = value?;
        match http.header(header) {
            None => Some(format!("the header {header} is missing")),
            Some(sent)
                if sent == value || sent == format!("=?base64?{}?=", base64(value.as_bytes())) =>
            {
                None
            }
            Some(sent) => Some(format!(
                "the header {header} says `{sent}`, the body `{value}`"
            )),
        }
    })
}

fn refuse(response: &Http, status: u16, code: i64, message: &str) -> io::Result<()> {
    refuse_request(response, &Value::Null, status, code, message)
}

fn refuse_request(
    response: &Http,
    id: &Value,
    status: u16,
    code: i64,
    message: &str,
) -> io::Result<()> {
    let reply = Reply::error(code, message).member(Era::Handshake);
    response.finish(status, &answer(id, reply), Delivery::Whole)
}

fn refuse_method(response: &Http) -> io::Result<Connection> {
    response.raw("HTTP/1.1 405 Method Not Allowed\r\nAllow: POST\r\nContent-Length: 0\r\n\r\n")?;
    Ok(Connection::Reusable)
}

fn is_loopback(origin: &str) -> bool {
    let host = origin.split("//").nth(1).unwrap_or_default();
    let name = host.rsplit_once(':').map_or(host, |(name, _)| name);
    matches!(name, "127.0.0.1" | "localhost" | "[::1]")
}
