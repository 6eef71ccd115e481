use super::*;

fn seen() -> ServerSeen {
    ServerSeen {
        server: "todo".to_owned(),
        name: Some("todo".to_owned()),
        version: Some("1.0".to_owned()),
        protocol: "2025-11-25".to_owned(),
        tools: 2,
        resources: 0,
        prompts: 0,
        tools_digest: Some("a".to_owned()),
        tool_list: None,
        surface: None,
        started_in: None,
    }
}

#[track_caller]
fn check(change: impl FnOnce(&mut ServerSeen), expected: &[&str]) {
    let mut now = seen();
    change(&mut now);
    assert_eq!(now.changes_since(&seen()), expected);
}

#[test]
fn changes_of_a_server_are_described() {
    check(|_| {}, &[]);
    check(|now| now.resources = 5, &[]);
    check(|now| now.tools_digest = None, &[]);
    check(
        |now| now.version = None,
        &["its version changed from `1.0` to none"],
    );
    check(
        |now| now.tools_digest = Some("b".to_owned()),
        &["its tools changed"],
    );
    check(
        |now| {
            now.tools = 3;
            now.protocol = "2026-07-28".to_owned();
        },
        &[
            "its protocol changed from `2025-11-25` to `2026-07-28`",
            "the number of its tools changed from 2 to 3",
        ],
    );
}
