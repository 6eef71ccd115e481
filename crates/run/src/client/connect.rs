//! From a server's description to a connection: start it, find out what it speaks, be introduced.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use proctor_core::event::{Actor, Wire as WireKind};
use proctor_core::suite::Server;
use proctor_core::suite::server::Transport;
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};
use tokio::time::Instant;

use super::answers::Answers;
use super::meta::{self, HANDSHAKE_VERSION, STATELESS_VERSION};
use super::peer::{Failure, Peer};
use super::{Client, Era, Identity, Patience, Timeouts, Wire, WireError, ending};
use crate::environment::server_environment;
use crate::process::{self, Process, Spawn, SpawnError};
use crate::recorder::Recorder;
use crate::rpc::{self, RpcError};
use crate::transport::http::{AddressError, HttpLink};
use crate::transport::legacy::{LegacyLink, OpenError};
use crate::transport::stdio::StdioLink;
use crate::transport::{Labels, Link};

/// How long a process has to end by itself once its stdin is closed.
const GOODBYE: Duration = Duration::from_secs(2);

/// What a server answers that speaks the stateless era in another version.
const UNSUPPORTED_VERSION: i64 = -32022;

/// What a connection is made with, besides the server.
#[derive(Clone)]
pub struct ConnectOptions {
    /// Who connects.
    pub actor: Actor,
    /// Where what is said goes.
    pub recorder: Recorder,
    /// The environment that servers are given a part of.
    pub inherited: BTreeMap<String, String>,
    /// Variables that servers get besides the usual ones.
    pub pass: Vec<String>,
    /// The program that contains processes: Proctor itself.
    pub guard: PathBuf,
    /// How long things may take.
    pub timeouts: Timeouts,
    /// What is answered to the server's own requests.
    pub answers: Answers,
    /// The era, where it is known already.
    pub era: Option<Era>,
}

/// What is connected to.
pub type Target = Server;

/// Why there is no connection.
#[derive(Debug, thiserror::Error)]
pub enum ConnectError {
    /// The process did not start.
    #[error(transparent)]
    Spawn(#[from] SpawnError),
    /// The address can't be used.
    #[error(transparent)]
    Address(#[from] AddressError),
    /// The server did not come up.
    #[error("the server `{server}` did not come up: {reason}{}", super::stderr_part(.stderr))]
    NotUp {
        /// The server.
        server: String,
        /// Why.
        reason: String,
        /// The end of what it wrote to its stderr.
        stderr: String,
    },
}

impl Client {
    /// Connects to a server, in whichever era it speaks.
    pub async fn connect(server: &Target, options: &ConnectOptions) -> Result<Self, ConnectError> {
        let deadline = Instant::now() + options.timeouts.connect;
        let refused = match Self::connect_as_written(server, options, deadline).await {
            Ok(client) => return Ok(client),
            Err(error) => error,
        };
        // An address may be that of the older transport, which answers to GET alone.
        let Transport::Http { url, headers } = &server.transport else {
            return Err(refused);
        };
        let older = Server {
            transport: Transport::Sse {
                url: url.clone(),
                headers: headers.clone(),
            },
            ..server.clone()
        };
        let older = Self::connect_as_written(&older, options, deadline).await;
        older.map_err(|_| refused)
    }

    async fn connect_as_written(
        server: &Target,
        options: &ConnectOptions,
        deadline: Instant,
    ) -> Result<Self, ConnectError> {
        let probe = options.timeouts.probe.min(options.timeouts.connect / 3);
        let patience = options.timeouts.connect;
        // A server that is slow to start may miss the first question, and refuse the second.
        let order: &[(Era, Duration)] = match options.era {
            Some(era) => &[(era, patience)],
            None => &[
                (Era::Stateless, probe),
                (Era::Handshake, patience),
                (Era::Stateless, patience),
            ],
        };
        let mut line = Line::open(server, options, deadline).await?;
        let mut reason = IntroductionError::Gone;
        let mut was_slow = false;
        for (at, (era, patience)) in order.iter().enumerate() {
            if at == 2 && !was_slow {
                break;
            }
            // A server that answered one question, or died of it, may not take another.
            let is_taken = matches!(reason, IntroductionError::OtherVersion(_));
            if at == 2 || (at > 0 && (is_taken || line.is_spent())) {
                line.close().await;
                line = Line::open(server, options, deadline).await?;
            }
            // All steps together have the time that a server has to come up.
            let left = deadline.saturating_duration_since(Instant::now());
            match line.introduce(*era, left.min(*patience)).await {
                Ok(identity) => return Ok(line.into_client(identity, options.timeouts)),
                Err(error) => {
                    was_slow |= at == 0 && matches!(error, IntroductionError::TimedOut(_));
                    // The first refusal that names versions says more than those after it.
                    if !matches!(reason, IntroductionError::OtherVersion(_)) {
                        reason = error;
                    }
                    if Instant::now() >= deadline {
                        break;
                    }
                }
            }
        }
        let (reason, stderr) = line.farewell(reason).await;
        line.close().await;
        Err(ConnectError::NotUp {
            server: server.name.clone(),
            reason,
            stderr,
        })
    }
}

/// A connection before it is known what it speaks.
struct Line {
    peer: Arc<Peer>,
    link: Link,
    process: Option<Process>,
}

enum IntroductionError {
    Refused(String),
    /// It speaks the stateless era in a version that we do not.
    OtherVersion(String),
    TimedOut(Duration),
    Gone,
}

impl Line {
    async fn open(
        server: &Target,
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
        let mut process = None;
        let link = match &server.transport {
            Transport::Stdio {
                command,
                args,
                env,
                folder,
            } => {
                let mut started = Spawn {
                    program: command.into(),
                    args: args.iter().map(Into::into).collect(),
                    env: server_environment(&options.inherited, env, &options.pass),
                    folder: folder.clone(),
                    guard: options.guard.clone(),
                    grace: process::GRACE,
                }
                .start()?;
                let (Some(stdin), Some(stdout)) = (started.stdin.take(), started.stdout.take())
                else {
                    return Err(not_up(server, "its pipes could not be opened"));
                };
                process = Some(started);
                Link::Stdio(StdioLink::start(stdin, stdout, &peer))
            }
            Transport::Http { url, headers } => Link::Http(Arc::new(HttpLink::new(url, headers)?)),
            Transport::Sse { url, headers } => {
                let opening = LegacyLink::open(url, headers, &peer);
                match tokio::time::timeout_at(deadline, opening).await {
                    Ok(Ok(link)) => Link::Legacy(link),
                    Ok(Err(OpenError::Address(error))) => return Err(error.into()),
                    Ok(Err(error)) => return Err(not_up(server, &error.to_string())),
                    Err(_) => return Err(not_up(server, "its stream did not open in time")),
                }
            }
        };
        Ok(Self {
            peer,
            link,
            process,
        })
    }

    fn is_spent(&self) -> bool {
        self.peer.ended().is_some()
    }

    async fn introduce(&self, era: Era, patience: Duration) -> Result<Identity, IntroductionError> {
        match era {
            Era::Stateless => self.discover(patience).await,
            Era::Handshake => self.initialize(patience).await,
        }
    }

    async fn discover(&self, patience: Duration) -> Result<Identity, IntroductionError> {
        // The older stream transport has no stateless form.
        if matches!(self.link, Link::Legacy(_)) {
            return Err(IntroductionError::Refused("the older transport".to_owned()));
        }
        let headers = meta::headers("server/discover", &Map::new(), &[]);
        let raw = self
            .ask(
                "server/discover",
                Map::new(),
                headers,
                Era::Stateless,
                patience,
            )
            .await?;
        let result: Value = serde_json::from_str(raw.get())
            .map_err(|_| IntroductionError::Refused("an answer that makes no sense".to_owned()))?;
        let versions = result
            .get("supportedVersions")
            .or_else(|| result.get("protocolVersions"));
        let versions = versions
            .and_then(Value::as_array)
            .map(Vec::as_slice)
            .unwrap_or_default();
        let speaks = versions.is_empty() || versions.iter().any(|v| v == STATELESS_VERSION);
        if !speaks {
            let reason = format!("it speaks {} only", json!(versions));
            return Err(IntroductionError::OtherVersion(reason));
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

    async fn initialize(&self, patience: Duration) -> Result<Identity, IntroductionError> {
        let params = json!({
            "protocolVersion": HANDSHAKE_VERSION,
            "capabilities": self.peer.answers().capabilities(),
            "clientInfo": meta::client_info(),
        });
        let Value::Object(params) = params else {
            return Err(IntroductionError::Gone);
        };
        let raw = self
            .ask("initialize", params, Vec::new(), Era::Handshake, patience)
            .await?;
        let result: Value = serde_json::from_str(raw.get())
            .map_err(|_| IntroductionError::Refused("an answer that makes no sense".to_owned()))?;
        let Some(version) = result.get("protocolVersion").and_then(Value::as_str) else {
            let reason = "its answer to `initialize` names no version of the protocol";
            return Err(IntroductionError::Refused(reason.to_owned()));
        };
        let version = version.to_owned();
        if let Link::Http(link) = &self.link {
            link.set_version(&version);
        }
        let ready = rpc::notification("notifications/initialized", None);
        if let Ok(Some(exchange)) = self.link.send(&self.peer, ready, &Labels::default()).await {
            // Requests before the server has taken this in may be refused.
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
    ) -> Result<Box<RawValue>, IntroductionError> {
        let wire = Wire {
            peer: &self.peer,
            link: &self.link,
            era,
        };
        let patience = Patience {
            idle: patience,
            total: patience,
        };
        wire.request(method, params, headers, patience)
            .await
            .map_err(|error| match error {
                WireError::Failed(Failure::Rpc(RpcError { code, message, .. })) => {
                    let reason = format!("it answered `{method}` with error {code}: {message}");
                    match (code, era) {
                        (UNSUPPORTED_VERSION, Era::Stateless) => {
                            IntroductionError::OtherVersion(reason)
                        }
                        _ => IntroductionError::Refused(reason),
                    }
                }
                WireError::Failed(failure) => IntroductionError::Refused(failure.to_string()),
                WireError::TimedOut(after) => IntroductionError::TimedOut(after),
                WireError::Gone => IntroductionError::Gone,
            })
    }

    async fn farewell(&mut self, reason: IntroductionError) -> (String, String) {
        match reason {
            IntroductionError::Refused(reason) | IntroductionError::OtherVersion(reason) => {
                (reason, self.stderr())
            }
            IntroductionError::TimedOut(after) => {
                let after = proctor_core::duration::brief(after);
                (format!("no answer within {after}"), self.stderr())
            }
            IntroductionError::Gone => farewell(self.process.as_mut(), &self.peer).await,
        }
    }

    fn stderr(&self) -> String {
        self.process
            .as_ref()
            .map(Process::stderr_tail)
            .unwrap_or_default()
    }

    fn into_client(self, identity: Identity, timeouts: Timeouts) -> Client {
        Client {
            peer: self.peer,
            link: self.link,
            process: tokio::sync::Mutex::new(self.process),
            identity,
            timeouts,
            tools: std::sync::Mutex::default(),
        }
    }

    async fn close(self) {
        close(self.peer, self.link, self.process).await;
    }
}

fn not_up(server: &Target, reason: &str) -> ConnectError {
    ConnectError::NotUp {
        server: server.name.clone(),
        reason: reason.to_owned(),
        stderr: String::new(),
    }
}

fn identity(
    info: Option<&Value>,
    result: &Value,
    protocol: String,
    era: Era,
    raw: Box<RawValue>,
) -> Identity {
    let text = |value: Option<&Value>| value.and_then(Value::as_str).map(str::to_owned);
    Identity {
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

/// How a server went, and the end of what it wrote to its stderr.
pub(super) async fn farewell(process: Option<&mut Process>, peer: &Peer) -> (String, String) {
    let ended = peer.ended();
    let Some(process) = process else {
        return (ending(ended), String::new());
    };
    // A process whose stdout is closed is about to end, or hangs.
    let how = match tokio::time::timeout(GOODBYE, process.wait()).await {
        Ok(how) => format!("the server {how}"),
        Err(_) => ending(ended),
    };
    (how, process.stderr_tail())
}

/// Ends a connection, and the process with it, and writes how.
pub(super) async fn close(peer: Arc<Peer>, link: Link, process: Option<Process>) {
    // For a process this closes the last handle to its stdin.
    let reading = match link {
        Link::Http(link) => {
            link.close(peer.tap()).await;
            None
        }
        Link::Legacy(link) => {
            link.close();
            None
        }
        Link::Stdio(link) => Some(link.close()),
    };
    let (reason, stderr) = match process {
        Some(process) => {
            let stderr = process.stderr();
            let how = process.stop(GOODBYE).await;
            (how.to_string(), Some(stderr.text()))
        }
        None => ("was closed".to_owned(), None),
    };
    if let Some(reading) = reading {
        // The server's last words come before its end.
        let _ = tokio::time::timeout(GOODBYE, reading).await;
    }
    peer.tap().close(reason, stderr);
}
