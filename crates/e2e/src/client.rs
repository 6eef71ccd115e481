//! Connects Proctor's client to a fixture, for tests that no command covers.

use std::collections::BTreeMap;

use proctor_contain::process::ProcessEnds;
use proctor_core::suite::Server;
use proctor_core::suite::server::{AllowedTools, ClientSettings, Transport};
use proctor_record::event::Actor;
use proctor_wire::answers::ServerRequestReplies;
use proctor_wire::auth::Credentials;
use proctor_wire::client::{ConnectOptions, Era, Timeouts};
use proctor_wire::recorder::Recorder;

/// Returns a stdio fixture of the handshake era.
pub fn stdio_server(args: &[&str]) -> Server {
    let era = ["--era", "handshake"];
    server(Transport::Stdio {
        command: crate::fixture().display().to_string(),
        args: era.iter().chain(args).map(ToString::to_string).collect(),
        env: BTreeMap::new(),
        folder: std::env::temp_dir(),
        cwd: None,
    })
}

/// Returns a server with this URL.
pub fn http_server(url: &str) -> Server {
    server(Transport::Http {
        url: url.to_owned(),
        headers: BTreeMap::new(),
    })
}

fn server(transport: Transport) -> Server {
    Server {
        name: "fixture".to_owned(),
        transport,
        allowed: AllowedTools::All,
        auth: None,
        client: ClientSettings::default(),
        written: "fixture-server".to_owned(),
    }
}

/// Returns the options to connect with.
pub fn options(recorder: Recorder) -> ConnectOptions {
    ConnectOptions {
        actor: Actor::Loop,
        recorder,
        inherited: std::env::vars().collect::<BTreeMap<_, _>>().into(),
        pass: Vec::new(),
        guard: crate::program("proctor"),
        timeouts: Timeouts::default(),
        answers: ServerRequestReplies::default(),
        trial: None,
        credentials: Credentials::default(),
        era: Some(Era::Handshake),
        ends: ProcessEnds::default(),
    }
}
