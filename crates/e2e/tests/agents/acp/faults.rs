//! Everything that an agent can do wrong, and what comes of it. Nothing of this passes.

use proctor_e2e::suite::SuiteFixture;
use proctor_record::event::Claim;
use rustix::process::Signal;
use serde_json::json;

use super::*;

/// A suite whose agent is the fixture, with these arguments.
fn suite(agent: &[&str]) -> SuiteFixture {
    let program = proctor_e2e::program("fixture-agent");
    with(&program.display().to_string(), agent, &json!({}))
}

/// The same, with any command, and more for the server's configuration.
fn with(program: &str, args: &[&str], more: &serde_json::Value) -> SuiteFixture {
    let mut server = json!({"command": proctor_e2e::fixture(), "args": []});
    for (key, value) in more.as_object().into_iter().flatten() {
        server[key] = value.clone();
    }
    let suite = SuiteFixture::on(
        "  - reply: {text: nobody asks}\n",
        &json!({"fixture": server}),
    );
    let agent = json!({"kind": "Agent", "metadata": {"name": "fixture"},
        "acp": {"cmd": program, "args": args}});
    suite.write("agent.yaml", &agent.to_string());
    let used = json!({"toolsUsed": [{"server": "fixture", "tool": "echo"}]});
    suite.eval(
        &json!({"agent": {"type": "file", "path": "agent.yaml"}}),
        &json!({"assertions": used}),
    );
    suite.task("call", &json!({}));
    suite
}

#[test]
fn an_agent_that_does_its_work_passes() {
    let seen = suite(&[]).check(&[]).run();
    expect(&seen, Outcome::Passed, None, "");
    assert_eq!(answer(&seen), Some("The tool said: hi"));
    let claims = claims(&seen);
    assert_eq!(claims.len(), 1);
    assert_eq!(claims[0].tool, "fixture/echo");
    assert_eq!(claims[0].status, Claim::Completed);
    assert_eq!(usage(&seen), None);
    assert_eq!(seen.code, Some(0));
}

#[test]
fn what_is_not_allowed_is_not_done() {
    let program = proctor_e2e::program("fixture-agent").display().to_string();
    let suite = with(&program, &[], &json!({"alwaysAllow": ["add"]}));
    let seen = suite.check(&[]).run();
    expect(
        &seen,
        Outcome::Failed,
        Some(Blame::Agent),
        "`fixture/echo`, which is not allowed",
    );
    assert_eq!(claims(&seen)[0].status, Claim::Denied);
    assert_eq!(seen.code, Some(1));
}

#[test]
fn a_permission_may_be_asked_for_by_the_name_of_the_tool() {
    for title in ["echo", "fixture.echo", "mcp__fixture__echo"] {
        let seen = suite(&["--title", title]).check(&[]).run();
        expect(&seen, Outcome::Passed, None, "");
    }
}

#[test]
fn a_refused_permission_is_the_reason_of_the_failed_trial() {
    let title = "Now I will echo";
    let seen = suite(&["--title", title]).check(&[]).run();
    for reason in [
        "Proctor denied permission for `Now I will echo`",
        "`fixture/add`",
    ] {
        expect(&seen, Outcome::Failed, Some(Blame::Agent), reason);
    }
    assert_eq!(claims(&seen)[0].status, Claim::Denied);
    for shown in [title, "`echo` was never called"] {
        assert!(seen.stdout.contains(shown), "{}", seen.stdout);
    }
}

#[test]
fn an_agent_that_asks_for_one_tool_and_uses_another_fails() {
    let program = proctor_e2e::program("fixture-agent").display().to_string();
    let allowed = json!({"alwaysAllow": ["add"]});
    let seen = with(&program, &["--title", "add"], &allowed)
        .check(&[])
        .run();
    let reason = "the agent used `fixture.echo`, which is not allowed";
    expect(&seen, Outcome::Failed, Some(Blame::Agent), reason);
}

#[test]
fn files_terminals_and_commands_are_refused_and_the_work_goes_on() {
    let seen = suite(&["curious"]).check(&[]).run();
    expect(&seen, Outcome::Passed, None, "");
    let status: Vec<Claim> = claims(&seen).iter().map(|claim| claim.status).collect();
    assert_eq!(status, [Claim::Denied, Claim::Completed]);
}

#[test]
fn noise_does_not_hurt() {
    for mode in ["garbage", "long-line"] {
        let seen = suite(&[mode]).check(&[]).run();
        expect(&seen, Outcome::Passed, None, "");
        assert_eq!(answer(&seen), Some("The tool said: hi"), "{mode}");
        assert!(
            seen.peak_kib < 150 << 10,
            "{mode} took {} KiB",
            seen.peak_kib
        );
    }
}

#[test]
fn an_agent_that_does_not_do_its_work_is_told_apart_from_one_that_does_it_badly() {
    let check = |mode: &str, outcome: Outcome, blame: Option<Blame>, reason: &str| {
        let seen = suite(&[mode]).check(&[]).run();
        expect(&seen, outcome, blame, reason);
        assert_ne!(seen.code, Some(0), "{mode}");
    };
    let agent = Some(Blame::Agent);
    check(
        "dies",
        Outcome::Errored,
        agent,
        "it exited with code 3 during its work",
    );
    check(
        "dies",
        Outcome::Errored,
        agent,
        "the agent's engine fell off",
    );
    check("fails", Outcome::Errored, agent, "the model is on holiday");
    check(
        "refuses",
        Outcome::Errored,
        agent,
        "its model refused to continue: I would rather not.",
    );
    check(
        "newer",
        Outcome::Errored,
        agent,
        "it speaks version 2 of ACP, but Proctor speaks version 1",
    );
    check(
        "needs-login",
        Outcome::Errored,
        Some(Blame::Infra),
        "it requires a login",
    );
    check(
        "forgetful",
        Outcome::Errored,
        agent,
        "the agent did not connect to any of its servers (`fixture`); if it connects only when it needs \
         a server, set `connects: onUse` in its agent file",
    );
    check(
        "wordless",
        Outcome::Failed,
        agent,
        "the agent gave no answer",
    );
    check("out-of-turns", Outcome::TimedOut, None, "turn limit");
}

#[test]
fn what_is_no_agent_is_an_error() {
    let check = |program: &str, args: &[&str], reason: &str| {
        let seen = with(program, args, &json!({})).check(&[]).run();
        expect(&seen, Outcome::Errored, Some(Blame::Agent), reason);
    };
    check("cat", &[], "`initialize` failed");
    check(
        "true",
        &[],
        "it exited with code 0 before it accepted the task",
    );
    check(
        "sh",
        &["-c", "echo; echo hello; exit 4"],
        "it exited with code 4 before it accepted the task",
    );
}

#[test]
fn a_missing_program_is_known_before_anything_is_started() {
    let seen = with("no-such-agent", &[], &json!({})).check(&[]).run();
    assert_eq!(seen.code, Some(2), "{}", seen.stderr);
    assert!(seen.stderr.contains("`no-such-agent`"), "{}", seen.stderr);
    assert!(!seen.record.exists());
}

#[test]
fn an_agent_that_takes_no_http_is_told_so() {
    let server = proctor_e2e::Fixture::http(&[]);
    let suite = suite(&["stdio-only"]);
    let servers = json!({"mcpServers": {"fixture": {"type": "http", "url": server.url()}}});
    suite.write("mcp.json", &servers.to_string());
    let seen = suite.check(&[]).run();
    let reason = "it can't use the server `fixture`: it does not support servers over HTTP";
    expect(&seen, Outcome::Errored, Some(Blame::Agent), reason);
}

#[test]
fn an_agent_that_never_answers_is_ended_by_the_clock() {
    for mode in ["deaf", "silent", "stubborn"] {
        let suite = suite(&["--tool", "unique-name-of-this-test", mode]);
        suite.task("call", &json!({"limits": {"timeout": "2s"}}));
        let seen = suite.check(&[]).run();
        assert_eq!(
            ended(&seen).outcome,
            Outcome::TimedOut,
            "{mode}: {}",
            seen.stdout
        );
        assert_eq!(processes_with("unique-name-of-this-test"), [], "{mode}");
    }
}

#[test]
fn an_agent_that_does_not_leave_is_ended_and_its_work_counts() {
    let program = proctor_e2e::program("fixture-agent");
    let unique = r#"{"text": "an agent that ignores its end"}"#;
    let script = format!("trap '' TERM; exec {} \"$@\"", program.display());
    let args = ["-c", &script, "sh", "--arguments", unique, "stays"];
    let seen = with("sh", &args, &json!({})).check(&[]).run();
    expect(&seen, Outcome::Passed, None, "");
    assert_eq!(processes_with("an agent that ignores its end"), []);
}

#[test]
fn an_agent_is_told_to_stop_when_the_run_is() {
    let folder = tempfile::tempdir().expect("a folder can be made");
    let note = folder.path().join("note").display().to_string();
    let program = proctor_e2e::program("fixture-agent");
    // So that it has time to hear it.
    let script = format!("trap '' TERM; exec {} \"$@\"", program.display());
    let args = ["-c", &script, "sh", "--note", &note, "silent"];
    let suite = with("sh", &args, &json!({}));
    let running = suite.check(&[]).start();
    running.wait_for(r#"\"plan\""#);
    running.signal(Signal::INT);
    let seen = running.finish();
    assert_eq!(ended(&seen).outcome, Outcome::Cancelled, "{}", seen.stderr);
    assert_eq!(processes_with(&note), []);
    let told = std::fs::read_to_string(&note).expect("it was told to stop");
    assert_eq!(told, r#""s-1""#);
}
