//! Mistakes in a script, at load and when a rule has to answer.

use super::{ModelRequest, asked, load, script};

#[test]
fn a_rule_that_can_not_answer_is_an_error() {
    let check = |rules: &str, request: &ModelRequest, message: &str| {
        assert_eq!(
            script(rules).reply(request).unwrap_err().to_string(),
            message
        );
    };
    let first = asked("go", &[]);
    check(
        "- {when: {turn: 2}, reply: {text: x}}",
        &first,
        "no rule matches: turn 1, 0 tool results so far, available tools: `weather__get`, `clock`, `fs__a_b`, `t_1st`",
    );
    check(
        "- {reply: {text: '{result}'}}",
        &first,
        "the rule at line 3 quotes `{result}`, but there is no tool result yet",
    );
    check(
        "- {reply: {text: '{results.2}'}}",
        &asked("go", &[&["x"]]),
        "the rule at line 3 quotes `{results.2}`, but the number of tool results so far is 1",
    );
    check(
        "- {reply: {text: '{result.a}'}}",
        &asked("go", &[&["x"]]),
        "the rule at line 3 quotes `{result.a}`, but that tool result is not JSON",
    );
    check(
        "- {reply: {text: '{result.a[3].b}'}}",
        &asked("go", &[&[r#"{"a": [1]}"#]]),
        "the rule at line 3 quotes `{result.a[3].b}`, but that tool result has no `3` there",
    );
    check(
        "- {when: {user: 'go(x)?'}, reply: {text: '{match.1}'}}",
        &first,
        "the rule at line 3 quotes `{match.1}`, but that group of the pattern matched nothing",
    );
}

#[track_caller]
fn check(rules: &str, expected: &[(&str, Option<&str>)]) {
    let (_, problems) = load(rules);
    let found: Vec<_> = problems
        .iter()
        .map(|p| (&*p.message, p.hint.as_deref()))
        .collect();
    assert_eq!(found, expected, "{rules}");
    assert!(problems.iter().all(|p| p.place.is_some()));
}

#[test]
fn wrong_quotes_are_found_when_the_script_is_loaded() {
    check(
        "- {reply: {text: '{results}'}}",
        &[(
            "invalid quote `{results}`",
            Some("write `{results.N}` (N counts from 1), or `{result}` for the latest"),
        )],
    );
    check(
        "- {reply: {calls: [{tool: a, arguments: {b: ['{results.0}']}}]}}",
        &[(
            "invalid quote `{results.0}`",
            Some("write `{results.N}` (N counts from 1), or `{result}` for the latest"),
        )],
    );
    check(
        "- {reply: {text: '{prompt.x} {result.}'}}",
        &[
            (
                "invalid quote `{prompt.x}`",
                Some("it is a string and has no parts"),
            ),
            (
                "invalid quote `{result.}`",
                Some("paths look like `{result.a.b[0]}`"),
            ),
        ],
    );
    check(
        "- {reply: {text: '{match.1}'}}",
        &[(
            "no pattern for `{match.1}`",
            Some("use exactly one pattern under `when`, or exactly one with groups"),
        )],
    );
    check(
        "- {when: {user: x}, reply: {text: '{match.1}'}}",
        &[(
            "`x` has no group `1`",
            Some("groups are the parts in parentheses, counted from 1"),
        )],
    );
    check(
        "- {reply: {text: '{reslt}'}}",
        &[(
            "unknown quote `{reslt}`",
            Some("it is sent unchanged; did you mean `{result}`?"),
        )],
    );
}

#[test]
fn wrong_replies_are_found_when_the_script_is_loaded() {
    check(
        "- {reply: {text: x, error: {kind: key}}}",
        &[("`error` can't be combined with another answer", None)],
    );
    check(
        "- {reply: {refuse: x, calls: [{tool: a}]}}",
        &[("`refuse` can't be combined with another answer", None)],
    );
    check(
        "- {reply: {calls: [{tool: a, arguments: {b: 1}, malformed: x}]}}",
        &[("only one of `arguments` and `malformed` is allowed", None)],
    );
    check(
        "- {reply: {calls: [{tool: a, malformed: '{}'}]}}",
        &[(
            "`malformed` holds a valid JSON object",
            Some("move it to `arguments`, or make it invalid"),
        )],
    );
    check(
        "- {reply: {text: x}}\n- {reply: {text: y}}",
        &[(
            "this rule is never reached",
            Some("the rule at line 3 always matches"),
        )],
    );
}
