//! The edits of `evals serve` on lines and events, byte for byte.

mod events;

use mcp_evals::{Eval, Expected, Input};
use proptest::prelude::*;
use serde_json::json;

use super::*;
use crate::edit::conversation::Conversation;
use crate::edit::lines::{ClientLines, ServerLines};

/// Longer messages are not edited.
const LIMIT: usize = 4 << 20;

const INITIALIZE: &str = r#"{"jsonrpc":"2.0","id":"i","method":"initialize","params":{}}"#;
const INITIALIZED: &str = r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#;
const ANSWER: &str = r#"{"id" : "i","result":{"protocolVersion":"2025-11-25", "capabilities" : {"x":1E+2}},"jsonrpc":"2.0"}"#;

fn responder() -> Arc<EvalsResponder> {
    let input = Input::execution("add", json!({"a": 1}));
    let eval = |id: &str| Eval::new(id, id, input.clone(), Expected::content(json!([])));
    let suite = mcp_evals::Suite::new(vec![eval("one"), eval("two")]).unwrap();
    Arc::new(EvalsResponder::new(
        suite.with_page_size(1),
        Box::new(|_| {}),
    ))
}

struct ProxyPair {
    conversation: Arc<Conversation>,
    client: ClientLines,
    server: ServerLines,
}

impl ProxyPair {
    fn new() -> Self {
        let editor: Arc<dyn Editor> = responder();
        let conversation = Conversation::begin(&editor);
        Self {
            client: ClientLines::new(&conversation),
            server: ServerLines::new(&conversation),
            conversation,
        }
    }

    fn client(&mut self, text: &str) -> (String, Vec<String>) {
        let turn = self.client.take(text.as_bytes());
        let text = |bytes| String::from_utf8(bytes).unwrap();
        (
            text(turn.on.bytes),
            turn.answers.into_iter().map(text).collect(),
        )
    }

    fn is_told(&self) -> bool {
        self.conversation.news().is_some()
    }

    fn server(&mut self, text: &str) -> String {
        String::from_utf8(self.server.take(text.as_bytes()).bytes).unwrap()
    }
}

#[test]
fn e35_evals_list_is_answered_without_the_server() {
    let mut both = ProxyPair::new();
    let text = "{\"jsonrpc\":\"2.0\",\"id\":1.50,\"method\":\"evals/list\"}\n{\"jsonrpc\":\"2.0\",\"id\":2,\"method\":\"ping\"}\n";
    let (on, answers) = both.client(text);
    assert_eq!(on, "{\"jsonrpc\":\"2.0\",\"id\":2,\"method\":\"ping\"}\n");
    assert!(answers[0].starts_with(r#"{"jsonrpc":"2.0","id":1.50,"result":{"evals":[{"id":"one""#));
    let first: serde_json::Value = serde_json::from_str(&answers[0]).unwrap();
    let cursor = &first["result"]["nextCursor"];
    let next =
        json!({"jsonrpc": "2.0", "id": 1, "method": "evals/list", "params": {"cursor": cursor}});
    let (_, answers) = both.client(&format!("{next}\r\n"));
    assert!(answers[0].contains(r#""id":"two""#) && !answers[0].contains("nextCursor"));
    for params in [
        r#"{"cursor":"x"}"#,
        r#"{"level":"unit"}"#,
        r#"{"cursor":1}"#,
        "[]",
        "null",
    ] {
        let text = format!(
            "{{\"jsonrpc\":\"2.0\",\"id\":\"\\u00e9\",\"method\":\"evals/list\",\"params\":{params}}}\n"
        );
        let (on, answers) = both.client(&text);
        assert_eq!(on, "");
        let head = r#"{"jsonrpc":"2.0","id":"\u00e9","error":{"code":-32602,"#;
        assert!(answers[0].starts_with(head), "{params}: {answers:?}");
    }
}

#[test]
fn e35_results_of_the_stateless_era_are_complete() {
    let mut both = ProxyPair::new();
    let meta = r#""params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28"}}"#;
    let ask =
        |method: &str| format!("{{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"{method}\",{meta}}}\n");
    let result = |text: &str| {
        let answer: serde_json::Value = serde_json::from_str(text).unwrap();
        answer["result"].clone()
    };
    let listed = result(&both.client(&ask("evals/list")).1[0]);
    assert_eq!(listed["resultType"], "complete");
    assert_eq!(
        (&listed["ttlMs"], &listed["cacheScope"]),
        (&json!(0), &json!("private"))
    );
    assert!(listed.get("_meta").is_none());
    both.client(&ask("server/discover"));
    let info = r#"{"io.modelcontextprotocol/serverInfo":{"name":"it"}}"#;
    both.server(&format!(
        "{{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{{\"capabilities\":{{}},\"_meta\":{info}}}}}\n"
    ));
    assert_eq!(
        result(&both.client(&ask("evals/list")).1[0])["_meta"].to_string(),
        info
    );
    assert!(!both.is_told());
}

#[test]
fn e35_only_the_handshake_response_is_edited_and_changes_are_notified_after_it() {
    let mut both = ProxyPair::new();
    // Nobody asked yet.
    assert_eq!(both.server(&format!("{ANSWER}\n")), format!("{ANSWER}\n"));
    assert_eq!(
        both.client(&format!("{INITIALIZE}\n")).0,
        format!("{INITIALIZE}\n")
    );
    let request =
        r#"{"jsonrpc":"2.0","id":"i","method":"roots/list","params":{"capabilities":{}}}"#;
    assert_eq!(both.server(&format!("{request}\n")), format!("{request}\n"));
    let declared = both.server(&format!("\u{feff}{ANSWER}\r\n"));
    let capability = r#"{"listChanged":true}"#;
    let added = format!(
        r#""evals":{capability},"experimental":{{"evals":{capability}}},"extensions":{{"dev.mcp-proctor/evals":{capability}}},"#
    );
    assert_eq!(
        declared,
        format!(
            "\u{feff}{}\r\n",
            ANSWER.replace("{\"x\"", &format!("{{{added}\"x\""))
        )
    );
    assert!(!both.is_told());
    both.client(&format!("{INITIALIZED}\n"));
    assert!(both.is_told());
    // Only once.
    assert_eq!(both.server(&format!("{ANSWER}\n")), format!("{ANSWER}\n"));
}

#[test]
fn e35_no_notification_if_the_server_declares_none_or_fails() {
    for answer in [
        r#"{"jsonrpc":"2.0","id":"i","result":{"capabilities":{"evals":{"listChanged":false}}}}"#,
        r#"{"jsonrpc":"2.0","id":"i","result":{"capabilities":[]}}"#,
        r#"{"jsonrpc":"2.0","id":"i","error":{"code":1,"message":"no"}}"#,
    ] {
        let mut both = ProxyPair::new();
        both.client(&format!("{INITIALIZE}\n{INITIALIZED}\n"));
        both.server(&format!("{answer}\n"));
        assert!(!both.is_told(), "{answer}");
    }
}

#[test]
fn e35_oversized_lines_pass_unchanged() {
    let mut both = ProxyPair::new();
    let list = r#"{"jsonrpc":"2.0","id":1,"method":"evals/list","params":{"x":""#;
    let long = format!("{list}{}\"}}}}\n", "x".repeat(LIMIT));
    let mut on = String::new();
    for chunk in long.as_bytes().chunks(100_000) {
        on.push_str(&both.client(std::str::from_utf8(chunk).unwrap()).0);
    }
    assert!(on == long);
    // What follows is looked at again.
    assert_eq!(
        both.client("{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"evals/list\"}\n")
            .1
            .len(),
        1
    );
}

#[test]
fn e35_own_lines_never_split_a_server_line() {
    let mut both = ProxyPair::new();
    let check = |both: &mut ProxyPair, text: &str, gap, between| {
        let said = both.server.take(text.as_bytes());
        let seen = (said.gap, both.server.is_between_lines());
        assert_eq!(seen, (gap, between), "{text:.9}");
    };
    check(&mut both, "", Some(0), true);
    // Nothing of a line that is held has been said.
    check(&mut both, "ab", Some(0), true);
    check(&mut both, "c\nde", Some(4), true);
    let long = "x".repeat(LIMIT);
    check(&mut both, &long, Some(0), false);
    check(&mut both, &long, None, false);
    check(&mut both, "f\ngh", Some(2), true);
    check(&mut both, "\n\n", Some(4), true);
}

#[test]
fn e35_a_line_that_began_before_the_handshake_can_answer_it() {
    let mut both = ProxyPair::new();
    assert_eq!(both.server("\u{feff}"), "");
    both.client(&format!("{INITIALIZE}\n"));
    assert!(both.server(&format!("{ANSWER}\n")).contains("evals"));
}

/// Valid and malformed parts of client and server messages.
fn pieces() -> impl Strategy<Value = Vec<Vec<u8>>> {
    let known = prop::sample::select(vec![
        &b"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"evals/lists\"}"[..],
        b"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/list\"}\n",
        b"[{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"evals/list\"}]\n",
        b"{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{\"capabilities\":{}}}\n",
        b"{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{\"evals\":[12345678901234567890.10]}}\r\n",
        b"\n",
        b"\r\n",
        b"\xff\x00",
    ]);
    let any = prop::collection::vec(any::<u8>(), 0..20);
    prop::collection::vec(prop_oneof![known.prop_map(<[u8]>::to_vec), any], 0..20)
}

proptest! {
    #[test]
    fn e35_other_bytes_pass_unchanged(pieces in pieces(), waits in any::<bool>()) {
        let mut both = ProxyPair::new();
        let (mut to_server, mut to_client) = (Vec::new(), Vec::new());
        if waits {
            both.client(&format!("{INITIALIZE}\n"));
        }
        for piece in &pieces {
            let turn = both.client.take(piece);
            prop_assert!(turn.answers.is_empty());
            to_server.extend(turn.on.bytes);
            let said = both.server.take(piece);
            prop_assert!(said.gap.is_none_or(|gap| gap <= said.bytes.len()));
            to_client.extend(said.bytes);
        }
        to_server.extend(both.client.end());
        to_client.extend(both.server.end());
        let all = pieces.concat();
        prop_assert_eq!(&to_server, &all);
        prop_assert_eq!(&to_client, &all);
    }

    #[test]
    fn e35_where_chunks_end_makes_no_difference(cuts in prop::collection::vec(1_usize..40, 0..40)) {
        let said = format!("{INITIALIZE}\n{{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"evals/list\"}}\nx\n{INITIALIZED}\ny");
        let heard = format!("log\n{ANSWER}\n{{}}\nz");
        let mut whole = ProxyPair::new();
        let (on, answers) = whole.client(&said);
        let back = whole.server(&heard);
        let mut both = ProxyPair::new();
        let mut turns = (String::new(), Vec::new());
        for piece in cut(&said, &cuts) {
            let (on, answers) = both.client(piece);
            turns.0.push_str(&on);
            turns.1.extend(answers);
        }
        let mut heard_back = String::new();
        for piece in cut(&heard, &cuts) {
            heard_back.push_str(&both.server(piece));
        }
        prop_assert_eq!(turns, (on, answers));
        // A line that has no end is held or not, depending on when it began.
        heard_back.push_str(&String::from_utf8(both.server.end()).unwrap());
        prop_assert_eq!(heard_back, back + &String::from_utf8(whole.server.end()).unwrap());
    }
}

fn cut<'a>(text: &'a str, sizes: &[usize]) -> Vec<&'a str> {
    let mut rest = text;
    let mut pieces = Vec::new();
    for size in sizes {
        let (piece, after) = rest.split_at((*size).min(rest.len()));
        pieces.push(piece);
        rest = after;
    }
    pieces.push(rest);
    pieces
}
