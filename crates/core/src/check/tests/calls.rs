//! Expected calls, one for one.

use super::*;

fn contains(list: Vec<ToolMatcher>) -> Check {
    Check::Calls {
        mode: CallsMode::Contains,
        list,
    }
}

fn in_order(list: Vec<ToolMatcher>) -> Check {
    Check::Calls {
        mode: CallsMode::InOrder,
        list,
    }
}

fn exact(list: Vec<ToolMatcher>) -> Check {
    Check::Calls {
        mode: CallsMode::Exact,
        list,
    }
}

#[test]
fn contains_finds_an_assignment_in_either_order() {
    let check = contains(vec![
        with_x("a", json!({"$oneOf": ["A", "B"]})),
        with_x("a", "A"),
    ]);
    check_pass(
        &check,
        &transcript(vec![called(1, "a", "A"), called(2, "a", "B")]),
        &[1, 2],
    );
    check_pass(
        &check,
        &transcript(vec![called(1, "a", "B"), called(2, "a", "A")]),
        &[1, 2],
    );
    check_pass(
        &check,
        &transcript(vec![
            called(1, "c", 0),
            called(2, "a", "B"),
            read(3, "u"),
            called(4, "a", "A"),
        ]),
        &[2, 4],
    );
}

#[test]
fn contains_fails_with_the_found_and_nearest_calls() {
    check_fail(
        &contains(vec![entry("list"), with_x("read", "/a"), entry("write")]),
        &transcript(vec![called(1, "list", 0), called(7, "read", "/b")]),
        "expected call 2 (`fs` `read` with {\"x\":\"/a\"}): nearest is call #7: `arguments.x`: expected \"/a\", found \"/b\"\n\
         expected call 3 (`fs` `write`): never called; called: `fs` `list`, `fs` `read`\n\
         expected call 1 (`fs` `list`): #1",
        &[7],
    );
}

#[test]
fn one_call_is_not_taken_twice() {
    check_fail(
        &contains(vec![entry("a"), with_x("a", 1)]),
        &transcript(vec![called(1, "a", 1)]),
        "expected call 2 (`fs` `a` with {\"x\":1}): call #1 matches, but is already assigned to expected call 1\nexpected call 1 (`fs` `a`): #1",
        &[1],
    );
    check_fail(
        &contains(vec![times(entry("a"), 3, None)]),
        &transcript(vec![called(1, "a", 1), called(2, "a", 2)]),
        "expected call 1 (`fs` `a`): found 2 of 3; no other call matches",
        &[],
    );
    check_pass(
        &contains(vec![times(entry("a"), 2, None)]),
        &transcript(vec![
            called(1, "a", 1),
            called(2, "a", 2),
            called(3, "a", 3),
        ]),
        &[1, 2],
    );
    check_fail(
        &contains(vec![times(entry("a"), u64::MAX, None)]),
        &transcript(Vec::new()),
        "expected call 1 (`fs` `a`): found 0 of 18446744073709551615; never called; no tool was called",
        &[],
    );
}

#[test]
fn contains_is_unknown_when_only_a_truncated_call_completes_it() {
    let made = transcript(vec![called(1, "a", 1), tool_call(2, "a", CUT)]);
    check_unknown(
        &contains(vec![with_x("a", 1), with_x("a", 2)]),
        &made,
        "expected call 1 (`fs` `a` with {\"x\":1}): call #2 may match, but its arguments (9 bytes) can't be read: truncated in the record\n\
         expected call 2 (`fs` `a` with {\"x\":2}): call #2 may match, but its arguments (9 bytes) can't be read: truncated in the record",
        &[2],
    );
    check_pass(&contains(vec![with_x("a", 1)]), &made, &[1]);
    check_fail(
        &contains(vec![with_x("a", 2), with_x("a", 3)]),
        &made,
        "expected call 2 (`fs` `a` with {\"x\":3}): nearest is call #1: `arguments.x`: expected 3, found 1\n\
         expected call 1 (`fs` `a` with {\"x\":2}): #2",
        &[1],
    );
}

#[test]
fn in_order_allows_other_calls_between() {
    let made = transcript(vec![
        called(1, "a", 1),
        called(2, "c", 1),
        called(3, "b", 1),
    ]);
    check_pass(&in_order(vec![entry("a"), entry("b")]), &made, &[1, 3]);
    check_fail(
        &in_order(vec![entry("b"), entry("a")]),
        &made,
        "expected call 2 (`fs` `a`): call #1 matches, but not at this position\nexpected call 1 (`fs` `b`): #3",
        &[1],
    );
    let cut = transcript(vec![called(1, "b", 1), tool_call(2, "a", CUT)]);
    check_unknown(
        &in_order(vec![entry("b"), with_x("a", 1)]),
        &cut,
        "expected call 2 (`fs` `a` with {\"x\":1}): call #2 may match, but its arguments (9 bytes) can't be read: truncated in the record",
        &[2],
    );
}

#[test]
fn exact_allows_nothing_else() {
    let made = transcript(vec![
        called(1, "a", 1),
        called(2, "c", 1),
        read(3, "u"),
        called(4, "b", 1),
    ]);
    check_pass(
        &exact(vec![entry("a"), entry("c"), entry("b")]),
        &made,
        &[1, 2, 4],
    );
    check_fail(
        &exact(vec![entry("a"), entry("b")]),
        &made,
        "unexpected call #2 (`fs` `c` with {\"x\":1})\nexpected call 1 (`fs` `a`): #1\nexpected call 2 (`fs` `b`): #4",
        &[2],
    );
    check_fail(
        &exact(vec![entry("a"), with_x("c", 2), entry("b")]),
        &made,
        "expected call 2 (`fs` `c` with {\"x\":2}): nearest is call #2: `arguments.x`: expected 2, found 1\n\
         unexpected call #2 (`fs` `c` with {\"x\":1})\nexpected call 1 (`fs` `a`): #1\nexpected call 3 (`fs` `b`): #4",
        &[2],
    );
    check_unknown(
        &exact(vec![with_x("a", 1)]),
        &transcript(vec![tool_call(1, "a", CUT)]),
        "expected call 1 (`fs` `a` with {\"x\":1}): call #1 may match, but its arguments (9 bytes) can't be read: truncated in the record",
        &[1],
    );
}

#[test]
fn exact_takes_as_many_calls_as_times_allows() {
    let polls = |count: u64| {
        let mut calls = vec![called(0, "start", 1)];
        calls.extend((1..=count).map(|seq| called(seq, "poll", 1)));
        calls.push(called(9, "stop", 1));
        transcript(calls)
    };
    let check = exact(vec![
        entry("start"),
        times(entry("poll"), 1, 3),
        entry("stop"),
    ]);
    check_pass(&check, &polls(1), &[0, 1, 9]);
    check_pass(&check, &polls(3), &[0, 1, 2, 3, 9]);
    check_fail(
        &check,
        &polls(0),
        "expected call 2 (`fs` `poll`): never called; called: `fs` `start`, `fs` `stop`\n\
         expected call 1 (`fs` `start`): #0\nexpected call 3 (`fs` `stop`): #9",
        &[],
    );
    check_fail(
        &check,
        &polls(4),
        "unexpected call #4 (`fs` `poll` with {\"x\":1})\nexpected call 1 (`fs` `start`): #0\n\
         expected call 2 (`fs` `poll`): #1, #2, #3\nexpected call 3 (`fs` `stop`): #9",
        &[4],
    );
    let optional = exact(vec![
        entry("start"),
        times(entry("poll"), 0, 2),
        entry("stop"),
    ]);
    check_pass(&optional, &polls(0), &[0, 9]);
    let twice = exact(vec![
        entry("start"),
        times(entry("poll"), 2, None),
        entry("stop"),
    ]);
    check_pass(&twice, &polls(2), &[0, 1, 2, 9]);
    assert_ne!(twice.evaluate(&polls(3)).verdict, Verdict::Pass);
}

#[test]
fn a_list_that_asks_for_no_call_is_never_a_pass() {
    let list = vec![times(entry("a"), 0, None)];
    for check in [contains(list.clone()), in_order(list)] {
        check_unknown(
            &check,
            &transcript(vec![called(1, "a", 1)]),
            "nothing to check",
            &[],
        );
    }
}
