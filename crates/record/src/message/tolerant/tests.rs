//! The findings of the tolerant reader, line by line.

use super::*;

/// Each call as `tool:name`, `tool:?` or `?:?`.
fn found(bytes: &[u8]) -> Vec<String> {
    let one = |call: &UnclearCall| {
        let kind = match call.kind {
            Some(CallKind::Tool) => "tool",
            Some(CallKind::Resource) => "resource",
            Some(CallKind::Prompt) => "prompt",
            None => "?",
        };
        format!("{kind}:{}", call.name.as_deref().unwrap_or("?"))
    };
    LenientReading::of(bytes).calls.iter().map(one).collect()
}

#[track_caller]
fn check(text: impl AsRef<[u8]>, expected: &[&str]) {
    let text = text.as_ref();
    assert_eq!(found(text), expected, "{}", String::from_utf8_lossy(text));
}

fn call(params: &str) -> String {
    format!(r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{params}}}"#)
}

#[test]
fn what_everybody_reads_alike_is_left_to_the_strict_parser() {
    let plain = call(r#"{"name":"a","arguments":{"x":"\ud83d\ude00 tools/call"}}"#);
    for text in [
        &plain,
        &format!("[{plain},{plain}]"),
        &format!("\u{feff} {plain}\r"),
        r#"{"id":1,"method":"tools/list"}"#,
        r#"{"method":"notifications/initialized"}"#,
        r#"{"id":1,"method":"ping","params":{"name":"tools/call"}}"#,
        r#"{"id":1,"result":{"method":"tools/call"}}"#,
        &call(r#"{"name":"a","arguments":{"Name":"b","name":"c"}}"#),
        "",
        "hello",
        "{}",
        "[]",
    ] {
        check(text, &[]);
    }
}

#[test]
fn calls_in_what_the_strict_parser_refuses_are_found_with_their_names() {
    check(call(r#"{"name":"a","arguments":{"x":NaN}}"#), &["tool:a"]);
    check(
        call(r#"{"name":"a","arguments":{"x":-Infinity,}}"#),
        &["tool:a"],
    );
    check(call("{\"name\":\"a\",\"x\":\"\u{1}\t\"}"), &["tool:a"]);
    let first = call(r#"{"name":"a"}"#);
    let second = r#"{"id":2,"method":"prompts/get","params":{"name":"p"}}"#;
    check(format!("{first}\r{second}"), &["tool:a", "prompt:p"]);
    check(format!("{first}{second}"), &["tool:a", "prompt:p"]);
    check(format!("{first} trailing"), &["tool:a"]);
    check(
        r#"{"jsonrpc":2,"id":1,"method":"resources/read","params":{"uri":"file:///a"}}"#,
        &["resource:file:///a"],
    );
    check(
        r#"{"id":1,"method":"ping","method":"tools/call","params":{"name":"a"}}"#,
        &["tool:a"],
    );
    check(
        r#"{"id":1,"method":"tools/call","method":"prompts/get","params":{"name":"a"},"params":{"name":"b"}}"#,
        &["tool:a", "tool:b", "prompt:a", "prompt:b"],
    );
    check(format!("[[{first}]]"), &["tool:a"]);
    check(format!("[{first},{{\"x\":NaN}}]"), &["tool:a"]);
}

#[test]
fn names_that_depend_on_the_reader_are_unknown() {
    for params in [
        r#"{"name":"a","name":"b"}"#,
        r#"{"Name":"a"}"#,
        r#"{"name":"a","NAME":"b"}"#,
        r#"{"name":"a\ud800"}"#,
        r#"{"name":"a\u0000b"}"#,
        r#"{"name":["a"]}"#,
        r#"["a",{}]"#,
        r#""{\"name\":\"a\"}""#,
    ] {
        check(call(params), &["tool:?"]);
    }
    // What the structure does not tell.
    for text in [
        r#"{"id":1,"method":"tools/call","params":{"name":"a","#,
        r#"{"id":1,"method":"tools/call","params":{"name":"a" /* " */ }}"#,
        r"{'id':1,'method':'tools/call','params':{'name':'a'}}",
        r#"{id:1,method:"tools/call",params:{name:"a" # no
        }}"#,
        r#"  "method": "tools/call","#,
        r#""tools/call""#,
        "{\"id\":1,\"method\":\"tools/call\",\"params\":{\"name\":\"a\r\"}}",
    ] {
        check(text, &["tool:?"]);
    }
}

#[test]
fn a_method_is_found_however_it_is_written() {
    for method in [
        r"to\u006fls/call",
        r"tools\/call",
        r"tools\x2fcall",
        r"tools\u{2f}call",
        r"tools\57call",
        "tools\u{1}/call",
        "tools/\u{feff}call",
    ] {
        let text = format!(r#"{{"id":1,"method":"{method}","params":{{"x":NaN}},}}"#);
        check(text, &["tool:?"]);
    }
    check(r#"{"id":1,"method":"tools/\"#, &["tool:?"]);
    let plain = call(r#"{"name":"a"}"#);
    let wide: Vec<u8> = plain.encode_utf16().flat_map(u16::to_le_bytes).collect();
    check(&wide, &["tool:?"]);
    check([b"\xff\xfe", &wide[..]].concat(), &["tool:?"]);
    let overlong = plain.as_bytes().split(|byte| *byte == b'/');
    check(
        overlong.collect::<Vec<_>>().join(&b"\xc0\xaf"[..]),
        &["tool:?"],
    );
    check(plain.replace('a', "\u{e4}").replace("\u{e4}", "a"), &[]);
    check([plain.as_bytes(), b"\xff"].concat(), &["tool:?"]);
    // Compressed: it may be anything.
    check(b"\x1f\x8b\x08\x00\x00\x00\x00\x00\xff", &["?:?"]);
}

#[test]
fn keys_that_some_servers_read_count() {
    check(
        r#"{"id":1,"Method":"tools/call","params":{"name":"a"}}"#,
        &["tool:a"],
    );
    check(
        r#"{"id":1,"method":"ping","METHOD":"tools/call","param\u017f":{"name":"a"}}"#,
        &["tool:a"],
    );
    check(
        r#"{"id":1,"method":"tools/call\u0000","params":{"name":"a"}}"#,
        &["tool:a"],
    );
    check(
        r#"{"id":1,"method\u0000x":"tools/call","params":{"name":"a"}}"#,
        &["tool:a"],
    );
    check(
        r#"{"method":"tools/call","params":{"name":"a"}}"#,
        &["tool:a"],
    );
}

#[test]
fn the_ids_of_refused_requests_are_known() {
    let ids = |text: &str| LenientReading::of(text.as_bytes()).ids;
    let id = |written: &str| Id::Value(written.to_owned());
    let text = r#"{"id":7,"method":"tools/call","params":{"name":"a","x":NaN}}"#;
    assert_eq!(ids(text), [id("7")]);
    let text = r#"{"id":7,"id":"b","method":"tools/list","params":{"x":NaN}}"#;
    assert_eq!(ids(text), [id("7"), id("\"b\"")]);
    assert_eq!(ids(r#"{"id":7,"result":NaN}"#), []);
    assert_eq!(ids(&call(r#"{"name":"a"}"#)), []);
}

#[test]
fn a_flood_is_bounded() {
    let many = call(r#"{"name":"a","x":NaN}"#).repeat(500);
    let calls = LenientReading::of(many.as_bytes()).calls;
    assert_eq!(calls.len(), MAX_CALLS + 1);
    assert_eq!(calls[MAX_CALLS].kind, None);
    let deep = "[".repeat(1 << 20) + "tools/call";
    check(deep, &["tool:?"]);
    let wide = "{}".repeat(1 << 16) + r#""tools/call""#;
    check(wide, &["tool:?"]);
}
