use super::*;

fn tool(name: &str) -> ToolName {
    ToolName {
        server: "s".to_owned(),
        tool: name.to_owned(),
    }
}

fn choice(expected: &[&str], chosen: &[&str], invented: &[&str]) -> ToolChoice {
    ToolChoice {
        expected: expected.iter().map(|name| tool(name)).collect(),
        others_allowed: false,
        chosen: chosen.iter().map(|name| tool(name)).collect(),
        invented: invented.iter().map(ToString::to_string).collect(),
    }
}

fn score(tally: &Tally, name: &str) -> (u32, u32, u32) {
    let score = tally.score(&Choice::Tool(tool(name)));
    (score.hits, score.false_hits, score.misses)
}

#[test]
fn hits_false_hits_and_misses_are_counted_per_tool() {
    let mut tally = Tally::default();
    tally.add("1", &choice(&["a"], &["a"], &[]), true);
    tally.add("2", &choice(&["a"], &["b"], &[]), false);
    tally.add("3", &choice(&["a", "b"], &["b"], &[]), true);
    tally.add("4", &choice(&["b"], &[], &[]), false);
    tally.add("5", &choice(&[], &["a"], &[]), false);
    tally.add("6", &choice(&["a"], &[], &["x"]), false);
    // One right call and one wrong: the right one still counts.
    tally.add("7", &choice(&["a"], &["a", "b"], &[]), false);
    assert_eq!(score(&tally, "a"), (2, 1, 2));
    assert_eq!(score(&tally, "b"), (1, 2, 1));
    let a = tally.score(&Choice::Tool(tool("a")));
    assert_eq!(a.precision(), Some(2.0 / 3.0));
    assert_eq!(a.recall(), Some(0.5));
    assert_eq!(
        a.stolen_by,
        [(Choice::Tool(tool("b")), 2), (Choice::Invented, 1)]
    );
    assert_eq!(tally.unanswered.keys().collect::<Vec<_>>(), ["4"]);
    assert_eq!(tally.invented["x"], 1);
    let none = tally.score(&Choice::NoCall);
    assert_eq!((none.hits, none.false_hits, none.misses), (0, 1, 1));
}

#[test]
fn a_right_tool_with_wrong_arguments_is_a_hit_that_failed() {
    let mut tally = Tally::default();
    tally.add("1", &choice(&["a"], &["a"], &[]), false);
    assert_eq!(tally.wrong_arguments, 1);
    assert_eq!(score(&tally, "a"), (1, 0, 0));
    // A refusal where no call is expected fails for another reason.
    tally.add("2", &choice(&[], &[], &[]), false);
    assert_eq!(tally.wrong_arguments, 1);
}

#[test]
fn allowed_calls_are_no_false_hits_unless_the_row_failed() {
    let with_others = |passed| {
        let mut tally = Tally::default();
        let choice = ToolChoice {
            others_allowed: true,
            ..choice(&["a"], &["a", "b"], &[])
        };
        tally.add("1", &choice, passed);
        score(&tally, "b").1
    };
    assert_eq!(with_others(true), 0);
    assert_eq!(with_others(false), 1);
}

#[test]
fn a_tool_that_was_never_chosen_has_no_precision() {
    let mut tally = Tally::default();
    tally.add("1", &choice(&["a"], &[], &[]), false);
    let a = tally.score(&Choice::Tool(tool("a")));
    assert_eq!((a.precision(), a.recall()), (None, Some(0.0)));
}
