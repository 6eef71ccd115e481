//! Limits of a trial and budgets of a run, which an agent that knows nothing of them can't go beyond.

use super::*;

/// A model that is never done.
const RESTLESS: &str = r"
  - reply: {calls: [{tool: echo, arguments: {message: again}}], usage: {input: 1000, output: 10}}
";

/// Claude Code on a model that has the price of `prices.yaml`, or none.
const PRICED: TappedRun = tapped("claude-code", Some("anthropic:claude-x"));

/// What comes of these limits and words with an agent that is never done.
fn limited(agent: TappedRun, rules: &str, limits: &Value, words: &[&str]) -> SessionOutcome {
    let suite = agent.suite();
    suite.task("say-hello", &json!({"limits": limits}));
    let provider = ServedScript::start(suite.folder(), rules);
    let session = agent.on(suite.check(words), provider.url());
    run(session.within(BOUND)).0
}

/// A file in which a million tokens cost a dollar; gives its folder too.
fn prices() -> (tempfile::TempDir, String) {
    let folder = tempfile::tempdir().unwrap();
    let price = json!({"input": 1, "output": 1});
    let path = folder.path().join("prices.yaml");
    let prices = json!({"prices": {"anthropic:claude-x": price, "openai:gpt-x": price}});
    std::fs::write(&path, prices.to_string()).unwrap();
    let path = path.display().to_string();
    (folder, path)
}

fn turns(agent: TappedRun) {
    let seen = limited(agent, RESTLESS, &json!({"maxTurns": 3}), &[]);
    let reason = "the agent was not done after 3 turns";
    expect(&seen, Outcome::TimedOut, None, reason);
    assert_eq!(folded(&seen).work.agent.turns, 3);
}

#[test]
fn turns_are_counted_at_the_tap() {
    turns(CLAUDE_CODE);
    // Which has no way to be told of them.
    turns(GOOSE);
}

#[test]
fn tokens_are_counted_at_the_tap() {
    let seen = limited(CLAUDE_CODE, RESTLESS, &json!({"maxTokens": 2500}), &[]);
    expect(&seen, Outcome::TimedOut, None, "tokens of 2500");
    let used = folded(&seen).work.agent.usage.total();
    assert!((2501..4000).contains(&used), "{used}");
}

#[test]
fn costs_are_counted_at_the_tap() {
    let (_folder, prices) = prices();
    let limits = json!({"maxCostUsd": 0.0025});
    let seen = limited(PRICED, RESTLESS, &limits, &["--prices", &prices]);
    expect(&seen, Outcome::TimedOut, None, "the agent cost $0.00");
    let cost = folded(&seen).work.agent.cost_usd.unwrap();
    assert!((0.0025..0.005).contains(&cost), "{cost}");
}

/// One that is done with its first reply is as expensive as any other.
#[test]
fn an_answer_that_costs_too_much_is_none() {
    let (_folder, prices) = prices();
    let limits = json!({"maxCostUsd": 0.0005});
    let rules = "  - reply: {text: dear, usage: {input: 1000, output: 10}}\n";
    let seen = limited(PRICED, rules, &limits, &["--prices", &prices]);
    expect(&seen, Outcome::TimedOut, None, "the agent cost $0.00");
}

#[test]
fn a_limit_on_what_nobody_knows_is_an_error() {
    let seen = limited(PRICED, RESTLESS, &json!({"maxCostUsd": 1}), &[]);
    let reason = "can't enforce the limit of $1: the price of `anthropic:claude-x` is unknown";
    expect(&seen, Outcome::Errored, Some(Blame::Suite), reason);
}

#[test]
fn a_budget_of_tokens_is_kept() {
    let seen = limited(
        CLAUDE_CODE,
        RESTLESS,
        &json!({}),
        &["--budget-tokens", "2500"],
    );
    let reason = "the budget of 2500 tokens is spent";
    expect(&seen, Outcome::Cancelled, None, reason);
    assert_ne!(seen.code, Some(0));
    let used = folded(&seen).work.agent.usage.total();
    assert!((2500..4000).contains(&used), "{used}");
}

#[test]
fn a_budget_of_dollars_is_kept() {
    let (_folder, prices) = prices();
    let words = ["--budget-usd", "0.0025", "--prices", &prices];
    let seen = limited(PRICED, RESTLESS, &json!({}), &words);
    expect(
        &seen,
        Outcome::Cancelled,
        None,
        "the budget of $0.0025 is spent",
    );
}
