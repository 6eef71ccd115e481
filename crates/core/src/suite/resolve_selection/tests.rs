use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use proctor_record::problem::{Problems, Severity};

use crate::check::{Check, ExpectedTools, SelectionMode};
use crate::suite::{Case, Environment, Inputs, load};

/// Loads a suite with one selection file, or returns its errors as lines.
fn loaded(set: &str, spec: &str, files: &[(&str, &[u8])]) -> Result<Vec<Case>, Vec<String>> {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    let eval = format!(
        "kind: Eval\nmetadata: {{name: s}}\nconfig:\n  agent: {{type: builtin.llm-agent, model: \"openai:x\"}}\n  \
         mcpConfigFile: mcp.json\n  taskSets:\n    - {set}\n"
    );
    std::fs::write(at("eval.yaml"), eval).unwrap();
    std::fs::write(
        at("mcp.json"),
        r#"{"mcpServers": {"git": {"command": "x"}}}"#,
    )
    .unwrap();
    let head = "kind: Selection\nmetadata: {name: r, labels: {tier: pr}}\nspec:\n";
    std::fs::write(at("rows.yaml"), format!("{head}{spec}")).unwrap();
    for (name, bytes) in files {
        std::fs::write(at(name), bytes).unwrap();
    }
    let (mut problems, env) = (Problems::default(), Environment::new());
    let roots: BTreeMap<String, PathBuf> = BTreeMap::new();
    let inputs = Inputs {
        env: &env,
        source_roots: &roots,
        runs: None,
        mcp_config: None,
        judge_given: false,
    };
    let suite = load(&at("eval.yaml"), &inputs, &mut problems);
    suite.map(|suite| suite.cases).ok_or_else(|| {
        let errors = problems.iter().filter(|p| p.severity == Severity::Error);
        let line = |p: &proctor_record::problem::Problem| {
            let path = p
                .path
                .as_deref()
                .and_then(Path::file_name)
                .unwrap_or_default();
            let line = p.place.as_ref().map_or(0, |place| place.line);
            format!("{}:{line}: {}", path.display(), p.message)
        };
        errors.map(line).collect()
    })
}

const SET: &str = "{selection: rows.yaml, server: git}";

#[test]
fn rows_become_cases_with_ids_checks_labels_and_places() {
    let spec = "  rows:\n    - {prompt: a, expect: log}\n    - {id: x, prompt: b, expect: [log, show], not: diff, mode: contains, arguments: {n: {$exists: true}}, labels: {k: v}}\n    - prompt: c\n      expect: none\n    - {messages: [{role: user, content: a}, {role: assistant, content: b}, {role: user, content: c}], expect: log}\n";
    let cases = loaded(SET, spec, &[]).unwrap();
    assert_eq!(cases.len(), 4);
    assert_eq!(cases[1].name, "r[x]");
    assert_eq!(cases[1].id.0, "rows.yaml#r[x]");
    assert_eq!(cases[1].labels["k"], "v");
    assert_eq!(cases[1].labels["tier"], "pr");
    assert_eq!(cases[2].places[0].line, 7);
    assert!(cases[0].parallel);
    let check = |case: &Case| match case.checks.first().map(AsRef::as_ref) {
        Some(Check::Selection(check)) => (**check).clone(),
        other => panic!("{other:?}"),
    };
    let second = check(&cases[1]);
    assert_eq!(second.server.as_deref(), Some("git"));
    assert_eq!(second.mode, SelectionMode::Contains);
    assert_eq!(second.not, ["diff"]);
    assert_eq!(check(&cases[2]).expect, ExpectedTools::None);
    assert!(
        cases
            .iter()
            .all(|case| case.checks[1].as_ref() == &Check::NotExecuted)
    );
    assert_eq!(
        cases[3].prompt.to_string(),
        "user: a\nassistant: b\nuser: c"
    );
    // The id comes from the prompt, so another expectation keeps it, and changes the hash.
    let other = loaded(SET, "  rows: [{prompt: a, expect: show}]\n", &[]).unwrap();
    assert_eq!(other[0].id, cases[0].id);
    let hash = |case: &Case| crate::suite::digest(case).unwrap();
    assert_ne!(hash(&other[0]), hash(&cases[0]));
}

#[test]
fn a_csv_file_gives_the_same_rows_as_yaml() {
    let csv = "prompt,expect,not,arguments,mode,id\na,log | show,,\"{\"\"n\"\": 1}\",,\nb,none,,,,x\nc,log,diff|status,,contains,\n";
    let from_csv = loaded(SET, "  rowsFrom: r.csv\n", &[("r.csv", csv.as_bytes())]).unwrap();
    let yaml = "  rows:\n    - {prompt: a, expect: [log, show], arguments: {n: 1}}\n    - {prompt: b, expect: none, id: x}\n    - {prompt: c, expect: log, not: [diff, status], mode: contains}\n";
    let from_yaml = loaded(SET, yaml, &[]).unwrap();
    let hashes = |cases: &[Case]| -> Vec<(String, String)> {
        let hash = |case: &Case| (case.name.clone(), crate::suite::digest(case).unwrap());
        cases.iter().map(hash).collect()
    };
    assert_eq!(hashes(&from_csv), hashes(&from_yaml));
}

#[test]
fn wrong_rows_are_errors_with_their_line() {
    let check = |spec: &str, files: &[(&str, &[u8])], expected: &[&str]| {
        let found = loaded(SET, spec, files).unwrap_err();
        assert_eq!(found, expected, "{spec}");
    };
    let rows = |row: &str| format!("  rows:\n    - {row}\n");
    check(
        &rows("{prompt: a}"),
        &[],
        &["rows.yaml:5: `expect` is missing"],
    );
    check(
        &rows("{expect: a}"),
        &[],
        &["rows.yaml:5: one of `prompt`, `messages` is missing"],
    );
    check(
        &rows("{prompt: a, expect: none, not: x, arguments: {a: 1}}"),
        &[],
        &[
            "rows.yaml:5: `not` has no effect with `expect: none`, which forbids all calls",
            "rows.yaml:5: `arguments` has no effect with `expect: none`",
        ],
    );
    check(
        &rows("{prompt: a, expect: [x, y], not: [y]}"),
        &[],
        &["rows.yaml:5: `y` is both expected and forbidden"],
    );
    check(
        &rows("{prompt: a, expect: []}"),
        &[],
        &["rows.yaml:5: the list of tools is empty"],
    );
    check(
        &rows("{prompt: a, exepct: x, expect: x}"),
        &[],
        &["rows.yaml:5: unknown key `exepct`"],
    );
    check(
        &rows("{prompt: \"\", expect: x}"),
        &[],
        &["rows.yaml:5: the prompt is empty"],
    );
    check(
        &rows("{prompt: \"TO BE WRITTEN: x\", expect: x}"),
        &[],
        &["rows.yaml:5: the prompt is still to be written"],
    );
    check(
        &rows("{prompt: a, expect: x, arguments: {}}"),
        &[],
        &["rows.yaml:5: all arguments match, so `arguments` checks nothing"],
    );
    check(
        &rows("{prompt: a, expect: x, server: svn}"),
        &[],
        &["rows.yaml:5: row names unknown server `svn`"],
    );
    check(
        "  rows:\n    - {prompt: a, expect: x}\n    - {prompt: a, expect: y}\n",
        &[],
        &["rows.yaml:6: the row repeats the one in line 5"],
    );
    check(
        "  rowsFrom: r.csv\n",
        &[("r.csv", b"prompt,expect,arguments\na,x,\nb,y,{\nc,,\n")],
        &[
            "r.csv:3: `arguments` is not JSON: EOF while parsing an object",
            "r.csv:4: `expect` is missing",
        ],
    );
    check(
        "  rowsFrom: r.jsonl\n",
        &[(
            "r.jsonl",
            b"{\"prompt\": \"a\", \"expect\": \"x\", \"extra\": 1}\n",
        )],
        &["r.jsonl:1: unknown key `extra`"],
    );
    let asserted = "{selection: rows.yaml, assertions: {minToolCalls: 1}}";
    assert_eq!(
        loaded(asserted, &rows("{prompt: a, expect: x}"), &[]).unwrap_err(),
        ["eval.yaml:7: `assertions` has no effect on a selection: no tool is called"]
    );
    let with_server = "{path: rows.yaml, server: git}";
    let found = loaded(with_server, &rows("{prompt: a, expect: x}"), &[]).unwrap_err();
    assert!(
        found.contains(&"eval.yaml:7: `server` needs `selection`".to_owned()),
        "{found:?}"
    );
}
