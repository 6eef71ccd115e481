//! How calls, shares and connections end.

use std::time::Duration;

use proctor_core::suite::Server;
use proctor_e2e::Fixture;
use proctor_e2e::client::{http_server, stdio_server};
use proctor_record::event::FindingKind;
use proctor_wire::client::CallError;
use serde_json::json;

use super::stage::{HOME, Stage, arguments, eventually};

#[tokio::test]
async fn the_death_of_the_server_is_told_to_all_who_share_it() {
    let mut stage = Stage::new();
    let server = stdio_server(&["--mode", "exit-in-call=4", "--on", "resources/read"]);
    let client = stage.connect(&server, |_| {}).await;
    let (a, b) = (stage.attach(&client, "a"), stage.attach(&client, "b"));
    let read = async {
        tokio::time::sleep(Duration::from_millis(50)).await;
        b.call("resources/read", json!({"uri": "fixture://text"}))
            .await
    };
    let (first, second) = tokio::join!(a.call_tool("sleep", arguments("ms", 60_000)), read);
    let third = a.call_tool("echo", arguments("text", "late")).await;
    for died in [first, second, third] {
        let Err(CallError::Gone { how, stderr }) = died else {
            panic!("{died:?}");
        };
        assert_eq!(how, "the server exited with code 4");
        assert!(stderr.contains("in `resources/read`"), "{stderr}");
    }
    a.close().await;
    b.close().await;
    client.close().await;
    let records = stage.end();
    assert_eq!(records["a"].calls(), [r#"sleep {"ms":60000} → nothing"#]);
    assert_eq!(records["b"].calls().len(), 1);
    for name in ["a", "b"] {
        let closed = records[name].closed();
        assert_eq!(closed.reason, "the server exited with code 4");
        assert!(closed.stderr.as_ref().unwrap().contains("exit 4"));
    }
    assert_eq!(records[HOME].closed().reason, "exited with code 4");
}

#[tokio::test]
async fn a_cancelled_call_and_its_late_answer_are_in_one_record() {
    let modes = ["--mode", "answer-after-cancel"];
    let http = Fixture::http(&[&["--era", "handshake"], &modes[..]].concat());
    for (server, is_late) in [
        (stdio_server(&modes), true),
        (http_server(http.url()), false),
    ] {
        // A busy server may need longer for the prompt.
        for limit in [200, 3000, 30_000].map(Duration::from_millis) {
            if is_cancelled_within(limit, &server, is_late).await {
                break;
            }
        }
    }
}

/// Checks the records of a call that is not answered and of a prompt that is; `false` if the prompt was late, too.
async fn is_cancelled_within(limit: Duration, server: &Server, is_late: bool) -> bool {
    let mut stage = Stage::new();
    let client = stage
        .connect(server, |options| options.timeouts.request = limit)
        .await;
    let (a, b) = (stage.attach(&client, "a"), stage.attach(&client, "b"));
    let (call, prompt) = tokio::join!(
        a.call_tool("echo", arguments("text", "hi")),
        b.call(
            "prompts/get",
            json!({"name": "greet", "arguments": {"who": "you"}})
        )
    );
    assert!(matches!(call, Err(CallError::TimedOut { .. })), "{call:?}");
    if matches!(prompt, Err(CallError::TimedOut { .. })) && limit < Duration::from_secs(30) {
        return false;
    }
    prompt.unwrap();
    if is_late {
        eventually(|| !a.findings().is_empty()).await;
        assert_eq!(a.findings()[0].0, FindingKind::LateAnswer);
    }
    assert_eq!((b.findings(), client.findings()), (Vec::new(), Vec::new()));
    a.close().await;
    b.close().await;
    client.close().await;
    let records = stage.end();
    let counts = ["a", "b", HOME].map(|n| records[n].holding("no response in time"));
    assert_eq!(counts, [1, 0, 0]);
    assert_eq!(records["a"].calls(), [r#"echo {"text":"hi"} → nothing"#]);
    assert_eq!(records["a"].frames.len(), 2 + usize::from(is_late));
    assert_eq!(records["b"].calls().len(), 1);
    assert_eq!(records["b"].folded.findings, []);
    true
}

#[tokio::test]
async fn what_comes_after_a_record_has_ended_is_kept_by_the_connection() {
    let mut stage = Stage::new();
    let server = stdio_server(&["--mode", "ignore-cancel"]);
    let client = stage.connect(&server, |_| {}).await;
    let a = stage.attach(&client, "a");
    let folder = tempfile::tempdir().unwrap();
    let go = folder.path().join("go");
    tokio::select! {
        called = a.call_tool("sleep", arguments("until", go.to_str().unwrap())) => panic!("{called:?}"),
        () = eventually(|| stage.has_recorded("a", "tools/call")) => {}
    }
    a.close().await;
    stage.end_trial("a");
    std::fs::write(go, "").unwrap();
    eventually(|| stage.has_recorded(HOME, "slept")).await;
    // It was under way when the call was no longer wanted.
    assert_eq!(client.findings(), []);
    client.close().await;
    let records = stage.end();
    // The request and the cancellation; the answer came too late.
    assert_eq!(records["a"].frames.len(), 2);
    assert_eq!(records["a"].holding("no longer wanted"), 1);
    assert_eq!(records["a"].folded.findings, []);
    assert_eq!(records[HOME].holding("slept"), 1);
}

#[tokio::test]
async fn the_connection_ends_with_the_client_that_opened_it() {
    for is_dropped in [false, true] {
        let mut stage = Stage::new();
        let client = stage.connect(&stdio_server(&[]), |_| {}).await;
        let (a, b) = (stage.attach(&client, "a"), stage.attach(&client, "b"));
        a.close().await;
        let hi = || arguments("text", "hi");
        b.call_tool("echo", hi()).await.unwrap();
        let waiting = b.call_tool("sleep", arguments("ms", 60_000));
        let end = async {
            tokio::time::sleep(Duration::from_millis(20)).await;
            if is_dropped {
                drop(client);
            } else {
                client.close().await;
            }
        };
        let (waited, ()) = tokio::join!(waiting, end);
        for ended in [waited, b.call_tool("echo", hi()).await] {
            let Err(CallError::Gone { how, .. }) = ended else {
                panic!("{ended:?}");
            };
            assert_eq!(how, "Proctor closed the connection");
        }
        b.close().await;
        let records = stage.end();
        assert_eq!(records["b"].calls().len(), 2);
        assert_eq!(
            records["b"].closed().reason,
            "Proctor closed the connection"
        );
    }
}

#[tokio::test]
async fn a_server_that_proctor_had_to_end_is_not_said_to_have_been_killed() {
    let mut stage = Stage::new();
    let server = stdio_server(&["--mode", "ignores-stdin-close"]);
    let client = stage.connect(&server, |_| {}).await;
    client.close().await;
    assert_eq!(
        stage.end()[HOME].closed().reason,
        "did not exit within 2s after its stdin was closed, so Proctor stopped it"
    );
}

#[tokio::test]
async fn a_status_of_http_is_told_from_a_network_that_broke() {
    let call = async |mode: &str| {
        let fixture = Fixture::http(&["--era", "handshake", "--mode", mode]);
        let mut stage = Stage::new();
        let client = stage.connect(&http_server(fixture.url()), |_| {}).await;
        let called = client.call_tool("echo", arguments("text", "hi")).await;
        client.close().await;
        called.unwrap_err()
    };
    let refused = call("http-status=503").await;
    assert!(
        matches!(&refused, CallError::Http { status: 503, body } if !body.is_empty()),
        "{refused:?}"
    );
    let shown = refused.to_string();
    assert!(shown.starts_with("the server answered with HTTP status 503: "));
    let broken = call("truncated-body").await;
    assert!(matches!(broken, CallError::Broken(_)), "{broken:?}");
}
