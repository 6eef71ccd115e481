//! Calls that a lenient server executes, on every way to it: none leaves a negative check green.

use std::collections::BTreeSet;

use proctor_core::check::{Check, NameMatcher, Times, ToolMatcher};
use proctor_record::event::FindingKind;
use proctor_record::fold::{FoldOptions, FoldedTrial, fold_trial};
use proctor_record::record::RunReader;
use proctor_record::verdict::Verdict;
use proctor_wire::proxy::Admission;

use super::RecordingFolder;
use crate::bridge::stage::{Stage, command};
use crate::reverse::raw::{RawRequest, RawServer, answer, ask, request};
use crate::reverse::stage::{Stage as Reverse, http};
use crate::stdio::{StdioKind, StdioProgram};

/// A server on Python's own JSON, which answers every call that it finds with the name of the tool.
const SERVER: &str = r#"
import json, sys
for line in sys.stdin:
    for part in line.split("\r"):
        try:
            messages = json.loads(part, strict=False)
        except ValueError:
            continue
        for message in messages if isinstance(messages, list) else [messages]:
            if isinstance(message, dict) and message.get("method") == "tools/call":
                result = {"content": [], "called": message["params"]["name"]}
                print(json.dumps({"jsonrpc": "2.0", "id": message.get("id"), "result": result}), flush=True)
"#;

/// Each with the tool that Python calls.
const CALLS: [(&str, &str); 9] = [
    (
        r#"{"jsonrpc":"2.0","id":1,"method":"ping","method":"tools/call","params":{"name":"t1"}}"#,
        "t1",
    ),
    (
        r#"{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"x"},"params":{"name":"t2"}}"#,
        "t2",
    ),
    (
        r#"{"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":"t3","arguments":{"a":NaN,"b":-Infinity}}}"#,
        "t3",
    ),
    (
        r#"{"jsonrpc":"2.0","method":"tools/call","params":{"name":"t4"}}"#,
        "t4",
    ),
    (
        "{\"jsonrpc\":\"2.0\",\"id\":5,\"method\":\"tools/call\",\"params\":{\"name\":\"t5\",\"arguments\":{\"a\":\"\t\u{1}\"}}}",
        "t5",
    ),
    (
        "{\"jsonrpc\":\"2.0\",\"id\":6,\"method\":\"ping\"}\r{\"jsonrpc\":\"2.0\",\"id\":7,\"method\":\"tools/call\",\"params\":{\"name\":\"t6\"}}",
        "t6",
    ),
    (
        r#"{"jsonrpc":"2.0","id":8,"method":"tools/call","params":{"name":"x","name":"t7"}}"#,
        "t7",
    ),
    (
        r#"[{"jsonrpc":"2.0","id":9,"method":"tools/call","params":{"name":"t8","arguments":{"a":NaN}}}]"#,
        "t8",
    ),
    (
        r#"{"jsonrpc":2,"id":10,"method":"tools\/call","params":{"name":"t9"}}"#,
        "t9",
    ),
];

fn unused(server: &str, tool: &str) -> Check {
    Check::ToolsNotUsed(vec![ToolMatcher {
        target: NameMatcher {
            server: server.to_owned(),
            name: Some(tool.to_owned()),
            pattern: None,
        },
        arguments: None,
        result: None,
        is_error: None,
        max_duration: None,
        times: Times::default(),
    }])
}

/// Every call is reported, and none leaves a check green.
fn examine(folded: &FoldedTrial, server: &str, way: &str) {
    for (line, tool) in CALLS {
        let verdict = unused(server, tool).evaluate(&folded.transcript).verdict;
        assert_ne!(verdict, Verdict::Pass, "{way}: {line}");
    }
    let none = Check::MaxToolCalls(0).evaluate(&folded.transcript).verdict;
    assert_ne!(none, Verdict::Pass, "{way}");
    let of_client = |kind: FindingKind| kind == FindingKind::ClientMessage;
    let found = folded.findings.iter().filter(|one| of_client(one.kind));
    let found: BTreeSet<&str> = found.map(|one| one.detail.as_str()).collect();
    assert!(found.len() >= CALLS.len(), "{way}: {found:#?}");
    // An answer to what was asked in such a way is an answer, unless it does not name its request.
    let mut unknown = folded.findings.iter();
    let is_unknown = unknown
        .any(|one| one.kind == FindingKind::UnknownId && !one.detail.ends_with("with no id"));
    assert!(!is_unknown, "{way}: {:#?}", folded.findings);
}

#[test]
fn what_python_executes_counts_on_stdio() {
    let place = RecordingFolder::new();
    let mut talk = StdioProgram::start(place.record(&["python3", "-c", SERVER]), StdioKind::Pipes);
    for (line, tool) in CALLS {
        talk.say(format!("{line}\n").as_bytes());
        assert!(talk.hears(&format!("\"called\": \"{tool}\"")), "{line}");
    }
    talk.close();
    talk.end();
    place.nothing_is_left();
    let run = RunReader::open(&place.runs()[0]).expect("a record");
    let trial = run.trials().expect("trials").remove(0);
    let folded = fold_trial(&run, &trial, &FoldOptions::default()).expect("it folds");
    let server = folded.transcript.unread[0].server.clone();
    examine(&folded, &server, "stdio");
}

#[tokio::test]
async fn what_some_servers_execute_counts_through_the_reverse_proxy() {
    let upstream = RawServer::start(|_: &RawRequest| {
        let result = br#"{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"what?"}}"#;
        let headers = ["Content-Type: application/json"];
        vec![answer("200 OK", &headers, result)]
    })
    .await;
    let stage = Reverse::open(&http(&upstream.url())).await;
    let address = stage.address();
    for (line, _) in CALLS {
        let posted = ask(&address, request("POST /mcp", &address, &[], line)).await;
        assert_eq!(posted.unwrap().status(), "200");
    }
    let record = stage.end().await;
    examine(&record.folded, "server", "reverse proxy");
}

#[tokio::test]
async fn what_some_servers_execute_counts_through_the_bridge() {
    let server = command("python3", &["-c", SERVER]);
    let stage = Stage::new(&server, Admission::Open).await;
    for (line, _) in CALLS {
        let reply = stage.http().send("POST", line.as_bytes()).await;
        let status = reply.expect("a response").status;
        assert!([200, 202, 400].contains(&status), "{status}: {line}");
    }
    let record = stage.end().await;
    examine(&record.folded, "bridged", "bridge");
}
