//! Connects to a server: starts it, detects its era, and does the handshake.

mod line;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use proctor_core::suite::protocol::ProtocolPin;
use proctor_core::suite::server::Transport;
use proctor_core::suite::step::values::FillError;
use proctor_core::suite::{Server, TrialValues};
use proctor_record::event::Actor;
use proctor_record::hint::listed;
use tokio::time::Instant;

use self::line::{HandshakeError, UnprobedConnection};
use super::{Client, Era, Timeouts};
use crate::answers::ServerRequestReplies;
use crate::auth::{Credentials, ProgramOptions};
use crate::http_client::AddressError;
use crate::recorder::Recorder;
use proctor_contain::environment::withheld_variables;
use proctor_contain::process::{ProcessEnds, SpawnError};

/// The options of a connection, besides the server.
#[derive(Clone)]
pub struct ConnectOptions {
    pub actor: Actor,
    pub recorder: Recorder,
    /// The environment of which servers inherit a part.
    pub inherited: Arc<BTreeMap<String, String>>,
    /// Variables that servers inherit besides the usual ones.
    pub pass: Vec<String>,
    /// The path of the `proctor` binary, which runs the guard.
    pub guard: PathBuf,
    pub timeouts: Timeouts,
    pub answers: ServerRequestReplies,
    /// The values of templates; `None` for a server that trials share.
    pub trial: Option<TrialValues>,
    /// The tokens for servers.
    pub credentials: Credentials,
    /// The era, if it is known.
    pub era: Option<Era>,
    /// Gets the process of the server, which may be ending when the connection is dropped.
    pub ends: ProcessEnds,
}

impl ConnectOptions {
    /// What a program gets that prints a token.
    fn program(&self) -> ProgramOptions<'_> {
        ProgramOptions {
            inherited: &self.inherited,
            pass: &self.pass,
            guard: &self.guard,
        }
    }
}

/// Why a connection failed.
#[derive(Debug, thiserror::Error)]
pub enum ConnectError {
    /// The process did not start.
    #[error(transparent)]
    Spawn(#[from] SpawnError),
    /// The URL or a header is invalid.
    #[error(transparent)]
    Address(#[from] AddressError),
    /// A template has no value.
    #[error(transparent)]
    Template(#[from] FillError),
    /// There is no token that the server accepts.
    #[error("the server `{server}` can't be used: {reason}")]
    Unauthorized { server: String, reason: String },
    /// The server failed to start, or did not complete the handshake.
    #[error(
        "the server `{server}` failed to start: {reason}{}{}",
        super::stderr_part(.stderr),
        withheld_part(.withheld)
    )]
    StartFailed {
        server: String,
        reason: String,
        /// The last lines of its stderr.
        stderr: String,
        /// The names of variables that it did not get and may need.
        withheld: Vec<String>,
    },
}

/// Says which variables a server did not get, and how to pass them. Never shows their values.
fn withheld_part(names: &[String]) -> String {
    if names.is_empty() {
        return String::new();
    }
    let listed = listed(names.iter().map(String::as_str));
    let flags: Vec<String> = names
        .iter()
        .map(|name| format!("--pass-env {name}"))
        .collect();
    let flags = flags.join(" ");
    format!("\nhint: the server did not get {listed}; if it needs them, add `{flags}`")
}

/// The variables that a server did not get and may need to start.
fn withheld(server: &Server, options: &ConnectOptions) -> Vec<String> {
    match &server.transport {
        Transport::Stdio { env, .. } => withheld_variables(&options.inherited, env, &options.pass),
        Transport::Http { .. } | Transport::Sse { .. } => Vec::new(),
    }
}

impl ConnectError {
    /// Returns the message with the name of the server.
    pub fn naming(&self, server: &str) -> String {
        match self {
            Self::StartFailed { .. } | Self::Unauthorized { .. } => self.to_string(),
            Self::Spawn(_) | Self::Address(_) | Self::Template(_) => {
                format!("the server `{server}`: {self}")
            }
        }
    }
}

impl Client {
    /// Connects to a server, and detects its era.
    pub async fn connect(server: &Server, options: &ConnectOptions) -> Result<Self, ConnectError> {
        let deadline = Instant::now() + options.timeouts.connect;
        let server = &Server {
            transport: server.transport.in_trial(options.trial.as_ref())?,
            ..server.clone()
        };
        let refused = match Self::connect_as_written(server, options, deadline).await {
            Ok(client) => return Ok(client),
            Err(error) => error,
        };
        // A URL may belong to a server of HTTP+SSE, which accepts only GET there.
        let Transport::Http { url, headers } = &server.transport else {
            return Err(refused);
        };
        if matches!(refused, ConnectError::Unauthorized { .. }) {
            return Err(refused);
        }
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
        server: &Server,
        options: &ConnectOptions,
        deadline: Instant,
    ) -> Result<Self, ConnectError> {
        let probe = options.timeouts.probe.min(options.timeouts.connect / 3);
        let patience = options.timeouts.connect;
        let pinned = server.client.protocol.map(|pin| match pin {
            ProtocolPin::Handshake | ProtocolPin::Version(_) => Era::Handshake,
            ProtocolPin::Stateless => Era::Stateless,
        });
        // A server that starts slowly may miss the first request, and refuse the second.
        let order: &[(Era, Duration)] = match pinned.or(options.era) {
            Some(era) => &[(era, patience)],
            None => &[
                (Era::Stateless, probe),
                (Era::Handshake, patience),
                (Era::Stateless, patience),
            ],
        };
        let mut line = UnprobedConnection::open(server, options, deadline).await?;
        let mut reason = HandshakeError::Gone;
        let mut was_slow = false;
        for (at, (era, patience)) in order.iter().enumerate() {
            if at == 2 && !was_slow {
                break;
            }
            // A server that answered one request, or died of it, may not accept another.
            let is_taken = matches!(reason, HandshakeError::OtherVersion(_));
            if at == 2 || (at > 0 && (is_taken || line.is_spent())) {
                line.close().await;
                line = UnprobedConnection::open(server, options, deadline).await?;
            }
            // All steps together share the timeout for connecting.
            let left = deadline.saturating_duration_since(Instant::now());
            match line.introduce(*era, left.min(*patience)).await {
                Ok(identity) => return Ok(line.into_client(identity, options.timeouts)),
                Err(HandshakeError::Unauthorized(reason)) => {
                    line.close().await;
                    let server = server.name.clone();
                    return Err(ConnectError::Unauthorized { server, reason });
                }
                Err(error) => {
                    was_slow |= at == 0 && matches!(error, HandshakeError::TimedOut);
                    // The first refusal that lists versions says more than the later ones.
                    if !matches!(reason, HandshakeError::OtherVersion(_)) {
                        reason = error;
                    }
                    if Instant::now() >= deadline {
                        break;
                    }
                }
            }
        }
        let (mut reason, stderr) = line.farewell(reason, options.timeouts.connect).await;
        let malformed = line.malformed();
        line.close().await;
        if let Some(detail) = malformed {
            reason = format!("{reason}; it broke the protocol: {detail}");
        }
        if let Some(pin) = server.client.protocol {
            reason = format!("{reason}; the suite or `--protocol` requires `{pin}`");
        }
        Err(ConnectError::StartFailed {
            server: server.name.clone(),
            reason,
            stderr,
            withheld: withheld(server, options),
        })
    }
}
