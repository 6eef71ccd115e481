//! Evals in front of a server on HTTP: an address on loopback, to be used instead of the server's own.

use std::path::PathBuf;
use std::sync::Arc;

use proctor_core::event::Actor;
use proctor_core::suite::{Environment, Server};

use super::EvalsResponder;
use crate::proxy::{Admission, ProxyError, ProxyOptions, ReverseProxy};
use crate::recorder::Recorder;

/// Offers a server with evals on a port of loopback; on one that is free, if it is 0. It is a reverse proxy
/// that edits, and records nothing. Must be called within a tokio runtime.
pub async fn http(
    server: &Server,
    desk: &Arc<EvalsResponder>,
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
        editor: Some(desk.clone()),
    };
    ReverseProxy::start(server, &options, port, admission).await
}
