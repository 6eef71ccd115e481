//! Transparent recording proxies between an agent and a server.
//!
//! If both sides use the same transport, messages are forwarded byte for byte after they are
//! recorded. Messages that exceed the size limit are truncated in the record only. The only edit is
//! the endpoint URL of HTTP+SSE, which would bypass the proxy. An optional [`Editor`] is on the
//! server's side: the record holds what the client sent and received.

mod addresses;
mod bridge;
pub mod door;
mod edit_stage;
mod framer;
mod peeked_body;
mod refusals;
mod relay;
mod reverse;
mod server_process;
mod session;
mod streams;
mod token;
mod upstream;

use std::io;
use std::path::PathBuf;
use std::sync::Arc;

use proctor_core::suite::step::values::FillError;
use proctor_core::suite::{Environment, TrialValues};
use proctor_record::event::Actor;

use crate::auth::{Credentials, ProgramOptions};
use crate::edit::Editor;
use crate::http_client::AddressError;
use crate::recorder::Recorder;

pub use self::bridge::Bridge;
pub use self::door::Admission;
pub(crate) use self::edit_stage::is_stateless;
pub use self::relay::{AdmissionPolicy, Relay};
pub use self::reverse::ReverseProxy;
pub use self::server_process::ServerStartError;
pub use self::session::{Cause, ClientStreams, SessionEnd, SessionEndReason, serve};
pub use self::streams::{ProcessStreams, standard};
pub use self::token::AccessToken;
pub use self::upstream::{PooledBody, Upstream, causes, passed};

/// The options of every proxy.
#[derive(Clone)]
pub struct ProxyOptions {
    pub recorder: Recorder,
    /// Who uses the proxy.
    pub actor: Actor,
    /// The environment of which started servers inherit a part.
    pub inherited: Environment,
    /// Variables that servers inherit besides the usual ones.
    pub pass: Vec<String>,
    /// The path of the `proctor` binary, which runs the guard.
    pub guard: PathBuf,
    /// The values of templates; `None` for a server without any.
    pub trial: Option<TrialValues>,
    /// The tokens for servers.
    pub credentials: Credentials,
    /// Edits messages on the server's side of the record.
    pub editor: Option<Arc<dyn Editor>>,
}

impl ProxyOptions {
    /// What a program gets that prints a token.
    fn program(&self) -> ProgramOptions<'_> {
        ProgramOptions {
            inherited: &self.inherited,
            pass: &self.pass,
            guard: &self.guard,
        }
    }
}

/// Why a proxy could not start.
#[derive(Debug, thiserror::Error)]
pub enum ProxyError {
    /// The server's URL or a header is invalid.
    #[error(transparent)]
    Address(#[from] AddressError),
    /// A template has no value.
    #[error(transparent)]
    Template(#[from] FillError),
    /// The server has no URL.
    #[error("the server `{0}` has a command, not a URL")]
    NoAddress(String),
    /// The server can't be started.
    #[error(transparent)]
    Start(#[from] ServerStartError),
    #[error("can't listen on port {port}: {error}")]
    Listen {
        /// The port; 0 for any.
        port: u16,
        error: io::Error,
    },
}
