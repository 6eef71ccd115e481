//! Serves evals in front of an HTTP server, on a local URL that replaces the server's.

use std::path::PathBuf;
use std::sync::Arc;

use proctor_core::suite::{Environment, Server};
use proctor_record::event::Actor;

use super::EvalsResponder;
use crate::auth::Credentials;
use crate::proxy::{Admission, ProxyError, ProxyOptions, ReverseProxy};
use crate::recorder::Recorder;

/// Serves evals on a loopback port; 0 picks a free port. The reverse proxy edits and records
/// nothing. Must be called within a tokio runtime.
pub async fn http(
    server: &Server,
    responder: &Arc<EvalsResponder>,
    port: u16,
    admission: Admission,
) -> Result<ReverseProxy, ProxyError> {
    let options = ProxyOptions {
        recorder: Recorder::nothing(),
        actor: Actor::Agent,
        // No program is started.
        inherited: Environment::default(),
        pass: Vec::new(),
        guard: PathBuf::new(),
        trial: None,
        // The clients of this server have their own.
        credentials: Credentials::default(),
        editor: Some(responder.clone()),
    };
    ReverseProxy::start(server, &options, port, admission).await
}
