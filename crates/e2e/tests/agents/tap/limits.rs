//! Limits of a trial and budgets of a run, which an agent that knows nothing of them can't go beyond.

use super::*;

/// A model that is never done.
const RESTLESS: &str = r"
  - reply: {calls: [{tool: echo, arguments: {message: again}}], usage: {input: 1000, output: 10}}
";

/// What comes of these limits and words with an agent that is never done.
fn limited(limits: &Value, words: &[&str]) -> (Seen, u64) {
    let suite = CLAUDE_CODE.suite();
    suite.task("say-hello", &json!({"limits": limits}));
    let prices = json!({"prices": {"anthropic:*": {"input": 1, "output": 1}}});
    suite.write("prices.yaml", &prices.to_string());
    let provider = Served::start(suite.folder(), RESTLESS);
    let session = CLAUDE_CODE.on(suite.check(words), provider.url());
    let (seen, _) = run(session.within(BOUND));
    (seen, provider.end().questions)
}

#[test]
fn turns_are_counted_at_the_tap() {
    let (seen, _) = limited(&json!({"maxTurns": 3}), &[]);
    let reason = "the agent was not done after 3 turns";
    expect(&seen, Outcome::TimedOut, None, reason);
    assert_eq!(folded(&seen).work.agent.turns, 3);
}

#[test]
fn tokens_are_counted_at_the_tap() {
    let (seen, _) = limited(&json!({"maxTokens": 2500}), &[]);
    expect(&seen, Outcome::TimedOut, None, "tokens of 2500");
    let used = folded(&seen).work.agent.usage.total();
    assert!((2501..4000).contains(&used), "{used}");
}

#[test]
fn a_cost_that_nobody_knows_is_no_limit() {
    let (seen, _) = limited(&json!({"maxCostUsd": 1}), &[]);
    expect(&seen, Outcome::Errored, Some(Blame::Suite), "");
}
