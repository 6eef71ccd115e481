//! Checks on what was used, how often, and what must not be used.

use super::*;

#[test]
fn tools_used_passes_when_every_entry_was_called() {
    let made = transcript(vec![
        called(1, "a", 1),
        called(2, "b", 1),
        called(3, "a", 2),
    ]);
    check_pass(
        &Check::ToolsUsed(vec![entry("a"), entry("b")]),
        &made,
        &[1, 2, 3],
    );
    // One call may count for several entries.
    let pattern = ToolMatcher {
        target: like("^b"),
        ..entry("b")
    };
    check_pass(&Check::ToolsUsed(vec![entry("b"), pattern]), &made, &[2]);
    check_pass(
        &Check::ToolsUsed(vec![times(entry("a"), 2, 2)]),
        &made,
        &[1, 3],
    );
    check_pass(
        &Check::ToolsUsed(vec![times(entry("c"), None, 0)]),
        &made,
        &[],
    );
}

#[test]
fn tools_used_fails_with_what_was_called_instead() {
    let made = transcript(vec![
        called(1, "a", 1),
        called(2, "b", 1),
        called(3, "a", 2),
        read(4, "u"),
    ]);
    check_fail(
        &Check::ToolsUsed(vec![entry("a"), entry("c"), entry("d")]),
        &made,
        "`fs` `c` was never called; called: `fs` `a` ×2, `fs` `b`\n`fs` `d` was never called",
        &[],
    );
    check_fail(
        &Check::ToolsUsed(vec![entry("a")]),
        &transcript(vec![read(1, "u")]),
        "`fs` `a` was never called; no tool was called",
        &[],
    );
}

#[test]
fn tools_used_fails_with_the_nearest_call() {
    let deep = ToolMatcher {
        arguments: Some(Matcher::compile(&json!({"path": "/a", "mode": "r"})).unwrap()),
        ..entry("open")
    };
    let open = |seq, path: &str, mode: &str| {
        tool_call(
            seq,
            "open",
            Payload::Value(json!({"path": path, "mode": mode})),
        )
    };
    check_fail(
        &Check::ToolsUsed(vec![deep]),
        &transcript(vec![
            open(1, "/c", "w"),
            open(7, "/b", "r"),
            open(8, "/d", "w"),
        ]),
        "`fs` `open` with {\"path\":\"/a\",\"mode\":\"r\"}: no call matches; nearest is call #7: `arguments.path`: expected \"/a\", found \"/b\"",
        &[7],
    );
}

#[test]
fn tools_used_fails_with_the_number_of_calls() {
    let made = transcript(vec![
        called(1, "a", 1),
        called(2, "a", 2),
        called(3, "a", 1),
    ]);
    check_fail(
        &Check::ToolsUsed(vec![times(with_x("a", 1), 3, None)]),
        &made,
        "`fs` `a` with {\"x\":1}: expected at least 3 calls, found 2 (#1, #3); nearest is call #2: `arguments.x`: expected 1, found 2",
        &[1, 2, 3],
    );
    check_fail(
        &Check::ToolsUsed(vec![times(entry("a"), None, 2)]),
        &made,
        "`fs` `a`: expected 1 to 2 calls, found 3 (#1, #2, #3)",
        &[1, 2, 3],
    );
    check_fail(
        &Check::ToolsUsed(vec![times(entry("a"), None, 0)]),
        &made,
        "`fs` `a`: expected at most 0 calls, found 3 (#1, #2, #3)",
        &[1, 2, 3],
    );
    check_fail(
        &Check::ToolsUsed(vec![times(entry("b"), 2, 2)]),
        &made,
        "`fs` `b`: expected exactly 2 calls, found 0; called: `fs` `a` ×3",
        &[],
    );
}

#[test]
fn tools_used_is_unknown_when_the_record_is_truncated() {
    let made = transcript(vec![tool_call(1, "a", CUT), called(2, "a", 2)]);
    let why =
        "call #1 may match, but its arguments (9 bytes) can't be read: truncated in the record";
    check_unknown(
        &Check::ToolsUsed(vec![with_x("a", 1)]),
        &made,
        &format!("`fs` `a` with {{\"x\":1}}: {why}"),
        &[1],
    );
    // Whatever was cut, there are two calls, and not three that fit.
    check_pass(
        &Check::ToolsUsed(vec![times(entry("a"), 2, None)]),
        &made,
        &[1, 2],
    );
    check_fail(
        &Check::ToolsUsed(vec![times(with_x("a", 2), 3, None)]),
        &made,
        "`fs` `a` with {\"x\":2}: expected at least 3 calls, found 1 (#2), plus #1 that may match",
        &[2],
    );
    check_unknown(
        &Check::ToolsUsed(vec![times(with_x("a", 2), None, 1)]),
        &made,
        &format!("`fs` `a` with {{\"x\":2}}: {why}"),
        &[1],
    );
}

#[test]
fn require_any_is_content_with_one() {
    let made = transcript(vec![called(1, "a", 1), tool_call(2, "b", CUT)]);
    check_pass(
        &Check::RequireAny(vec![entry("c"), entry("a")]),
        &made,
        &[1],
    );
    check_fail(
        &Check::RequireAny(vec![entry("c"), with_x("a", 2)]),
        &made,
        "`fs` `c` was never called; called: `fs` `a`, `fs` `b`\n`fs` `a` with {\"x\":2}: no call matches; nearest is call #1: `arguments.x`: expected 2, found 1",
        &[1],
    );
    check_unknown(
        &Check::RequireAny(vec![entry("c"), with_x("b", 2)]),
        &made,
        "`fs` `b` with {\"x\":2}: call #2 may match, but its arguments (9 bytes) can't be read: truncated in the record",
        &[2],
    );
    check_pass(
        &Check::RequireAny(vec![entry("a"), with_x("b", 2)]),
        &made,
        &[1],
    );
}

#[test]
fn tools_not_used_forbids_calls_and_numbers_of_calls() {
    let made = transcript(vec![
        called(1, "a", 1),
        called(2, "a", 2),
        called(3, "a", 1),
    ]);
    check_pass(
        &Check::ToolsNotUsed(vec![entry("b"), with_x("a", 3)]),
        &made,
        &[],
    );
    check_pass(
        &Check::ToolsNotUsed(vec![times(with_x("a", 1), 3, None)]),
        &made,
        &[],
    );
    check_fail(
        &Check::ToolsNotUsed(vec![entry("b"), with_x("a", 1)]),
        &made,
        "`fs` `a` with {\"x\":1} was called: #1, #3",
        &[1, 3],
    );
    check_fail(
        &Check::ToolsNotUsed(vec![times(entry("a"), 3, None)]),
        &made,
        "`fs` `a`: at least 3 calls forbidden, found 3 (#1, #2, #3)",
        &[1, 2, 3],
    );
}

#[test]
fn tools_not_used_is_unknown_when_the_record_is_truncated() {
    let unreadable = Payload::Unreadable {
        reason: "EOF at 1:5".to_owned(),
    };
    let made = transcript(vec![called(1, "a", 1), tool_call(2, "a", unreadable)]);
    check_unknown(
        &Check::ToolsNotUsed(vec![with_x("a", 2)]),
        &made,
        "`fs` `a` with {\"x\":2}: call #2 may match, but its arguments could not be parsed as JSON: EOF at 1:5",
        &[2],
    );
    check_fail(
        &Check::ToolsNotUsed(vec![with_x("a", 1)]),
        &made,
        "`fs` `a` with {\"x\":1} was called: #1",
        &[1],
    );
}

#[test]
fn a_long_list_of_calls_is_cut() {
    let made = transcript((0..30).map(|i| called(i, &format!("t{i}"), 1)).collect());
    let result = Check::ToolsUsed(vec![entry("a")]).evaluate(&made);
    let Verdict::Fail { reason } = result.verdict else {
        panic!("{result:?}");
    };
    assert!(reason.ends_with("`fs` `t9`, and 20 more"), "{reason}");
}

#[test]
fn resources_are_read_or_not() {
    let made = transcript(vec![
        read(1, "file:///a"),
        read(2, "file:///b"),
        called(3, "file:///c", 1),
    ]);
    check_pass(
        &Check::ResourcesRead(vec![named("file:///a"), like("b$")]),
        &made,
        &[1, 2],
    );
    check_fail(
        &Check::ResourcesRead(vec![named("file:///c")]),
        &made,
        "`fs` `file:///c` was never read; read: `fs` `file:///a`, `fs` `file:///b`",
        &[],
    );
    check_fail(
        &Check::ResourcesRead(vec![like("a")]),
        &transcript(vec![]),
        "`fs` `/a/` was never read; no resource was read",
        &[],
    );
    check_pass(
        &Check::ResourcesNotRead(vec![named("file:///c")]),
        &made,
        &[],
    );
    check_fail(
        &Check::ResourcesNotRead(vec![like("secret"), like("^file")]),
        &made,
        "`fs` `/^file/` was read: #1, #2",
        &[1, 2],
    );
}

#[test]
fn prompts_are_used_or_not() {
    let made = transcript(vec![prompted(1, "greet"), called(2, "leave", 1)]);
    check_pass(&Check::PromptsUsed(vec![named("greet")]), &made, &[1]);
    check_fail(
        &Check::PromptsUsed(vec![named("leave")]),
        &made,
        "`fs` `leave` was never used; used: `fs` `greet`",
        &[],
    );
    check_pass(&Check::PromptsNotUsed(vec![named("leave")]), &made, &[]);
    check_fail(
        &Check::PromptsNotUsed(vec![named("greet")]),
        &made,
        "`fs` `greet` was used: #1",
        &[1],
    );
}

#[test]
fn skills_are_loaded_or_not_if_the_agent_tells() {
    let skill = |name: &str| SkillMatcher {
        name: Some(name.to_owned()),
        pattern: None,
    };
    let pattern = SkillMatcher {
        name: None,
        pattern: Some(Pattern::compile("^p").unwrap()),
    };
    let load = |seq, name: &str| SkillLoad {
        seq,
        name: name.to_owned(),
    };
    let told = Transcript {
        calls: Vec::new(),
        skills: Some(vec![load(4, "pdf"), load(5, "xls")]),
        unread: Vec::new(),
        selection: None,
        messages: Vec::new(),
    };
    check_pass(
        &Check::SkillsLoaded(vec![pattern.clone(), skill("xls")]),
        &told,
        &[4, 5],
    );
    check_fail(
        &Check::SkillsLoaded(vec![skill("doc")]),
        &told,
        "skill `doc` was never loaded; loaded: `pdf`, `xls`",
        &[],
    );
    check_pass(&Check::SkillsNotLoaded(vec![skill("doc")]), &told, &[]);
    check_fail(
        &Check::SkillsNotLoaded(vec![pattern]),
        &told,
        "skill `/^p/` was loaded: #4",
        &[4],
    );
    let silent = transcript(Vec::new());
    let reason = "this agent does not report which skills it loads";
    check_unknown(
        &Check::SkillsLoaded(vec![skill("doc")]),
        &silent,
        reason,
        &[],
    );
    check_unknown(
        &Check::SkillsNotLoaded(vec![skill("doc")]),
        &silent,
        reason,
        &[],
    );
}
