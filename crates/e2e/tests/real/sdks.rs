//! Small servers on the official SDKs, over streamable HTTP: stateful, stateless, and with streams that
//! the server closes and the client resumes.
//!
//! The whole matrix takes a while: it runs with `PROCTOR_EXTENDED=1`.

use std::path::Path;
use std::process::Command;

use proctor_e2e::port::ReservedPort;
use proctor_e2e::session::{Session, SessionOutcome};
use proctor_record::event::{Direction, EventKind};
use serde_json::Value;

use crate::servers::{ListeningServer, installed};

/// The SDK of a server.
#[derive(Clone, Copy, Debug)]
enum Sdk {
    /// The folder of the cache, and the package.
    Python(&'static str, &'static str),
    /// What the example servers with evals run on.
    Python2,
    TypeScript1,
    TypeScript2,
}

const ALL: [Sdk; 7] = [
    Sdk::Python("sdks/mcp-1.30", "mcp"),
    Sdk::Python("sdks/mcp-1.29", "mcp"),
    Sdk::Python("sdks/mcp-1.28", "mcp"),
    Sdk::Python2,
    Sdk::Python("sdks/fastmcp-4.1", "fastmcp"),
    Sdk::TypeScript1,
    Sdk::TypeScript2,
];

/// A server, and the folder that it runs in.
struct SmallServer {
    server: ListeningServer,
    _folder: tempfile::TempDir,
}

impl SmallServer {
    fn start(sdk: Sdk, mode: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("servers");
        for file in [
            "python.py",
            "small.mjs",
            "typescript-1.mjs",
            "typescript-2.mjs",
        ] {
            std::fs::copy(source.join(file), folder.path().join(file)).unwrap();
        }
        let port = ReservedPort::new();
        let mut command = match sdk {
            Sdk::Python(place, package) => python(folder.path(), Some(place), package),
            Sdk::Python2 => python(folder.path(), None, "mcp"),
            Sdk::TypeScript1 => node(folder.path(), "clients", "typescript-1.mjs"),
            Sdk::TypeScript2 => node(folder.path(), "sdks/typescript-2", "typescript-2.mjs"),
        };
        command.args([mode, &port.number().to_string()]);
        Self {
            server: ListeningServer::start(&mut command, &port, "mcp"),
            _folder: folder,
        }
    }

    /// A command on the server, which must end well and find no fault.
    fn run(&self, words: &[&str]) -> SessionOutcome {
        let words = [words, &["--strict"]].concat();
        let seen = Session::new(&words).at(&self.server.url).run();
        assert_eq!(seen.code, Some(0), "{words:?}: {}", seen.stderr);
        seen
    }
}

fn python(folder: &Path, place: Option<&str>, package: &str) -> Command {
    let mut command = Command::new(installed("evals/python/bin/python"));
    if let Some(place) = place {
        command.env("PYTHONPATH", installed(place));
    }
    command.arg(folder.join("python.py")).arg(package);
    command
}

fn node(folder: &Path, place: &str, file: &str) -> Command {
    let modules = installed(&format!("{place}/node_modules"));
    std::os::unix::fs::symlink(modules, folder.join("node_modules")).unwrap();
    let mut command = Command::new("node");
    command.arg(folder.join(file));
    command
}

fn is_listed_and_called(sdk: Sdk, mode: &str) {
    let small = SmallServer::start(sdk, mode);
    let listed = small.run(&["tools"]).stdout;
    assert!(listed.contains("add"), "{sdk:?} {mode}: {listed}");
    let seen = small.run(&["call", "add", "a=2", "b=40"]);
    assert!(
        seen.stdout.starts_with("2 and 40 is 42\n"),
        "{sdk:?} {mode}: {}",
        seen.stdout
    );
}

/// Whether the call was resumed, as the record says.
fn is_resumed(sdk: Sdk) -> bool {
    let small = SmallServer::start(sdk, "resumable");
    let seen = small.run(&["call", "wait"]);
    assert!(
        seen.stdout.starts_with("worth the wait\n"),
        "{sdk:?}: {}",
        seen.stdout
    );
    let heads = seen.events.iter().filter_map(|event| match &event.event {
        EventKind::Http(head) => Some(format!("{head:?}")),
        _ => None,
    });
    heads.into_iter().any(|head| head.contains("last-event-id"))
}

fn is_extended() -> bool {
    std::env::var("PROCTOR_EXTENDED").is_ok_and(|value| value == "1")
}

#[test]
fn a_stateful_server_that_names_a_session_in_an_error_is_listed_and_called() {
    is_listed_and_called(ALL[0], "stateful");
}

#[test]
fn a_call_whose_stream_the_server_closes_is_resumed() {
    assert!(is_resumed(ALL[0]));
    assert!(is_resumed(Sdk::TypeScript1));
}

#[test]
fn the_standing_stream_that_a_server_closes_is_resumed() {
    let small = SmallServer::start(ALL[0], "resumable");
    let seen = small.run(&["call", "announce"]);
    let heard = seen.messages(Direction::ToClient).into_iter();
    let heard: Vec<String> = heard
        .filter_map(|message| {
            let message: Value = serde_json::from_slice(&message).ok()?;
            Some(message["method"].as_str()?.to_owned())
        })
        .collect();
    assert_eq!(
        heard,
        [
            "notifications/tools/list_changed",
            "notifications/prompts/list_changed"
        ]
    );
}

#[test]
fn every_sdk_is_listed_and_called_stateful_and_stateless() {
    if !is_extended() {
        return;
    }
    for sdk in ALL {
        is_listed_and_called(sdk, "stateful");
        is_listed_and_called(sdk, "stateless");
    }
}

#[test]
fn every_sdk_answers_a_call_whose_stream_it_closes() {
    if !is_extended() {
        return;
    }
    for sdk in ALL {
        // Those that speak the stateless era have no streams to resume.
        let is_stateless = matches!(sdk, Sdk::Python2 | Sdk::Python("sdks/fastmcp-4.1", _));
        assert_eq!(is_resumed(sdk), !is_stateless, "{sdk:?}");
    }
}
