//! The modes of lists.

use std::collections::HashSet;

use serde_json::{Value, json};

use crate::wire::{META, Server, start_mode};

fn page(server: &mut Server, method: &str, cursor: Option<&str>) -> Value {
    let params = cursor.map_or(json!({}), |cursor| json!({ "cursor": cursor }));
    server.request(1, method, &params.to_string());
    server.message()["result"].take()
}

/// The number of items on each page of a list, up to ten pages.
fn pages(mode: &str, method: &str, key: &str) -> Vec<usize> {
    let mut server = start_mode(mode);
    let (mut counts, mut cursor, mut seen) = (Vec::new(), None, HashSet::new());
    while counts.len() < 10 {
        let page = page(&mut server, method, cursor.as_deref());
        let items = page[key].as_array().unwrap();
        counts.push(items.len());
        assert!(
            items
                .iter()
                .all(|item| seen.insert(item["name"].to_string()))
                || mode == "repeated-cursor"
        );
        match page["nextCursor"].as_str() {
            Some(next) => cursor = Some(next.to_owned()),
            None => break,
        }
    }
    counts
}

#[test]
fn lists_have_as_many_pages_as_they_are_told() {
    for (method, key, items) in [
        ("tools/list", "tools", 8),
        ("resources/list", "resources", 2),
        ("resources/templates/list", "resourceTemplates", 1),
        ("prompts/list", "prompts", 1),
    ] {
        assert_eq!(pages("pages=1", method, key), [items]);
        assert_eq!(pages("pages=3", method, key), [items, 1, 1]);
        assert_eq!(pages("empty-pages=2", method, key), [0, 0, items]);
        assert_eq!(pages("empty-cursor", method, key), [items, 1]);
        assert_eq!(pages("endless-pages", method, key).len(), 10);
        assert_eq!(pages("repeated-cursor", method, key).len(), 10);
    }
}

#[test]
fn cursors_are_empty_repeated_or_unknown() {
    assert_eq!(
        page(&mut start_mode("empty-cursor"), "tools/list", None)["nextCursor"],
        ""
    );
    assert_eq!(
        page(
            &mut start_mode("repeated-cursor"),
            "tools/list",
            Some("again")
        )["nextCursor"],
        "again"
    );
    let mut server = start_mode("pages=2");
    server.request(1, "tools/list", r#"{"cursor":"nonsense"}"#);
    assert_eq!(server.message()["error"]["code"], -32602);
}

#[test]
fn tools_change_after_the_first_call() {
    let mut server = start_mode("tools-change");
    server.request(1, "initialize", "{}");
    server.message();
    server.echo(2);
    assert_eq!(server.message()["id"], 2);
    assert_eq!(
        server.message()["method"],
        "notifications/tools/list_changed"
    );
    let tools = page(&mut server, "tools/list", None)["tools"].to_string();
    assert!(tools.contains("\"late\"") && !tools.contains("\"fail\""));
    server.echo(3);
    server.echo(4);
    assert_eq!(
        [server.message()["id"].take(), server.message()["id"].take()],
        [3, 4]
    );
}

#[test]
fn stateless_clients_hear_of_changes_only_if_they_listen() {
    let mut server = start_mode("tools-change");
    server.request(
        5,
        "subscriptions/listen",
        &format!(r#"{{{META},"notifications":{{"toolsListChanged":true}}}}"#),
    );
    let acknowledged = server.message();
    assert_eq!(
        acknowledged["method"],
        "notifications/subscriptions/acknowledged"
    );
    assert_eq!(
        acknowledged["params"]["notifications"]["toolsListChanged"],
        true
    );
    server.request(6, "tools/call", &format!(r#"{{"name":"fail",{META}}}"#));
    assert_eq!(server.message()["id"], 6);
    let changed = server.message();
    assert_eq!(changed["method"], "notifications/tools/list_changed");
    assert_eq!(
        changed["params"]["_meta"]["io.modelcontextprotocol/subscriptionId"],
        5
    );

    let mut server = start_mode("tools-change");
    for id in [6, 7] {
        server.request(id, "tools/call", &format!(r#"{{"name":"fail",{META}}}"#));
        assert_eq!(server.message()["id"], id);
    }
}

#[test]
fn a_server_can_have_no_tools() {
    let mut server = start_mode("no-tools");
    server.request(1, "initialize", "{}");
    assert!(server.message()["result"]["capabilities"]["tools"].is_null());
    server.request(2, "tools/list", "{}");
    assert_eq!(server.message()["error"]["code"], -32601);
    assert_eq!(
        page(&mut start_mode("no-tools=empty"), "tools/list", None)["tools"],
        json!([])
    );
}
