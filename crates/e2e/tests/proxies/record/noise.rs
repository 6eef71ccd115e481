//! Lines that are no messages: the relay and the bridge report the same.

use proctor_record::event::{Event, EventKind, FindingKind};
use proctor_wire::proxy::Admission;
use serde_json::json;

use super::RecordingFolder;
use crate::bridge::stage::{Stage, command};
use crate::stdio::{StdioKind, StdioProgram};

/// A banner, a message with a byte order mark, an answer with a carriage return, and half a line.
const SERVER: &str = r#"printf 'Spring :: 1.0\n\n[INFO] up\n\357\273\277{"jsonrpc":"2.0","method":"notifications/x"}\n'
read line
printf '{"jsonrpc":"2.0","id":1,"result":{}}\r\n{"jsonrpc":'
"#;

fn found(events: &[Event]) -> Vec<(FindingKind, String)> {
    let events = events.iter().filter_map(|event| match &event.event {
        EventKind::Finding(finding) => Some((finding.kind, finding.detail.clone())),
        _ => None,
    });
    events.collect()
}

#[tokio::test]
async fn the_bridge_reports_lines_that_are_no_messages_as_the_relay_does() {
    let ask = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/list"});
    let place = RecordingFolder::new();
    let mut talk = StdioProgram::start(place.record(&["sh", "-c", SERVER]), StdioKind::Pipes);
    talk.say(format!("{ask}\n").as_bytes());
    assert!(talk.hears("\"result\""));
    talk.end();
    let relayed = found(&place.recorded().events);

    let stage = Stage::new(&command("sh", &["-c", SERVER]), Admission::Open).await;
    let reply = stage.http().post(&ask).await;
    assert_eq!(reply.status, 200);
    let bridged = found(&stage.end().await.events);

    assert_eq!(bridged, relayed);
    let details: Vec<&str> = bridged.iter().map(|(_, detail)| detail.as_str()).collect();
    assert_eq!(
        details,
        [
            "line is not a JSON-RPC message: Spring :: 1.0",
            "a blank line",
            "line is not a JSON-RPC message: [INFO] up",
            "byte order mark before a message",
            "carriage return at the end of a line",
            "the last line has no newline: {\"jsonrpc\":",
        ]
    );
}
