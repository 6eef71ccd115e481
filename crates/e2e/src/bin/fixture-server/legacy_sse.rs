//! The HTTP+SSE transport of 2024-11-05: one event stream, and POSTs to the URL that it announces.

use std::collections::HashMap;
use std::io;
use std::net::TcpStream;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use crate::channel::{Channel, Delivery, Http};
use crate::exchange::Exchange;
use crate::http::HttpRequest;
use crate::listener::{Connection, listen, wait_for_close};
use crate::lock::lock;
use crate::message::{Era, FixtureMessage};
use crate::server::Server;
use crate::session::Session;
use crate::spoilt_http;

struct Endpoint {
    server: Arc<Server>,
    streams: Mutex<HashMap<String, (Arc<Session>, Channel)>>,
    opened: AtomicU64,
}

/// Serves `/sse` and `/messages` forever.
pub fn serve(server: &Arc<Server>, port: u16) -> io::Result<()> {
    let endpoint = Endpoint {
        server: server.clone(),
        streams: Mutex::default(),
        opened: AtomicU64::new(0),
    };
    listen(port, "/sse", endpoint, handle)
}

fn handle(
    endpoint: &Arc<Endpoint>,
    request: &HttpRequest,
    stream: &TcpStream,
) -> io::Result<Connection> {
    let server = &endpoint.server;
    server.witness.received(&request.body, Some(&request.head));
    let response = Http::new(
        stream.try_clone()?,
        String::new(),
        &server.options.modes,
        server.witness.clone(),
    );
    match (request.method.as_str(), request.path.as_str()) {
        ("GET", "/sse") => endpoint.stream(stream, &Arc::new(response)),
        ("POST", "/messages") => endpoint.post(request, &response),
        (_, "/sse" | "/messages") => response.empty(405).map(|()| Connection::Reusable),
        _ => response.empty(404).map(|()| Connection::Reusable),
    }
}

impl Endpoint {
    fn stream(&self, stream: &TcpStream, response: &Arc<Http>) -> io::Result<Connection> {
        let id = format!("fixture-{}", self.opened.fetch_add(1, Ordering::SeqCst) + 1);
        let place = format!("/messages?sessionId={id}");
        let opened = (
            self.server.open_session(),
            Channel::Stream(response.clone()),
        );
        lock(&self.streams).insert(id.clone(), opened);
        response.named_event("endpoint", &place)?;
        wait_for_close(stream);
        lock(&self.streams).remove(&id);
        Ok(Connection::Done)
    }

    fn post(&self, http: &HttpRequest, response: &Http) -> io::Result<Connection> {
        let id = http.query.strip_prefix("sessionId=").unwrap_or_default();
        let Some((session, channel)) = lock(&self.streams).get(id).cloned() else {
            let text = "session not found".into();
            response.body(404, "text/plain", &text, Delivery::Whole)?;
            return Ok(Connection::Reusable);
        };
        match FixtureMessage::parse(&http.body) {
            FixtureMessage::Request(request) => {
                let exchange =
                    Exchange::new(&self.server, &session, channel, request, Era::Handshake);
                if spoilt_http::answers(&exchange, response)? {
                    return Ok(Connection::Done);
                }
                response.empty(202)?;
                self.server.serve(exchange);
            }
            FixtureMessage::Notification { method, params } => {
                response.empty(202)?;
                self.server
                    .notice(&method, &params, &session, Some(&channel));
            }
            FixtureMessage::Answer { id, body } => {
                response.empty(202)?;
                session.answered(&id, body);
            }
            FixtureMessage::Broken => response.empty(400)?,
        }
        Ok(Connection::Reusable)
    }
}
