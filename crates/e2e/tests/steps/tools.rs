//! Calls of tools by steps, on the fixture server.

use std::time::Duration;

use proctor_core::suite::step::{Action, ContentCheck, PatternTemplate, ToolStep};
use proctor_e2e::client::stdio_server;
use proctor_record::event::{Actor, Blame, EventKind, Phase};
use serde_json::{Value, json};

use crate::stage::{Stage, cannot_tell, equals, fails, passes, text, value};

fn call(tool: &str, args: &Value) -> ToolStep {
    ToolStep {
        server: "fixture".to_owned(),
        tool: tool.to_owned(),
        args: value(args),
        is_error: None,
        content: None,
    }
}

fn stage(args: &[&str]) -> Stage {
    Stage::with(vec![stdio_server(args)], Vec::new())
}

fn matching(pattern: &str) -> ContentCheck {
    ContentCheck {
        pattern: Some(PatternTemplate(text(pattern))),
        fields: Vec::new(),
    }
}

/// A call of `echo` with JSON in its text, whose result is compared.
fn expects(content: Option<ContentCheck>) -> Action {
    let args = json!({"text": r#"{"count": 3, "by": "{agent.prompt}"}"#});
    Action::CallTool(ToolStep {
        content,
        ..call("echo", &args)
    })
}

#[tokio::test]
async fn the_result_of_a_call_fills_templates() {
    let mut stage = stage(&[]);
    passes(&stage.run(Phase::Setup, "said", expects(None)).await);
    let said = r#"{"count": 3, "by": "count the notes"}"#;
    assert_eq!(stage.fill("{steps.said.text}"), said);
    assert_eq!(stage.fill("{steps.fixture.echo.isError}"), "false");
    let content: Value = serde_json::from_str(&stage.fill("{steps.said.content}")).unwrap();
    assert_eq!(content[0]["text"], said);
    stage.close().await;
}

#[tokio::test]
async fn the_result_is_what_is_expected_or_not() {
    let mut stage = stage(&[]);
    passes(&stage.run(Phase::Setup, "said", expects(None)).await);
    passes(
        &stage
            .verify(expects(Some(matching("\"by\": \"{agent.prompt}\"}$"))))
            .await,
    );
    passes(
        &stage
            .verify(expects(Some(equals("count", &json!(3)))))
            .await,
    );
    // As other tools read it: the list of blocks.
    passes(
        &stage
            .verify(expects(Some(equals("0.type", &json!("text")))))
            .await,
    );
    let wrong = stage
        .verify(expects(Some(equals("count", &json!(4)))))
        .await;
    fails(&wrong, Blame::Agent, "`count`: expected 4, found 3");
    let wrong = stage.verify(expects(Some(matching("^nothing")))).await;
    fails(
        &wrong,
        Blame::Agent,
        "the result does not match `^nothing`: ",
    );

    let args = json!({"text": "plain"});
    let plain = ToolStep {
        content: Some(equals("count", &json!(4))),
        ..call("echo", &args)
    };
    let wrong = stage.verify(Action::CallTool(plain)).await;
    fails(
        &wrong,
        Blame::Agent,
        "the text of the result is not JSON: `plain`; `count` is missing",
    );

    // One connection, which is the steps' own.
    let opened: Vec<Actor> = stage
        .events()
        .into_iter()
        .filter_map(|event| match event {
            EventKind::ConnectionOpened(opened) => Some(opened.actor),
            _ => None,
        })
        .collect();
    assert_eq!(opened, [Actor::Step]);
    stage.close().await;
}

#[tokio::test]
async fn a_tool_that_fails_does_what_it_should_or_not() {
    let mut stage = stage(&[]);
    let expects = |tool: &str, is_error| {
        Action::CallTool(ToolStep {
            is_error,
            ..call(tool, &json!({"text": "hi"}))
        })
    };
    // Nobody can tell why a tool fails.
    fails(
        &stage.verify(expects("fail", None)).await,
        None,
        "`fail` failed: `",
    );
    fails(
        &stage.setup(expects("fail", Some(false))).await,
        Blame::Suite,
        "`fail` failed: `",
    );
    passes(&stage.verify(expects("fail", Some(true))).await);
    let went_well = stage.verify(expects("echo", Some(true))).await;
    fails(
        &went_well,
        Blame::Agent,
        "`echo`: expected an error, found success",
    );
    let unknown = stage.verify(expects("nothing", None)).await;
    let says = "the server `fixture` has no tool `nothing`";
    cannot_tell(&unknown, Blame::Suite, says);
    let unknown = stage.verify(expects("nothing", Some(true))).await;
    cannot_tell(&unknown, Blame::Suite, says);
    stage.close().await;
}

#[tokio::test]
async fn a_server_that_does_not_answer_can_not_tell() {
    let check = async |args: &[&str], blame: Blame, says: &str| {
        let hasty = |connect: &mut proctor_wire::client::ConnectOptions| {
            if args.contains(&"never-answer") {
                connect.timeouts.request = Duration::from_secs(2);
            }
        };
        let mut stage = Stage::connecting(vec![stdio_server(args)], Vec::new(), hasty);
        let action = Action::CallTool(call("echo", &json!({"text": "hi"})));
        cannot_tell(&stage.verify(action).await, blame, says);
        stage.close().await;
    };
    let server = Blame::Server;
    check(&["--mode", "exit-in-call=4"], server, "exited with code 4").await;
    check(
        &["--mode", "exit-before-handshake"],
        server,
        "failed to start",
    )
    .await;
    check(&["--mode", "never-answer"], server, "no response within").await;
}

#[tokio::test]
async fn a_dropped_call_leaves_the_connection_as_it_was() {
    let mut stage = stage(&[]);
    let sleep = Action::CallTool(call("sleep", &json!({"ms": 600_000})));
    let record = stage.record();
    let is_called = || Stage::records(&record, "tools/call");
    stage.drop_when(sleep, is_called).await;
    assert_eq!(stage.ends().len(), 1);
    let echo = Action::CallTool(call("echo", &json!({"text": "hi"})));
    passes(&stage.run(Phase::Cleanup, "cleanup_0", echo).await);
    stage.close().await;
}

#[tokio::test]
async fn a_late_answer_to_our_probe_is_not_held_against_the_server() {
    let impatient = |connect: &mut proctor_wire::client::ConnectOptions| {
        connect.era = None;
        connect.timeouts.probe = Duration::from_millis(100);
    };
    let slow = stdio_server(&["--mode", "slow-start=600"]);
    let mut stage = Stage::connecting(vec![slow], Vec::new(), impatient);
    let echo = Action::CallTool(call("echo", &json!({"text": "hi"})));
    passes(&stage.setup(echo).await);
    let found = |event: &EventKind| matches!(event, EventKind::Finding(_));
    assert!(!stage.events().iter().any(found), "{:?}", stage.events());
    stage.close().await;
}
