//! An open connection before the handshake: which requests detect the era.

use std::sync::Arc;
use std::time::Duration;

use proctor_core::suite::Server;
use proctor_core::suite::protocol::ProtocolPin;
use proctor_core::suite::server::Transport;
use proctor_record::event::{FindingKind, WireKind};
use proctor_record::json;
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};
use tokio::time::Instant;

use super::{ConnectError, ConnectOptions};
use crate::client::connection::{Connection, GOODBYE, close, farewell};
use crate::client::meta::{self, HANDSHAKE_VERSION, STATELESS_VERSION};
use crate::client::wire::{PROBE, RequestWire, ResponseTimeout, WireError};
use crate::client::{Client, Era, ServerIdentity, Timeouts};
use crate::peer::{Peer, RequestFailure, shown_body};
use crate::rpc::{self, RpcError};
use crate::transport::http::HttpLink;
use crate::transport::legacy::{LegacyLink, StreamOpenError};
use crate::transport::stdio::StdioLink;
use crate::transport::{Labels, Link};
use proctor_contain::process::{Process, Spawn};

/// The error code of a server of the stateless era that does not support the requested version.
const UNSUPPORTED_VERSION: i64 = -32022;

/// A connection whose era is unknown.
pub(super) struct UnprobedConnection {
    peer: Arc<Peer>,
    link: Link,
    process: Option<Process>,
    /// The only version that the handshake may negotiate.
    version: Option<&'static str>,
}

/// Why a handshake failed.
pub(super) enum HandshakeError {
    /// The server answered with an error, or with a malformed response.
    Refused(String),
    /// The server speaks the stateless era, but not our version.
    OtherVersion(String),
    /// There is no token that the server accepts.
    Unauthorized(String),
    /// The server did not respond in time.
    TimedOut,
    /// The server has ended or closed the connection.
    Gone,
}

impl UnprobedConnection {
    pub(super) async fn open(
        server: &Server,
        options: &ConnectOptions,
        deadline: Instant,
    ) -> Result<Self, ConnectError> {
        let (kind, written) = match &server.transport {
            Transport::Stdio { .. } => (WireKind::Stdio, &server.written),
            Transport::Http { .. } => (WireKind::Http, &server.written),
            Transport::Sse { .. } => (WireKind::Sse, &server.written),
        };
        let tap = options
            .recorder
            .open(&server.name, options.actor, kind, written);
        let peer = Arc::new(Peer::new(tap, options.answers.clone()));
        let tokens = options.credentials.source(server, options.program())?;
        if let Some(tokens) = &tokens {
            // A token that takes long must not look like a server that does.
            let token = tokio::time::timeout_at(deadline, tokens.token()).await;
            let reason = match token {
                Ok(Ok(_)) => None,
                Ok(Err(error)) => Some(error.to_string()),
                Err(_) => Some("no token in time".to_owned()),
            };
            if let Some(reason) = reason {
                let server = server.name.clone();
                return Err(ConnectError::Unauthorized { server, reason });
            }
        }
        let mut process = None;
        let link = match &server.transport {
            Transport::Stdio {
                command,
                args,
                env,
                folder,
                cwd: _,
            } => {
                let mut started = Spawn::server(command, args, folder, &options.guard)
                    .with_environment(&options.inherited, env, &options.pass)
                    .start()?;
                options.ends.add(started.ending());
                let (Some(stdin), Some(stdout)) = (started.stdin.take(), started.stdout.take())
                else {
                    return Err(not_up(server, "can't open its pipes"));
                };
                process = Some(started);
                Link::Stdio(StdioLink::start(stdin, stdout, &peer))
            }
            Transport::Http { url, headers } => {
                Link::Http(Arc::new(HttpLink::new(url, headers, tokens)?))
            }
            Transport::Sse { url, headers } => {
                let opening = LegacyLink::open(url, headers, tokens, &peer);
                match tokio::time::timeout_at(deadline, opening).await {
                    Ok(Ok(link)) => Link::Legacy(link),
                    Ok(Err(StreamOpenError::Address(error))) => return Err(error.into()),
                    Ok(Err(StreamOpenError::Unauthorized(reason))) => {
                        let server = server.name.clone();
                        return Err(ConnectError::Unauthorized { server, reason });
                    }
                    Ok(Err(error)) => return Err(not_up(server, &error.to_string())),
                    Err(_) => {
                        let set = proctor_record::duration::brief(options.timeouts.connect);
                        let reason = format!("its event stream did not open within {set}");
                        return Err(not_up(server, &reason));
                    }
                }
            }
        };
        Ok(Self {
            peer,
            link,
            process,
            version: match server.client.protocol {
                Some(ProtocolPin::Version(version)) => Some(version),
                Some(ProtocolPin::Handshake | ProtocolPin::Stateless) | None => None,
            },
        })
    }

    pub(super) fn is_spent(&self) -> bool {
        self.peer.ended().is_some()
    }

    pub(super) async fn introduce(
        &self,
        era: Era,
        patience: Duration,
    ) -> Result<ServerIdentity, HandshakeError> {
        match era {
            Era::Stateless => self.discover(patience).await,
            Era::Handshake => self.initialize(patience).await,
        }
    }

    async fn discover(&self, patience: Duration) -> Result<ServerIdentity, HandshakeError> {
        // HTTP+SSE has no stateless form.
        if matches!(self.link, Link::Legacy(_)) {
            return Err(HandshakeError::Refused(
                "HTTP+SSE has no stateless form".to_owned(),
            ));
        }
        let headers = meta::headers(PROBE, &Map::new(), &[]);
        let raw = self
            .ask(PROBE, Map::new(), headers, Era::Stateless, patience)
            .await?;
        let result: Value = json::from_str(raw.get())
            .map_err(|_| HandshakeError::Refused("malformed response".to_owned()))?;
        let versions = result
            .get("supportedVersions")
            .or_else(|| result.get("protocolVersions"));
        let versions = versions
            .and_then(Value::as_array)
            .map(Vec::as_slice)
            .unwrap_or_default();
        let speaks = versions.is_empty() || versions.iter().any(|v| v == STATELESS_VERSION);
        if !speaks {
            let reason = format!("it supports only {}", json!(versions));
            return Err(HandshakeError::OtherVersion(reason));
        }
        let info = meta::server_info(&result).or_else(|| result.get("serverInfo"));
        Ok(identity(
            info,
            &result,
            STATELESS_VERSION.to_owned(),
            Era::Stateless,
            raw,
        ))
    }

    async fn initialize(&self, patience: Duration) -> Result<ServerIdentity, HandshakeError> {
        let params = json!({
            "protocolVersion": self.version.unwrap_or(HANDSHAKE_VERSION),
            "capabilities": self.peer.answers().capabilities(),
            "clientInfo": meta::client_info(),
        });
        let Value::Object(params) = params else {
            return Err(HandshakeError::Gone);
        };
        let raw = self
            .ask("initialize", params, Vec::new(), Era::Handshake, patience)
            .await?;
        let result: Value = json::from_str(raw.get())
            .map_err(|_| HandshakeError::Refused("malformed response".to_owned()))?;
        let Some(version) = result.get("protocolVersion").and_then(Value::as_str) else {
            let reason = "its response to `initialize` has no protocol version";
            return Err(HandshakeError::Refused(reason.to_owned()));
        };
        if self.version.is_some_and(|pinned| pinned != version) {
            let reason = format!("it offers protocol version `{version}`");
            return Err(HandshakeError::OtherVersion(reason));
        }
        let version = version.to_owned();
        if let Link::Http(link) = &self.link {
            link.begin_session(&version);
        }
        let unasked = Labels::unasked(self.peer.tap());
        let ready = rpc::notification("notifications/initialized", None);
        if let Ok(Some(exchange)) = self.link.send(&self.peer, ready, &unasked).await {
            // A server may refuse requests before it has processed this notification.
            let _ = tokio::time::timeout(GOODBYE, exchange).await;
        }
        if let Link::Http(link) = &self.link {
            link.listen(&self.peer);
        }
        let info = result.get("serverInfo");
        Ok(identity(info, &result, version, Era::Handshake, raw))
    }

    async fn ask(
        &self,
        method: &str,
        params: Map<String, Value>,
        headers: Vec<(String, String)>,
        era: Era,
        patience: Duration,
    ) -> Result<Box<RawValue>, HandshakeError> {
        let wire = RequestWire {
            peer: &self.peer,
            link: &self.link,
            tap: self.peer.tap(),
            era,
        };
        let patience = ResponseTimeout {
            idle: patience,
            total: patience,
        };
        wire.request(method, params, headers, patience)
            .await
            .map_err(|error| match error {
                WireError::Failed(RequestFailure::Rpc(RpcError {
                    code,
                    message,
                    data,
                })) => {
                    let offered = data.as_deref().map(offered).unwrap_or_default();
                    let reason =
                        format!("it answered `{method}` with error {code}: {message}{offered}");
                    match (code, era) {
                        (UNSUPPORTED_VERSION, Era::Stateless) => {
                            HandshakeError::OtherVersion(reason)
                        }
                        _ => HandshakeError::Refused(reason),
                    }
                }
                WireError::Failed(RequestFailure::Http { status, body }) => {
                    HandshakeError::Refused(self.refused(method, status, &body))
                }
                WireError::Failed(RequestFailure::Unauthorized(reason)) => {
                    HandshakeError::Unauthorized(reason)
                }
                WireError::Failed(failure) => HandshakeError::Refused(failure.to_string()),
                WireError::TimedOut(_) => HandshakeError::TimedOut,
                WireError::Gone => HandshakeError::Gone,
            })
    }

    /// Returns why the handshake failed, with the timeout `set` for it, and the end of the server's
    /// stderr.
    pub(super) async fn farewell(
        &mut self,
        reason: HandshakeError,
        set: Duration,
    ) -> (String, String) {
        match reason {
            HandshakeError::Refused(reason)
            | HandshakeError::OtherVersion(reason)
            | HandshakeError::Unauthorized(reason) => (reason, self.stderr()),
            HandshakeError::TimedOut => {
                let set = proctor_record::duration::brief(set);
                (format!("no response within {set}"), self.stderr())
            }
            HandshakeError::Gone => {
                let deadline = Instant::now() + GOODBYE;
                farewell(self.process.as_mut(), &self.peer, deadline).await
            }
        }
    }

    /// What the server sent that is not a message. Servers that log to stdout never answer for that reason.
    pub(super) fn malformed(&self) -> Option<String> {
        let findings = self.peer.tap().findings().into_iter();
        let is_no_message =
            |kind: &FindingKind| matches!(kind, FindingKind::Malformed | FindingKind::Noise);
        let mut malformed = findings.filter(|(kind, ..)| is_no_message(kind));
        malformed.next().map(|(_, detail, _)| detail)
    }

    fn refused(&self, method: &str, status: u16, body: &str) -> String {
        let from = match &self.link {
            Link::Http(link) => format!("{} answered", link.address()),
            _ => "the server answered".to_owned(),
        };
        let hint = match (&self.link, status) {
            (Link::Http(link), 401) => format!(
                "; it wants a token: run `proctor login {}`, or set `auth` in the MCP config",
                link.address()
            ),
            _ => String::new(),
        };
        format!(
            "{from} `{method}` with HTTP status {status}{}{hint}",
            shown_body(body)
        )
    }

    fn stderr(&self) -> String {
        self.process
            .as_ref()
            .map(|process| process.stderr_tail(self.peer.tap().redactor()))
            .unwrap_or_default()
    }

    pub(super) fn into_client(self, identity: ServerIdentity, timeouts: Timeouts) -> Client {
        Client::new(Connection {
            peer: self.peer,
            link: self.link,
            process: tokio::sync::Mutex::new(self.process),
            identity,
            timeouts,
        })
    }

    pub(super) async fn close(self) {
        close(&self.peer, &self.link, self.process).await;
    }
}

/// The versions that an error names, as a part of a sentence.
fn offered(data: &RawValue) -> String {
    let data: Value = json::from_str(data.get()).unwrap_or_default();
    match data.get("supported").filter(|versions| versions.is_array()) {
        Some(versions) => format!("; it supports {versions}"),
        None => String::new(),
    }
}

fn not_up(server: &Server, reason: &str) -> ConnectError {
    ConnectError::StartFailed {
        server: server.name.clone(),
        reason: reason.to_owned(),
        stderr: String::new(),
        withheld: Vec::new(),
    }
}

fn identity(
    info: Option<&Value>,
    result: &Value,
    protocol: String,
    era: Era,
    raw: Box<RawValue>,
) -> ServerIdentity {
    let text = |value: Option<&Value>| value.and_then(Value::as_str).map(str::to_owned);
    ServerIdentity {
        name: text(info.and_then(|i| i.get("name"))),
        version: text(info.and_then(|i| i.get("version"))),
        protocol,
        era,
        capabilities: result
            .get("capabilities")
            .and_then(Value::as_object)
            .cloned()
            .unwrap_or_default(),
        instructions: text(result.get("instructions")),
        raw,
    }
}
