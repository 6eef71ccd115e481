//! Lists that come in pages, some of which never end.

use proctor_e2e::client::{options, stdio_server};
use proctor_e2e::fixture;
use proctor_e2e::session::{Session, SessionOutcome};
use proctor_record::event::FindingKind;
use proctor_wire::client::{Client, ListLimits};
use proctor_wire::recorder::Recorder;

fn tools(mode: &str) -> SessionOutcome {
    let call = ["tools", "-o", "json"];
    Session::new(&call)
        .on(fixture().display().to_string(), &["--mode", mode])
        .run()
}

fn names(seen: &SessionOutcome) -> Vec<String> {
    let offer: serde_json::Value = serde_json::from_str(&seen.stdout).expect("the offer is JSON");
    let tools = offer["tools"].as_array().expect("tools are a list");
    tools
        .iter()
        .map(|tool| tool["name"].as_str().unwrap_or("").to_owned())
        .collect()
}

#[test]
fn all_pages_are_read_however_they_are_cut() {
    let call = ["tools", "-o", "json"];
    let whole = names(
        &Session::new(&call)
            .on(fixture().display().to_string(), &[])
            .run(),
    );
    assert!(whole.contains(&"echo".to_owned()));
    for mode in ["pages=3", "empty-pages", "empty-cursor"] {
        let seen = tools(mode);
        assert_eq!(seen.code, Some(0), "{mode}: {}", seen.stderr);
        // The fixture fills pages up with tools of its own.
        assert_eq!(names(&seen)[..whole.len()], whole, "{mode}");
    }
}

#[test]
fn a_list_without_end_is_ended_and_named() {
    let circle = tools("repeated-cursor");
    assert_eq!(circle.code, Some(3));
    assert!(
        circle.stderr.contains("twice (endless pagination)"),
        "{}",
        circle.stderr
    );
    assert!(circle.found(FindingKind::Pagination) > 0);
    let endless = tools("endless-pages");
    assert_eq!(endless.code, Some(3));
    assert!(
        endless.stderr.contains("exceeded the limit of 1000 pages"),
        "{}",
        endless.stderr
    );
}

#[test]
fn a_server_without_tools_has_none() {
    let seen = tools("no-tools");
    assert_eq!(seen.code, Some(0), "{}", seen.stderr);
    assert_eq!(names(&seen), Vec::<String>::new());
}

/// The client itself, since no command lists twice.
#[tokio::test]
async fn tools_that_change_are_recorded_with_the_difference() {
    let server = stdio_server(&["--mode", "tools-change"]);
    let options = options(Recorder::nothing());
    let client = Client::connect(&server, &options).await.unwrap();
    client.list_tools(&ListLimits::default()).await.unwrap();
    assert_eq!(client.findings(), []);
    let arguments = serde_json::Map::from_iter([("text".to_owned(), "hi".into())]);
    client.call_tool("echo", arguments).await.unwrap();
    let deadline = std::time::Instant::now() + std::time::Duration::from_mins(3);
    while client.list_changes() == 0 {
        assert!(
            std::time::Instant::now() < deadline,
            "no change was announced"
        );
        tokio::time::sleep(std::time::Duration::from_millis(5)).await;
    }
    client.list_tools(&ListLimits::default()).await.unwrap();
    let (kind, difference, _) = client.findings().remove(0);
    assert_eq!(kind, FindingKind::ToolsChanged);
    assert_eq!(difference, "added `late`; removed `fail`");
    client.close().await;
}
