//! From a server's description to a connection: start it, find out what it speaks, be introduced.

mod line;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use proctor_core::event::Actor;
use proctor_core::suite::Server;
use proctor_core::suite::server::Transport;
use tokio::time::Instant;

use self::line::{IntroductionError, UnprobedConnection};
use super::{Client, Era, Timeouts};
use crate::answers::ServerRequestReplies;
use crate::recorder::Recorder;
use crate::transport::http::AddressError;
use proctor_contain::process::SpawnError;

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
    pub answers: ServerRequestReplies,
    /// The era, where it is known already.
    pub era: Option<Era>,
}

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
    #[error("the server `{server}` failed to start: {reason}{}", super::stderr_part(.stderr))]
    NotUp {
        /// The server.
        server: String,
        /// Why.
        reason: String,
        /// The end of what it wrote to its stderr.
        stderr: String,
    },
}

impl ConnectError {
    /// What is wrong, with the name of the server, for those who have several.
    pub fn naming(&self, server: &str) -> String {
        match self {
            Self::NotUp { .. } => self.to_string(),
            Self::Spawn(_) | Self::Address(_) => format!("the server `{server}`: {self}"),
        }
    }
}

impl Client {
    /// Connects to a server, in whichever era it speaks.
    pub async fn connect(server: &Server, options: &ConnectOptions) -> Result<Self, ConnectError> {
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
        server: &Server,
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
        let mut line = UnprobedConnection::open(server, options, deadline).await?;
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
                line = UnprobedConnection::open(server, options, deadline).await?;
            }
            // All steps together have the time that a server has to come up.
            let left = deadline.saturating_duration_since(Instant::now());
            match line.introduce(*era, left.min(*patience)).await {
                Ok(identity) => return Ok(line.into_client(identity, options.timeouts)),
                Err(error) => {
                    was_slow |= at == 0 && matches!(error, IntroductionError::TimedOut);
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
        let (reason, stderr) = line.farewell(reason, options.timeouts.connect).await;
        line.close().await;
        Err(ConnectError::NotUp {
            server: server.name.clone(),
            reason,
            stderr,
        })
    }
}
