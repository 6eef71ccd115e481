//! Proxies with an editor behind them: what it edits is edited on every transport and in both eras, all else is
//! as it was, and the record holds what the client sent and got.

mod editors;
mod faults;

use std::path::Path;
use std::sync::Arc;

use proctor_e2e::{Fixture, fixture, log_lines};
use proctor_wire::edit::Editor;
use proctor_wire::proxy::Admission;

use self::editors::{NEW, OLD, Overlay};
use super::hosted::{HostedServer, Kind};
use super::transparency::client::{ClientTrace, Step, play};
use super::transparency::{HANDSHAKE, STATELESS, sorted};
use super::ways::{Door, RecordedMessages};

/// How a fixture is reached.
#[derive(Debug, Clone, Copy, PartialEq)]
enum FixtureTransport {
    Stdio,
    Http,
    Older,
}

/// A fixture with words, and the door to it.
fn served(spoken: FixtureTransport, words: &[&str]) -> (Door, Option<Fixture>) {
    let listening = match spoken {
        FixtureTransport::Stdio => {
            let program = fixture().display().to_string();
            let words = words.iter().map(ToString::to_string);
            let command = std::iter::once(program).chain(words).collect();
            return (Door::Command(command), None);
        }
        FixtureTransport::Http => Fixture::http(words),
        FixtureTransport::Older => Fixture::sse(words),
    };
    let door = match spoken {
        FixtureTransport::Older => Door::sse(listening.url()),
        FixtureTransport::Stdio | FixtureTransport::Http => Door::http(listening.url()),
    };
    (door, Some(listening))
}

/// What everybody saw.
struct SessionTrace {
    talk: ClientTrace,
    /// What came to the server, and what it sent.
    server: [Vec<String>; 2],
    kept: Option<RecordedMessages>,
}

/// Plays a script, direct or through a proxy with an editor.
fn played(
    (spoken, words): (FixtureTransport, &[&str]),
    script: &[Step],
    through: Option<(Kind, Arc<dyn Editor>)>,
    wanted: usize,
) -> SessionTrace {
    let folder = tempfile::tempdir().expect("a folder can be made");
    let log = folder.path().join("log");
    let logged = ["--log", log.to_str().expect("a path is text")];
    let words: Vec<&str> = words.iter().chain(&logged).copied().collect();
    let (server, _listening) = served(spoken, &words);
    let hosted = through
        .map(|(kind, editor)| HostedServer::editing(kind, &server, folder.path(), Some(editor)));
    let door = match &hosted {
        Some(hosted) => hosted.door(&server),
        None => server.clone(),
    };
    let talk = play(&door, script, folder.path(), wanted);
    let kept = hosted.map(|hosted| {
        hosted.close();
        RecordedMessages::read(folder.path())
    });
    SessionTrace {
        talk,
        server: account(&log),
        kept,
    }
}

/// What a fixture says that it got and sent.
fn account(log: &Path) -> [Vec<String>; 2] {
    let log = log_lines(log);
    ["in", "out"].map(|direction| {
        let lines = log.iter().filter(|line| line["dir"] == direction);
        let texts = lines.filter_map(|line| line["text"].as_str());
        // A request without a body is no message.
        texts
            .filter(|text| !text.is_empty())
            .map(str::to_owned)
            .collect()
    })
}

/// Only what the overlay is for differs from a session without it.
fn overlaid(server: (FixtureTransport, &[&str]), script: &[Step], kind: Kind) {
    let direct = played(server, script, None, 0);
    let wanted = direct.talk.came.len();
    let edited = played(server, script, Some((kind, Arc::new(Overlay))), wanted);
    let case = format!("{server:?} {kind:?}");
    let listed = |text: &String| text.contains(OLD);
    let lists = direct.talk.came.iter().filter(|text| listed(text)).count();
    assert_eq!(lists, 1, "{case}: the script lists tools");
    let expected: Vec<String> = direct
        .talk
        .came
        .iter()
        .map(|text| text.replace(OLD, NEW))
        .collect();
    assert_eq!(sorted(&edited.talk.came), sorted(&expected), "{case}");
    assert_eq!(
        sorted(&edited.talk.sent),
        sorted(&direct.talk.sent),
        "{case}"
    );
    // The server knows nothing of it.
    for (edited, direct) in edited.server.iter().zip(&direct.server) {
        assert_eq!(sorted(edited), sorted(direct), "{case}: the server");
    }
    // The record is on the client's side, and has not touched what it kept.
    let kept = edited.kept.expect("a record");
    assert_eq!(sorted(&kept.to_client), sorted(&edited.talk.came), "{case}");
    assert_eq!(sorted(&kept.to_server), sorted(&edited.talk.sent), "{case}");
}

const ODD: [&str; 4] = ["--mode", "strange-envelope", "--mode", "strange-messages"];
const REVERSE: Kind = Kind::Reverse(Admission::Path);

#[test]
fn an_overlay_changes_one_description_on_stdio() {
    for script in [HANDSHAKE, STATELESS] {
        overlaid((FixtureTransport::Stdio, &ODD), script, Kind::Relay);
    }
}

#[test]
fn an_overlay_changes_one_description_on_http() {
    for script in [HANDSHAKE, STATELESS] {
        overlaid((FixtureTransport::Http, &ODD), script, REVERSE);
    }
}

#[test]
fn an_overlay_changes_one_description_in_json_bodies() {
    let words = [&ODD[..], &["--mode", "json-responses"]].concat();
    overlaid((FixtureTransport::Http, &words), HANDSHAKE, REVERSE);
}

#[test]
fn an_overlay_changes_one_description_in_events() {
    let words = [&ODD[..], &["--mode", "sse-responses"]].concat();
    for script in [HANDSHAKE, STATELESS] {
        overlaid((FixtureTransport::Http, &words), script, REVERSE);
    }
}

#[test]
fn an_overlay_changes_one_description_on_the_older_http() {
    overlaid((FixtureTransport::Older, &ODD), HANDSHAKE, REVERSE);
}

#[test]
fn an_overlay_changes_one_description_behind_a_bridge() {
    for script in [HANDSHAKE, STATELESS] {
        overlaid(
            (FixtureTransport::Stdio, &ODD),
            script,
            Kind::Bridge(Admission::Path),
        );
    }
}
