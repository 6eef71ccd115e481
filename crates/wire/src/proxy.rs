//! What stands between an agent and a server: neither can notice it, and it misses nothing.
//!
//! Nothing is translated where both sides speak the same transport. A message goes into the record
//! and then on its way, as the bytes that it is; what is too large for the record is cut there and
//! nowhere else. Nothing here edits what it records, but for the address of the older HTTP's
//! endpoint, which would lead around it. Where an [`Editor`] is given, it stands behind: the record holds what
//! the client sent and got.

mod addresses;
mod bridge;
pub mod door;
mod edited;
mod framer;
mod refusals;
mod relay;
mod reverse;
mod session;
mod started;
mod streams;
mod token;
mod upstream;

use std::io;
use std::path::PathBuf;
use std::sync::Arc;

use proctor_core::event::Actor;
use proctor_core::suite::Environment;

use crate::edit::Editor;
use crate::recorder::Recorder;
use crate::transport::http::AddressError;

pub use self::bridge::Bridge;
pub use self::door::Admission;
pub(crate) use self::edited::is_stateless;
pub use self::relay::{AdmissionPolicy, Relay};
pub use self::reverse::ReverseProxy;
pub use self::session::{Cause, ClientStreams, SessionEnd, SessionEndReason, serve};
pub use self::started::ServerStartError;
pub use self::streams::{ProcessStreams, standard};
pub use self::token::AccessToken;
pub use self::upstream::{Upstream, causes, passed};

/// What every proxy needs to know.
#[derive(Clone)]
pub struct ProxyOptions {
    /// Where what passes through is kept.
    pub recorder: Recorder,
    /// Who is on the other side.
    pub actor: Actor,
    /// The environment from which servers that are started inherit a part.
    pub inherited: Environment,
    /// What they inherit besides.
    pub pass: Vec<String>,
    /// The `proctor` binary, which the guard is a part of.
    pub guard: PathBuf,
    /// Edits what passes, on the server's side of the record.
    pub editor: Option<Arc<dyn Editor>>,
}

/// Why there is no proxy.
#[derive(Debug, thiserror::Error)]
pub enum ProxyError {
    /// The server's address or a header is wrong.
    #[error(transparent)]
    Address(#[from] AddressError),
    /// The server has no address.
    #[error("the server `{0}` has a command, not a URL")]
    NoAddress(String),
    /// The server can't be started.
    #[error(transparent)]
    Start(#[from] ServerStartError),
    /// The port can't be listened on.
    #[error("can't listen on port {port}: {error}")]
    Listen {
        /// Which, or 0 for any.
        port: u16,
        /// Why not.
        error: io::Error,
    },
}
