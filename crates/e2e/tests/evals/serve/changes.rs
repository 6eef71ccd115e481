//! The file changes while it is served.

use serde_json::{Value, json};

use super::spoken::SpokenSession;
use super::{Shelf, fixture_with, one};
use crate::ids;

const CHANGED: &[u8] = b"{\"jsonrpc\":\"2.0\",\"method\":\"notifications/evals/list_changed\"}\n";

fn list(spoken: &mut SpokenSession) -> Vec<String> {
    let listed = spoken.ask("evals/list", &json!({}));
    ids(&listed).into_iter().map(str::to_owned).collect()
}

#[test]
fn e7_e35_clients_are_told_of_a_change_and_get_the_new_list() {
    let shelf = Shelf::of("first");
    let mut spoken = SpokenSession::start(&shelf.serving(&fixture_with(&["--era", "handshake"])));
    assert_eq!(
        spoken.initialize()["result"]["capabilities"]["evals"]["listChanged"],
        true
    );
    assert_eq!(list(&mut spoken), ["first"]);
    // The same evals in other words are no change.
    let same: Vec<Value> = vec![one("first")];
    shelf.write(&format!("# a comment\n{}", json!({"evals": same})));
    shelf.write(&json!([one("first"), one("second")]).to_string());
    assert_eq!(spoken.line(), CHANGED);
    assert_eq!(list(&mut spoken), ["first", "second"]);

    shelf.write("evals:\n  - id: a\n");
    spoken.wait_for("still serving the old evals");
    assert_eq!(list(&mut spoken), ["first", "second"]);
    std::fs::remove_file(shelf.path("evals.yaml")).unwrap();
    spoken.wait_for(": 1 error; still serving the old evals");
    assert_eq!(list(&mut spoken), ["first", "second"]);

    shelf.write(&json!([one("third")]).to_string());
    assert_eq!(spoken.line(), CHANGED);
    assert_eq!(list(&mut spoken), ["third"]);
    let seen = spoken.finish();
    assert_eq!(seen.code, Some(0));
    assert!(seen.rest.is_empty(), "{seen:?}");
    assert!(seen.stderr.contains("evals.yaml:2:5"), "{}", seen.stderr);
    assert!(
        seen.stderr.ends_with(": reloaded, 1 eval\n"),
        "{}",
        seen.stderr
    );
}

#[test]
fn e7_e35_nobody_is_told_before_the_handshake_is_done() {
    let shelf = Shelf::of("first");
    let mut spoken = SpokenSession::start(&shelf.serving(&fixture_with(&["--era", "handshake"])));
    // By now it has read the file.
    assert_eq!(list(&mut spoken), ["first"]);
    shelf.write(&json!([one("second")]).to_string());
    spoken.wait_for(": reloaded, ");
    spoken.initialize();
    assert_eq!(list(&mut spoken), ["second"]);
    assert!(spoken.finish().rest.is_empty());
}

#[test]
fn e7_e35_clients_without_a_handshake_list_again() {
    let shelf = Shelf::of("first");
    let mut spoken = SpokenSession::start(&shelf.serving(&fixture_with(&["--era", "stateless"])));
    let meta = json!({"_meta": {
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientInfo": {"name": "test", "version": "1"},
        "io.modelcontextprotocol/clientCapabilities": {},
    }});
    crate::assert_declared(&spoken.ask("server/discover", &meta));
    let listed = spoken.ask("evals/list", &meta);
    let result = &listed["result"];
    assert_eq!(ids(&listed), ["first"]);
    assert_eq!(result["resultType"], "complete");
    assert_eq!(
        result["_meta"]["io.modelcontextprotocol/serverInfo"]["name"],
        "fixture-server"
    );
    shelf.write(&json!([one("second")]).to_string());
    spoken.wait_for(": reloaded, ");
    assert_eq!(ids(&spoken.ask("evals/list", &meta)), ["second"]);
    assert!(spoken.finish().rest.is_empty());
}
