//! Proctor's client on a fixture, for what no command does.

use std::collections::BTreeMap;

use proctor_core::event::Actor;
use proctor_core::suite::Server;
use proctor_core::suite::server::{AllowedTools, Transport};
use proctor_wire::answers::ServerRequestReplies;
use proctor_wire::client::{ConnectOptions, Era, Timeouts};
use proctor_wire::recorder::Recorder;

/// A fixture on stdin and stdout, which speaks the older era.
pub fn stdio_server(args: &[&str]) -> Server {
    let era = ["--era", "handshake"];
    server(Transport::Stdio {
        command: crate::fixture().display().to_string(),
        args: era.iter().chain(args).map(ToString::to_string).collect(),
        env: BTreeMap::new(),
        folder: std::env::temp_dir(),
    })
}

/// A fixture that listens.
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
        written: "fixture-server".to_owned(),
    }
}

/// How it is connected to.
pub fn options(recorder: Recorder) -> ConnectOptions {
    ConnectOptions {
        actor: Actor::Loop,
        recorder,
        inherited: std::env::vars().collect(),
        pass: Vec::new(),
        guard: crate::program("proctor"),
        timeouts: Timeouts::default(),
        answers: ServerRequestReplies::default(),
        era: Some(Era::Handshake),
    }
}
