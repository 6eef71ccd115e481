//! Bytes, direct and through every proxy: each message arrives as it was sent, in both directions.
//!
//! The fixture server writes odd texts and keeps a log of its own, the client here does the same. A proxy that
//! parses a message and writes it again would change white space, the order of keys, numbers, escapes, or
//! lose what it does not know.

pub mod client;
pub mod http;

use std::path::Path;

use mcp_evals::Capability;
use mcp_evals::splice::declare;
use proctor_e2e::{Fixture, fixture, log_lines};
use proctor_wire::proxy::Admission;
use serde_json::{Value, json};

use self::client::{ClientTrace, Step, play};
use super::ways::{Door, ProxyRoute};

/// A session of the handshake era.
pub const HANDSHAKE: &[Step] = &[
    Step::Send(
        r#"{ "x-unknown":{"n":12345678901234567890.12345678901234567890},"method" :"initialize","id":1,"params":{"clientInfo":{"version":"1","name":"b\u00ffte","x":[]},"capabilities":{"sampling":{},"elicitation":{},"x-unknown":{"a":1,"a":2}},"protocolVersion":"2025-11-25"},"jsonrpc":"2.0"}"#,
    ),
    Step::Send(r#"{"method":"notifications/initialized",	"jsonrpc":"2.0","x-unknown":-0.0}"#),
    Step::Send(
        r#"{"jsonrpc":"2.0","method":"notifications/x\u002dunknown","params":{"b":1E400,"a":"\/ \u0000 \ud83d\ude00"} }"#,
    ),
    Step::Send(
        r#"{"jsonrpc":"2.0","id":"zwei \"2\" é","method":"x/unknown","params":{"b" : 1.50, "a":[ ],"b":0.1e1}}"#,
    ),
    Step::Send(r#"   {"jsonrpc":"2.0","method":"tools/list","id":3,"params":{ }}   "#),
    Step::Send(
        r#"{"id":4,"jsonrpc":"2.0","method":"tools/call","params":{"arguments":{"a":12345678901234567890, "b":1e-7},"name":"add","_meta":{"x":1.0}}}"#,
    ),
    Step::Send(
        r#"{"id":5,"jsonrpc":"2.0","method":"tools/call","params":{"name":"echo","arguments":{"text":"\u0065\u0301 \\ \u2028 世界"}}}"#,
    ),
    Step::Send(
        r#"{"id":6,"jsonrpc":"2.0","method":"tools/call","params":{"name":"ask","arguments":{"kind":"elicitation"}}}"#,
    ),
    Step::Send(
        r#"{"id":7,"jsonrpc":"2.0","method":"tools/call","params":{"name":"ask","arguments":{"kind":"sampling","rounds":2}}}"#,
    ),
    Step::Send(
        r#"{"id":8,"jsonrpc":"2.0","method":"tools/call","params":{"name":"progress","arguments":{"steps":3,"ms":1},"_meta":{"progressToken":"t\u006fken"}}}"#,
    ),
    Step::Send(
        r#"{"id":9,"jsonrpc":"2.0","method":"resources/read","params":{"uri":"fixture:\/\/text"}}"#,
    ),
    Step::Send(r#"{"id":10,"jsonrpc":"2.0","method":"ping"}"#),
];

/// A session of the stateless era, with rounds of input.
pub const STATELESS: &[Step] = &[
    Step::Send(
        r#"{ "x-unknown":{"n":12345678901234567890},"method" :"server/discover","id":1,"params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{"version":"1","name":"b\u00ffte"},"io.modelcontextprotocol/clientCapabilities":{"elicitation":{},"sampling":{}},"x":1.0}},"jsonrpc":"2.0"}"#,
    ),
    Step::Send(
        r#"{"jsonrpc":"2.0","id":"l\u0069st","method":"tools/list","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{"version":"1","name":"c"},"io.modelcontextprotocol/clientCapabilities":{}}}}"#,
    ),
    Step::Send(
        r#"{"jsonrpc":"2.0","id":"zwei \"2\" é","method":"x/unknown","params":{"b" : 1.50, "a":[ ],"b":0.1e1,"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{"version":"1","name":"c"},"io.modelcontextprotocol/clientCapabilities":{}}}}"#,
    ),
    Step::Send(
        r#"{"id":3,"jsonrpc":"2.0","method":"tools/call","params":{"arguments":{"a":12345678901234567890, "b":1e-7},"name":"add","_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{"version":"1","name":"c"},"io.modelcontextprotocol/clientCapabilities":{}}}}"#,
    ),
    Step::Send(
        r#"{"id":4,"jsonrpc":"2.0","method":"tools/call","params":{"name":"ask","arguments":{"kind":"elicitation","rounds":2},"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{"version":"1","name":"c"},"io.modelcontextprotocol/clientCapabilities":{"elicitation":{}}}}}"#,
    ),
    Step::Then(next_round),
    Step::Then(next_round),
];

/// The next round of a call that wants input.
fn next_round(answer: &Value) -> String {
    let result = &answer["result"];
    assert_eq!(result["resultType"], "input_required", "{answer}");
    let asked = result["inputRequests"]
        .as_object()
        .expect("it asks for something");
    let given: Vec<String> = asked
        .keys()
        .map(|key| {
            format!(
                r#"{}:{{"content":{{"name":"A\u0064a"}},  "action":"accept"}}"#,
                json!(key)
            )
        })
        .collect();
    let (given, state) = (given.join(" , "), &result["requestState"]);
    let id = answer["id"].as_u64().expect("ids are numbers") + 1;
    format!(
        r#"{{"id":{id},"jsonrpc":"2.0","method":"tools/call","params":{{"requestState":{state},"inputResponses":{{{given}}},"name":"ask","arguments":{{"kind":"elicitation","rounds":2}},"_meta":{{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{{"version":"1","name":"c"}},"io.modelcontextprotocol/clientCapabilities":{{"elicitation":{{}}}}}}}}}}"#
    )
}

/// What both sides saw: the client's own account, and the server's.
struct TraceOfBothSides {
    talk: ClientTrace,
    /// What came to the server, and what it sent.
    server: [Vec<String>; 2],
}

/// How the fixture is told to write, and to keep what it sees.
fn arguments(log: &Path) -> Vec<String> {
    let words = [
        "--mode",
        "strange-envelope",
        "--mode",
        "strange-messages",
        "--log",
    ];
    let mut all: Vec<String> = words.iter().map(ToString::to_string).collect();
    all.push(log.display().to_string());
    all
}

fn through(way: ProxyRoute, script: &[Step], is_http: bool, wanted: usize) -> TraceOfBothSides {
    let own = tempfile::tempdir().expect("a folder can be made");
    let log = own.path().join("log");
    let words = arguments(&log);
    let listening;
    let server = if is_http {
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        listening = Fixture::http(&words);
        Door::http(listening.url())
    } else {
        let program = fixture().display().to_string();
        Door::Command(std::iter::once(program).chain(words).collect())
    };
    let opened = way.open(&server);
    let talk = play(&opened.door, script, opened.folder(), wanted);
    if let Some(kept) = opened.close() {
        assert_eq!(
            sorted(&kept.to_server),
            sorted(&talk.sent),
            "{way:?}: the record"
        );
        assert_eq!(
            sorted(&kept.to_client),
            sorted(&talk.came),
            "{way:?}: the record"
        );
    }
    let log = log_lines(&log);
    let said = |direction: &str| -> Vec<String> {
        let lines = log.iter().filter(|line| line["dir"] == direction);
        let texts = lines.filter_map(|line| line["text"].as_str());
        // A request without a body is no message.
        texts
            .filter(|text| !text.is_empty())
            .map(str::to_owned)
            .collect()
    };
    TraceOfBothSides {
        talk,
        server: [said("in"), said("out")],
    }
}

pub fn sorted(texts: &[String]) -> Vec<String> {
    let mut texts = texts.to_vec();
    texts.sort();
    texts
}

/// Plays a script direct and through proxies, and compares.
fn same(script: &[Step], is_http: bool, ways: &[ProxyRoute]) {
    let direct = through(ProxyRoute::Direct, script, is_http, 0);
    assert_eq!(
        sorted(&direct.talk.sent),
        sorted(&direct.server[0]),
        "the server's account"
    );
    assert_eq!(
        sorted(&direct.talk.came),
        sorted(&direct.server[1]),
        "the server's account"
    );
    for way in ways {
        let mut proxied = through(*way, script, is_http, direct.talk.came.len());
        if *way == ProxyRoute::Serve {
            let first = &mut proxied.talk.came[0];
            let declared = declare(
                direct.talk.came[0].as_bytes(),
                &Capability::with_list_changed(),
            );
            let declared = declared.expect("the first answer has capabilities");
            assert_eq!(first.as_bytes(), declared, "{way:?}");
            first.clone_from(&direct.talk.came[0]);
        }
        // Streams beside each other have no order; replies and answers may overtake each other.
        let pairs = [
            (&proxied.talk.sent, &direct.talk.sent),
            (&proxied.talk.came, &direct.talk.came),
            (&proxied.server[0], &direct.server[0]),
            (&proxied.server[1], &direct.server[1]),
        ];
        for (proxied, direct) in pairs {
            for (one, other) in sorted(proxied).iter().zip(&sorted(direct)) {
                assert_eq!(one, other, "{way:?}");
            }
            assert_eq!(
                proxied.len(),
                direct.len(),
                "{way:?}: {proxied:#?} {direct:#?}"
            );
        }
    }
}

#[test]
fn bytes_stay_as_they_are_on_stdio() {
    let ways = [ProxyRoute::Relay, ProxyRoute::Record, ProxyRoute::Serve];
    same(HANDSHAKE, false, &ways);
    same(STATELESS, false, &ways);
}

#[test]
fn bytes_stay_as_they_are_on_http() {
    let ways = [ProxyRoute::Reverse(Admission::Path), ProxyRoute::Serve];
    same(HANDSHAKE, true, &ways);
    same(STATELESS, true, &ways);
}

#[test]
fn bytes_stay_as_they_are_from_http_to_stdio() {
    let ways = [ProxyRoute::Bridge(Admission::Header)];
    same(HANDSHAKE, false, &ways);
    same(STATELESS, false, &ways);
}
