//! Providers that are not there, say no, or say nothing: never passed, and never waited for in vain.

use super::provider::{mute, paging, refusing};
use super::*;

/// What comes of a provider.
fn asked(agent: TappedRun, provider: &str) -> SessionOutcome {
    let suite = agent.suite();
    run(agent.on(suite.check(&[]), provider).within(BOUND)).0
}

/// Nobody listens, nobody is well, and nobody knows the key.
fn is_lost(agent: TappedRun) {
    let seen = asked(agent, "http://127.0.0.1:9");
    expect(
        &seen,
        Outcome::Errored,
        Some(Blame::Infra),
        "connection refused",
    );
    assert_eq!(seen.code, Some(3), "{}", seen.stderr);
    let ill = refusing(
        "503 Service Unavailable",
        "",
        r#"{"error":{"message":"on holiday"}}"#.to_owned(),
    );
    let seen = asked(agent, &ill);
    expect(&seen, Outcome::Errored, Some(Blame::Infra), "on holiday");
    assert_eq!(seen.code, Some(3), "{}", seen.stderr);
    // It says again what it was given; `run` looks for that everywhere.
    let said = format!(r#"{{"error":{{"message":"Incorrect API key provided: {KEY}"}}}}"#);
    let seen = asked(agent, &refusing("401 Unauthorized", "", said));
    expect(
        &seen,
        Outcome::Errored,
        Some(Blame::Infra),
        "Incorrect API key provided",
    );
    assert_eq!(seen.code, Some(3), "{}", seen.stderr);
}

/// A page is no reply, however often it comes. Some agents ask again without end.
fn is_garbage(agent: TappedRun) {
    let suite = agent.suite();
    let session = agent.on(suite.check(&[]), &paging());
    let (seen, _) = run(session.within(BOUND));
    let ended = crate::cli::ended(&seen);
    let place = format!("{ended:?}\n{}\n{}", seen.stdout, seen.stderr);
    assert_eq!(
        (ended.outcome, ended.blame),
        (Outcome::Errored, Some(Blame::Infra)),
        "{place}"
    );
    assert_eq!(seen.code, Some(3), "{place}");
}

/// One that never answers is ended by the trial's own clock: a real model may think for minutes.
fn is_silent(agent: TappedRun) {
    let suite = agent.suite();
    suite.task("say-hello", &json!({"limits": {"timeout": "6s"}}));
    let (seen, _) = run(agent.on(suite.check(&[]), &mute()).within(BOUND));
    expect(
        &seen,
        Outcome::TimedOut,
        None,
        "after 6s: it was in the drive phase",
    );
}

#[test]
fn claude_code_without_a_provider_is_an_error() {
    is_lost(CLAUDE_CODE);
}

#[test]
fn goose_without_a_provider_is_an_error() {
    is_lost(GOOSE);
}

#[test]
fn a_provider_that_answers_with_pages_is_an_error() {
    is_garbage(CLAUDE_CODE);
    is_garbage(GOOSE);
}

#[test]
fn a_provider_that_says_nothing_is_timed_out() {
    is_silent(CLAUDE_CODE);
    is_silent(GOOSE);
}

/// The trial has twelve seconds, and thirteen pass while the provider wants to be left alone.
#[test]
fn requested_waits_are_not_working_time() {
    if !is_extended() {
        return;
    }
    let suite = CLAUDE_CODE.suite();
    suite.task("say-hello", &json!({"limits": {"timeout": "12s"}}));
    let busy = ServedScript::busy(suite.folder(), RULES, 13);
    let (seen, _) = run(CLAUDE_CODE.on(suite.check(&[]), busy.url()).within(BOUND));
    expect(&seen, Outcome::Passed, None, "");
    assert_eq!(folded(&seen).work.agent.failures, 1);
    let last = seen.events.last().map(|event| event.at);
    assert!(last > Some(13_000_000), "it was left alone: {last:?}");
}

#[test]
fn one_that_asks_for_too_much_is_given_up() {
    let busy = refusing(
        "429 Too Many Requests",
        "retry-after: 3600\r\n",
        r#"{"type":"error","error":{"type":"rate_limit_error","message":"come back later"}}"#
            .to_owned(),
    );
    let seen = asked(CLAUDE_CODE, &busy);
    let reason = "come back later (asked to wait 1h; the maximum wait is 2m)";
    expect(&seen, Outcome::Errored, Some(Blame::Infra), reason);
}

#[test]
fn a_missing_key_is_told_before_anything_starts() {
    let suite = CLAUDE_CODE.suite();
    let session = suite.check(&[]).env("PATH", &path_with("claude-code"));
    let seen = session.run();
    assert_eq!(seen.code, Some(2), "{}", seen.stderr);
    assert!(
        seen.stderr.contains("set `ANTHROPIC_API_KEY`"),
        "{}",
        seen.stderr
    );
}

/// The tests of an agent that are not run every time.
macro_rules! extended {
    ($module:ident, $agent:expr) => {
        mod $module {
            use super::*;

            #[test]
            fn without_a_provider_is_an_error() {
                if is_extended() {
                    is_lost($agent);
                }
            }

            #[test]
            fn with_a_provider_that_answers_with_pages_is_an_error() {
                if is_extended() {
                    is_garbage($agent);
                }
            }

            #[test]
            fn with_a_silent_provider_is_timed_out() {
                if is_extended() {
                    is_silent($agent);
                }
            }
        }
    };
}

extended!(codex, CODEX);
extended!(copilot, COPILOT);
extended!(claude_acp, CLAUDE_ACP);
extended!(codex_acp, CODEX_ACP);
extended!(gemini, GEMINI);
extended!(opencode, OPENCODE);
