//! Calls that get no answer, with agents that don't mind: nothing of this passes.

use proctor_core::summary::Summary;
use proctor_e2e::Fixture;
use proctor_e2e::session::SessionOutcome;
use proctor_e2e::suite::SuiteFixture;
use proctor_record::decision::server_failure;
use proctor_record::event::{Actor, Blame, FindingKind, Outcome, TrialEnded};
use proctor_record::fold::{FoldOptions, FoldedTrial, fold_trial};
use proctor_record::record::RunReader;
use serde_json::{Value, json};

/// How often races are run.
const TIMES: usize = 10;

/// An agent on HTTP that does not mind what comes back.
const CARELESS: &str = r#"
import json, sys, urllib.request
where, session = sys.argv[1], None
def post(message, timeout=30):
    global session
    headers = {"Content-Type": "application/json", "Accept": "application/json, text/event-stream"}
    if session: headers["Mcp-Session-Id"] = session
    body = json.dumps(dict(message, jsonrpc="2.0")).encode()
    opener = urllib.request.build_opener(Still)
    try:
        answer = opener.open(urllib.request.Request(where, body, headers), timeout=timeout)
        session = answer.headers.get("Mcp-Session-Id") or session
        answer.read()
    except Exception as error:
        print(error, file=sys.stderr)
class Still(urllib.request.HTTPRedirectHandler):
    def redirect_request(self, *args): return None
post({"id": 1, "method": "initialize", "params": {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "a", "version": "1"}}})
post({"method": "notifications/initialized"})
post({"id": 2, "method": "tools/list", "params": {}})
post({"id": 3, "method": "tools/call", "params": {"name": "echo", "arguments": {"text": "hi"}}}, 2)
print("done")
"#;

/// A suite whose agent is the fixture in this mode, on a server as an MCP config describes it.
fn by_fixture(mode: &str, server: &Value, assertions: &Value) -> SuiteFixture {
    let program = proctor_e2e::program("fixture-agent");
    let acp = json!({"cmd": program, "args": [mode]});
    with(&json!({"acp": acp}), server, assertions)
}

/// The same with an agent on HTTP.
fn by_http(url: &str, assertions: &Value) -> SuiteFixture {
    let run = "python3 agent.py {{ .McpServerFileArgs }}";
    let suite = with(&json!({}), &json!({"type": "http", "url": url}), assertions);
    suite.write("agent.py", CARELESS);
    let run = run.replace("agent.py", &suite.path("agent.py").display().to_string());
    let commands = json!({"argTemplateMcpServer": "{{ .URL }}", "runPrompt": run});
    write_agent(&suite, &json!({"commands": commands}));
    suite
}

/// The built-in agent, whose model calls `echo` once and is done.
fn by_loop(server: &Value, assertions: &Value) -> SuiteFixture {
    let rules = "  - {when: {results: 0}, reply: {calls: [{tool: echo, arguments: {text: hi}}]}}\n  - reply: {text: done}\n";
    let suite = SuiteFixture::on(rules, &json!({"fixture": server}));
    suite.eval(&json!({}), &json!({"assertions": assertions}));
    suite.task("call", &json!({}));
    suite
}

fn with(agent: &Value, server: &Value, assertions: &Value) -> SuiteFixture {
    let suite = SuiteFixture::on(
        "  - reply: {text: nobody asks}\n",
        &json!({"fixture": server}),
    );
    write_agent(&suite, agent);
    let agent = json!({"agent": {"type": "file", "path": "agent.yaml"}});
    suite.eval(&agent, &json!({"assertions": assertions}));
    suite.task("call", &json!({}));
    suite
}

fn write_agent(suite: &SuiteFixture, kind: &Value) {
    let mut agent = json!({"kind": "Agent", "metadata": {"name": "careless"}});
    for (key, value) in kind.as_object().unwrap() {
        agent[key] = value.clone();
    }
    suite.write("agent.yaml", &agent.to_string());
}

fn stdio(words: &[&str]) -> Value {
    json!({"command": proctor_e2e::fixture(), "args": words})
}

fn http(fixture: &Fixture) -> Value {
    json!({"type": "http", "url": fixture.url()})
}

/// A check that holds whatever comes back.
fn used() -> Value {
    json!({"toolsUsed": [{"server": "fixture", "tool": "echo"}]})
}

/// All trials of a run.
fn trials(seen: &SessionOutcome) -> Vec<FoldedTrial> {
    let run = RunReader::open(&seen.record).expect("it can be read");
    let options = FoldOptions {
        actors: vec![Actor::Agent, Actor::Loop],
        ..FoldOptions::default()
    };
    let files = run.trials().expect("they can be listed");
    let all = files.iter().map(|file| fold_trial(&run, file, &options));
    all.map(|folded| folded.expect("it folds")).collect()
}

#[track_caller]
fn ended(folded: &FoldedTrial) -> TrialEnded {
    folded.ended.clone().expect("it ended")
}

#[track_caller]
fn expect(seen: &SessionOutcome, outcome: Outcome, blame: Option<Blame>, says: &str) {
    let all = trials(seen);
    assert!(!all.is_empty(), "{}\n{}", seen.stdout, seen.stderr);
    for folded in &all {
        let ended = ended(folded);
        let about = format!("{ended:?}\n{}\n{}", seen.stdout, seen.stderr);
        assert_eq!((ended.outcome, ended.blame), (outcome, blame), "{about}");
        assert!(ended.reason.unwrap_or_default().contains(says), "{about}");
    }
}

fn found(folded: &FoldedTrial, kind: FindingKind) -> usize {
    folded.findings.iter().filter(|f| f.kind == kind).count()
}

#[test]
fn a_server_that_dies_in_a_call_fails_the_trial_whoever_leaves_first() {
    let times = TIMES.to_string();
    for agent in ["careless", "leaves"] {
        for mode in ["exit-in-call=3", "exit-in-call=0", "kill-in-call"] {
            let suite = by_fixture(agent, &stdio(&["--mode", mode]), &used());
            let runs = if mode == "exit-in-call=3" {
                &times
            } else {
                "2"
            };
            let seen = suite.check(&["-n", runs]).run();
            expect(
                &seen,
                Outcome::Failed,
                Some(Blame::Server),
                "the server `fixture` failed",
            );
            assert_eq!(seen.code, Some(1), "{agent} {mode}");
            let all = trials(&seen);
            assert_eq!(all.len().to_string(), *runs, "{agent} {mode}");
            for folded in all {
                assert_eq!(found(&folded, FindingKind::Unanswered), 1, "{agent} {mode}");
            }
        }
    }
}

#[test]
fn an_agent_that_leaves_a_call_behind_fails_and_nobody_is_blamed() {
    let suite = by_fixture(
        "leaves",
        &stdio(&["--mode", "never-answer", "--mode", "ignores-stdin-close"]),
        &used(),
    );
    let seen = suite.check(&[]).run();
    expect(&seen, Outcome::Failed, None, "before `echo` was answered");
    assert!(seen.stdout.contains("cause unclear"), "{}", seen.stdout);
}

#[test]
fn a_call_that_is_repeated_with_success_is_forgiven_and_found() {
    let folder = tempfile::tempdir().expect("a folder can be made");
    let mark = folder.path().join("died").display().to_string();
    let fixture = proctor_e2e::fixture().display().to_string();
    // The preflight starts it too, and the trial's first process is the one that dies.
    let script = format!(
        "n=$(cat {mark} 2>/dev/null || echo 0); echo $((n+1)) > {mark}; if [ $n = 1 ]; then exec {fixture} --mode exit-in-call; else exec {fixture}; fi"
    );
    let server = json!({"command": "sh", "args": ["-c", script]});
    let suite = by_fixture("repeats", &server, &used());
    let seen = suite.check(&[]).run();
    expect(&seen, Outcome::Passed, None, "");
    let all = trials(&seen);
    assert_eq!(found(&all[0], FindingKind::Unanswered), 1);
    assert!(server_failure(&all[0].conduct).is_none());
    assert!(seen.stdout.contains("unanswered"), "{}", seen.stdout);
}

#[test]
fn a_cancelled_call_is_graded_by_the_checks_and_one_that_timed_out_is_not() {
    let hangs = stdio(&["--mode", "never-answer"]);
    let seen = by_fixture("cancels", &hangs, &used())
        .check(&["--strict"])
        .run();
    expect(&seen, Outcome::Passed, None, "");
    assert_eq!(found(&trials(&seen)[0], FindingKind::Unanswered), 1);
    let seen = by_fixture("gives-up", &hangs, &used()).check(&[]).run();
    expect(
        &seen,
        Outcome::Failed,
        Some(Blame::Server),
        "`echo` got no response within",
    );
}

#[test]
fn a_server_that_crashes_on_http_fails_the_trial_of_any_agent() {
    for by in [by_loop as fn(&Value, &Value) -> SuiteFixture, |s, a| {
        by_http(s["url"].as_str().unwrap(), a)
    }] {
        let server = Fixture::http(&["--mode", "exit-in-call"]);
        let seen = by(&http(&server), &used()).check(&[]).run();
        expect(
            &seen,
            Outcome::Failed,
            Some(Blame::Server),
            "`echo` got no answer",
        );
        assert_eq!(found(&trials(&seen)[0], FindingKind::Unanswered), 1);
    }
}

#[test]
fn a_status_instead_of_an_answer_fails_the_trial_of_any_agent() {
    let server = Some(Blame::Server);
    for (mode, outcome, blame) in [
        ("http-status=500", Outcome::Failed, server),
        ("http-status=503", Outcome::Failed, server),
        ("http-status=404", Outcome::Failed, server),
        ("redirect=http://127.0.0.1:9/", Outcome::Failed, server),
        ("invalid-json", Outcome::Failed, server),
        ("truncated-body", Outcome::Failed, server),
        ("http-status=401", Outcome::Errored, Some(Blame::Infra)),
        ("http-status=403", Outcome::Errored, Some(Blame::Infra)),
    ] {
        let fixture = Fixture::http(&["--mode", mode]);
        let suites = [
            by_loop(&http(&fixture), &used()),
            by_http(fixture.url(), &used()),
        ];
        for (index, suite) in suites.iter().enumerate() {
            let seen = suite.check(&[]).run();
            let all = trials(&seen);
            let ended = ended(&all[0]);
            let about = format!("{mode} {index} {ended:?}\n{}\n{}", seen.stdout, seen.stderr);
            assert_eq!((ended.outcome, ended.blame), (outcome, blame), "{about}");
            assert_eq!(found(&all[0], FindingKind::Unanswered), 1, "{about}");
        }
    }
}

#[test]
fn a_call_without_an_answer_is_no_tool_error() {
    let is_error = json!({"toolsUsed": [{"server": "fixture", "tool": "echo", "isError": true}]});
    let fixture = Fixture::http(&["--mode", "http-status=500"]);
    let seen = by_loop(&http(&fixture), &is_error).check(&[]).run();
    expect(
        &seen,
        Outcome::Failed,
        Some(Blame::Server),
        "HTTP status 500",
    );
    let seen = by_fixture("cancels", &stdio(&["--mode", "never-answer"]), &is_error);
    let seen = seen.check(&[]).run();
    expect(&seen, Outcome::Failed, None, "got no response");
}

#[test]
fn a_strict_run_fails_servers_of_any_agent_and_the_summary_agrees() {
    // The relay does not look for these: only the messages show them.
    let noisy = stdio(&["--mode", "unknown-id"]);
    for suite in [
        by_fixture("good", &noisy, &used()),
        by_loop(&noisy, &used()),
    ] {
        let seen = suite.check(&[]).run();
        expect(&seen, Outcome::Passed, None, "");
        let run = RunReader::open(&seen.record).expect("it can be read");
        let summary = Summary::of_run(&run).expect("it sums up");
        let options = FoldOptions::default();
        let file = &run.trials().expect("they can be listed")[0];
        let folded = fold_trial(&run, file, &options).expect("it folds");
        let of_trial: u64 = folded
            .findings
            .iter()
            .map(|finding| finding.count.max(1))
            .sum();
        let of_summary: u64 = summary.findings["fixture"]
            .values()
            .map(|kind| kind.count)
            .sum();
        assert!(of_trial > 0);
        assert_eq!(of_trial, of_summary, "{:?}", summary.findings);
        let seen = suite.check(&["--strict"]).run();
        expect(
            &seen,
            Outcome::Failed,
            Some(Blame::Server),
            "violates the protocol",
        );
    }
}
