//! The evals that the fixture ships, in both eras and on every transport.

use std::io::Write;

use proctor_e2e::{Fixture, log_lines};
use serde_json::{Value, json};
use tempfile::NamedTempFile;

use crate::wire::{
    META, Server, open_session, post, read_chunk, read_head, send, start, stateless,
};

/// Broken and unknown items between good ones, over two lines.
const FILE: &str = r#"[ {"id":"a", "input":{"type":"execution","n":9007199254740993}},
  {"id":"b","input":{"type":"invocation"}}, 42,
  {"id":"c","input":{"type":"execution"}}, {"id":"d","input":{"type":"dance"}} ]"#;

fn file(text: &str) -> NamedTempFile {
    let mut file = NamedTempFile::new().unwrap();
    file.write_all(text.as_bytes()).unwrap();
    file
}

fn path(file: &NamedTempFile) -> &str {
    file.path().to_str().unwrap()
}

fn shipping(modes: &[&str]) -> Server {
    let file = file(FILE);
    let mut arguments = vec!["--evals", path(&file)];
    arguments.extend(modes.iter().flat_map(|mode| ["--mode", *mode]));
    let mut server = start(&arguments);
    // The file is read before the first answer.
    server.request(0, "initialize", "{}");
    server.message();
    server
}

fn page(server: &mut Server, params: &Value) -> Value {
    server.request(1, "evals/list", &params.to_string());
    server.message()
}

fn ids(answer: &Value) -> Vec<String> {
    let evals = answer["result"]["evals"].as_array();
    let evals = evals.unwrap_or_else(|| panic!("no list: {answer}"));
    let id = |eval: &Value| eval["id"].as_str().unwrap_or("?").to_owned();
    evals.iter().map(id).collect()
}

#[test]
fn e4_items_are_sent_as_they_are_in_pages_and_by_level() {
    let mut server = shipping(&[]);
    server.request(1, "evals/list", "{}");
    let line = server.text();
    assert!(line.contains(r#"{"id":"a", "input":{"type":"execution","n":9007199254740993}}"#));
    let all = page(&mut server, &json!({}));
    assert_eq!(ids(&all), ["a", "b", "?", "c", "d"]);
    let some = page(&mut server, &json!({"level": "execution"}));
    assert_eq!(ids(&some), ["a", "c"]);
    for params in [
        json!({"level": "x"}),
        json!({"cursor": "x"}),
        json!({"cursor": 5}),
    ] {
        assert_eq!(page(&mut server, &params)["error"]["code"], -32602);
    }

    let mut server = shipping(&["evals-page=2"]);
    let first = page(&mut server, &json!({}));
    assert_eq!(ids(&first), ["a", "b"]);
    let second = page(
        &mut server,
        &json!({"cursor": first["result"]["nextCursor"]}),
    );
    assert_eq!(ids(&second), ["?", "c"]);
    let last = page(
        &mut server,
        &json!({"cursor": second["result"]["nextCursor"]}),
    );
    assert_eq!(ids(&last), ["d"]);
    assert!(last["result"].get("nextCursor").is_none());
    let mut server = shipping(&["evals-ignore-level"]);
    assert_eq!(
        ids(&page(&mut server, &json!({"level": "scenario"}))).len(),
        5
    );
}

#[test]
fn e1_the_capability_is_where_it_is_wanted() {
    let places = |modes: &[&str]| {
        let mut arguments = vec!["--mode", "evals-page=1"];
        arguments.extend(modes.iter().flat_map(|mode| ["--mode", *mode]));
        let mut server = start(&arguments);
        server.request(0, "initialize", "{}");
        let capabilities = server.message()["result"]["capabilities"].take();
        [
            capabilities["evals"].is_object(),
            capabilities["experimental"]["evals"].is_object(),
            capabilities["extensions"]["dev.mcp-proctor/evals"].is_object(),
        ]
    };
    assert_eq!(places(&[]), [true, true, true]);
    assert_eq!(places(&["evals-at=top"]), [true, false, false]);
    assert_eq!(
        places(&["evals-at=extensions,experimental"]),
        [false, true, true]
    );
    assert_eq!(places(&["evals-nowhere"]), [false, false, false]);
    assert_eq!(
        ids(&page(&mut shipping(&["evals-nowhere"]), &json!({}))).len(),
        5
    );
    let mut plain = start(&[]);
    plain.request(0, "initialize", "{}");
    assert!(plain.message()["result"]["capabilities"]["evals"].is_null());
    assert_eq!(page(&mut plain, &json!({}))["error"]["code"], -32601);
    let wrong = start(&["--mode", "evals-at=bottom"]).end();
    assert_eq!(wrong.0.code(), Some(2));
}

#[test]
fn hostile_lists_go_on_as_they_are_told() {
    let mut server = shipping(&["evals-million"]);
    let first = page(&mut server, &json!({}));
    assert_eq!(ids(&first).len(), 1000);
    assert_eq!(first["result"]["nextCursor"], "from-1000");
    let last = page(&mut server, &json!({"cursor": "from-999000"}));
    assert_eq!(ids(&last).last().unwrap(), "made-999999");
    assert!(last["result"].get("nextCursor").is_none());

    let mut server = shipping(&["evals-endless-cursor"]);
    let mut cursor = json!({});
    for items in [5, 0, 0] {
        let next = page(&mut server, &cursor);
        assert_eq!(ids(&next).len(), items);
        cursor = json!({"cursor": next["result"]["nextCursor"]});
        assert!(cursor["cursor"].is_string());
    }

    let mut server = shipping(&["evals-same-cursor"]);
    for params in [json!({}), json!({"cursor": "again"})] {
        assert_eq!(page(&mut server, &params)["result"]["nextCursor"], "again");
    }

    let mut server = shipping(&["evals-empty-cursor"]);
    let first = page(&mut server, &json!({}));
    assert_eq!(
        (ids(&first).len(), &first["result"]["nextCursor"]),
        (1, &json!(""))
    );
    let rest = page(&mut server, &json!({"cursor": ""}));
    assert_eq!(ids(&rest), ["b", "?", "c", "d"]);
    assert!(rest["result"].get("nextCursor").is_none());

    let mut server = shipping(&["evals-big-rubric=5000000"]);
    server.request(1, "evals/list", "{}");
    assert!(server.line().len() > 5_000_000);
}

#[test]
fn evals_and_tools_change_after_so_many_listings_in_one_process_or_several() {
    let late = |answer: &Value| answer.to_string().contains("\"late\"");
    let mut server = shipping(&["evals-change-after=2", "evals-page=3"]);
    for changed in [false, false, true] {
        let mut answer = page(&mut server, &json!({}));
        while let Some(cursor) = answer["result"]["nextCursor"].as_str() {
            answer = page(&mut server, &json!({"cursor": cursor}));
        }
        assert_eq!(late(&answer), changed);
    }
    let count = NamedTempFile::new().unwrap();
    for changed in [false, true] {
        let mut server = start(&[
            "--count",
            path(&count),
            "--mode",
            "evals-change-after=1",
            "--mode",
            "tools-change-after=1",
        ]);
        assert_eq!(late(&page(&mut server, &json!({}))), changed);
        server.request(2, "tools/list", "{}");
        assert_eq!(late(&server.message()), changed);
    }
}

#[test]
fn e7_changes_are_told_if_that_was_declared() {
    let modes = ["evals-change-after=1", "evals-list-changed"];
    let mut server = shipping(&modes);
    assert_eq!(ids(&page(&mut server, &json!({}))).len(), 5);
    let told = server.message();
    assert_eq!(told["method"], "notifications/evals/list_changed");
    assert_eq!(ids(&page(&mut server, &json!({}))).len(), 6);

    let arguments = ["--mode", modes[0], "--mode", modes[1]];
    let mut server = start(&arguments);
    let asked = r#""notifications":{"evalsListChanged":true}"#;
    server.request(5, "subscriptions/listen", &format!("{{{META},{asked}}}"));
    let acknowledged = server.message();
    assert_eq!(
        acknowledged["params"]["notifications"],
        json!({"evalsListChanged": true})
    );
    server.request(6, "evals/list", &format!("{{{META}}}"));
    assert_eq!(server.message()["id"], 6);
    let told = server.message();
    assert_eq!(told["method"], "notifications/evals/list_changed");
    assert_eq!(
        told["params"]["_meta"]["io.modelcontextprotocol/subscriptionId"],
        5
    );
}

#[test]
fn meta_is_everywhere_but_where_it_would_mean_something() {
    let eval = r#"[{"id":"a","input":{"type":"execution","arguments":{"x":{}}},"expected":{"content":[{}]}}]"#;
    let file = file(eval);
    let mut server = start(&["--evals", path(&file), "--mode", "meta-everywhere"]);
    let meta = json!({"org.example/fixture": {"passed": true}});
    let answer = page(&mut server, &json!({}));
    let item = &answer["result"]["evals"][0];
    for holder in [&answer["result"], item, &item["input"]] {
        assert_eq!(holder["_meta"], meta, "{holder}");
    }
    assert_eq!(item["input"]["arguments"], json!({"x": {}}));
    assert_eq!(item["expected"], json!({"content": [{}]}));
    server.call(2, "add", r#"{"a":1,"b":2}"#);
    let called = server.message();
    assert_eq!(called["result"]["_meta"], meta);
    assert_eq!(called["result"]["content"][0]["_meta"], meta);
    assert_eq!(called["result"]["structuredContent"], json!({"sum": 3}));
}

#[test]
fn e9_evals_are_listed_on_every_transport() {
    let file = file(FILE);
    let log = NamedTempFile::new().unwrap();
    let arguments = ["--evals", path(&file), "--log", path(&log)];
    let fixture = Fixture::http(&arguments);
    let address = fixture.address();
    let found = stateless(address, "evals/list", None, r#""level":"execution""#).json();
    assert_eq!(ids(&found), ["a", "c"]);
    assert_eq!(found["result"]["resultType"], "complete");
    let discovered = stateless(address, "server/discover", None, "").json();
    assert!(discovered["result"]["capabilities"]["evals"].is_object());
    let session = open_session(address);
    let list = r#"{"jsonrpc":"2.0","id":1,"method":"evals/list"}"#;
    assert_eq!(ids(&post(address, Some(&session), list).json()).len(), 5);
    let told = log_lines(log.path());
    let asked = told.iter().filter(|line| line["dir"] == "in");
    let asked = asked.filter(|line| line["text"].as_str().unwrap().contains("evals/list"));
    assert_eq!(asked.count(), 2);

    let fixture = Fixture::sse(&arguments);
    let mut stream = send(fixture.address(), "GET", "/sse", &[], "");
    read_head(&mut stream);
    let event = String::from_utf8(read_chunk(&mut stream)).unwrap();
    let place = event.split("data: ").nth(1).unwrap().trim_end();
    send(fixture.address(), "POST", place, &[], list);
    let answer = String::from_utf8(read_chunk(&mut stream)).unwrap();
    assert!(answer.contains("9007199254740993"), "{answer}");
}
