use std::collections::BTreeMap;
use std::path::Path;

use proctor_record::problem::{Problems, Severity};

use crate::suite::{Case, Environment, Inputs, Suite, load};

/// Loads a suite of one task with these files, and returns its cases or its problems as lines.
fn loaded(spec: &str, assertions: &str, files: &[(&str, &[u8])]) -> Result<Suite, Vec<String>> {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    let eval = format!(
        "kind: Eval\nmetadata: {{name: s}}\nconfig:\n  agent: {{type: builtin.llm-agent, model: \"openai:x\"}}\n  \
         mcpConfigFile: mcp.json\n  taskSets:\n    - path: task.yaml\n      assertions: {assertions}\n"
    );
    std::fs::write(at("eval.yaml"), eval).unwrap();
    std::fs::write(at("mcp.json"), r#"{"mcpServers": {"s": {"command": "x"}}}"#).unwrap();
    let task = format!(
        "kind: Task\napiVersion: mcpchecker/v1alpha2\nmetadata: {{name: t, labels: {{a: task}}}}\nspec:\n{spec}"
    );
    std::fs::write(at("task.yaml"), task).unwrap();
    for (name, bytes) in files {
        std::fs::write(at(name), bytes).unwrap();
    }
    let mut problems = Problems::default();
    let env = Environment::new();
    let suite = load(&at("eval.yaml"), &inputs(&env), &mut problems);
    suite.ok_or_else(|| {
        let errors = problems.iter().filter(|p| p.severity == Severity::Error);
        errors
            .map(|p| {
                let path = p
                    .path
                    .as_deref()
                    .and_then(Path::file_name)
                    .unwrap_or_default();
                let line = p.place.as_ref().map_or(0, |place| place.line);
                let folder = format!("{}/", folder.path().display());
                format!(
                    "{}:{line}: {}",
                    path.display(),
                    p.message.replace(&folder, "")
                )
            })
            .collect()
    })
}

fn inputs(env: &Environment) -> Inputs<'_> {
    static NONE: BTreeMap<String, std::path::PathBuf> = BTreeMap::new();
    Inputs {
        env,
        source_roots: &NONE,
        runs: None,
        mcp_config: None,
        judge_given: false,
    }
}

const USED: &str = "{toolsUsed: [{server: s, tool: \"{row.tool}\", arguments: {n: \"{row.n}\", q: \"x {row.tool}\"}}]}";

fn checks(case: &Case) -> String {
    let all: Vec<String> = case
        .checks
        .iter()
        .flat_map(|check| check.details())
        .collect();
    all.join("; ")
}

#[test]
fn each_row_is_a_case_with_its_own_prompt_checks_and_labels() {
    let suite = loaded(
        "  prompt: {inline: \"use {row.tool}\"}\n  rows:\n    - {id: one, tool: add, n: 3, labels: {b: x}}\n    - {tool: echo, n: \"3\"}\n",
        USED,
        &[],
    )
    .unwrap();
    let [one, other] = &suite.cases[..] else {
        panic!("{:?}", suite.cases);
    };
    assert_eq!(one.name, "t[one]");
    assert!(one.id.0.ends_with("task.yaml#t[one]"), "{}", one.id);
    assert_eq!(one.prompt.to_string(), "use add");
    assert_eq!(one.labels["a"], "task");
    assert_eq!(one.labels["b"], "x");
    // A number stays a number, and a text stays a text.
    let (first, second) = (checks(one), checks(other));
    assert!(
        first.contains("`s.add`") || first.contains("add"),
        "{first}"
    );
    assert_ne!(first.replace("add", "echo"), second);
    assert_eq!(other.name.len(), "t[]".len() + 12);
    assert_ne!(
        crate::suite::digest(one).unwrap(),
        crate::suite::digest(other).unwrap()
    );
}

#[test]
fn a_csv_file_gives_the_same_cases_as_the_same_rows_in_jsonl() {
    let csv = "id,tool,n,labels\r\na,add,\"1,\"\"2\"\"\",\"k=v,l=w\"\r\n\r\nb,\"two\nlines\",,\n";
    let jsonl = "{\"id\":\"a\",\"tool\":\"add\",\"n\":\"1,\\\"2\\\"\",\"labels\":{\"k\":\"v\",\"l\":\"w\"}}\n\n\
                 {\"id\":\"b\",\"tool\":\"two\\nlines\",\"n\":\"\"}\n";
    let of = |name: &str, text: &str| {
        let spec =
            format!("  prompt: {{inline: \"{{row.tool}} {{row.n}}\"}}\n  rowsFrom: {name}\n");
        let suite = loaded(&spec, USED, &[(name, text.as_bytes())]).unwrap();
        let cases = suite.cases.iter();
        cases
            .map(|case| {
                let hash = crate::suite::digest(case).unwrap();
                (case.name.clone(), case.labels.clone(), hash)
            })
            .collect::<Vec<_>>()
    };
    let of_csv = of("rows.csv", csv);
    assert_eq!(of_csv, of("rows.jsonl", jsonl));
    assert_eq!(of_csv.len(), 2);
    assert_eq!(of_csv[0].1["l"], "w");
}

#[test]
#[expect(clippy::too_many_lines, reason = "it is one table")]
fn bad_rows_are_named_with_their_file_and_line() {
    let prompt = "  prompt: {inline: \"{row.tool}\"}\n";
    let check = |spec: &str, files: &[(&str, &[u8])], expected: &[&str]| {
        let spec = format!("{prompt}{spec}");
        let found = loaded(&spec, "{minToolCalls: 1}", files).unwrap_err();
        assert_eq!(found, expected, "{spec}");
    };
    let from = "  rowsFrom: rows.csv\n";
    let csv = |text: &'static str| [("rows.csv", text.as_bytes())];
    check(
        from,
        &csv("id,tool\n1,a\n2\n3,c\n"),
        &["rows.csv:3: the row has 1 cells, and the header has 2"],
    );
    check(
        from,
        &csv("id,tool\n1,a\n2,b\n1,c\n"),
        &["rows.csv:4: duplicate row id `1`: line 2 has it"],
    );
    check(
        from,
        &csv("tool\na\nb\na\n"),
        &["rows.csv:4: the row repeats the one in line 2"],
    );
    check(
        from,
        &csv("id,name\n1,a\n"),
        &["task.yaml:5: no row has a value `tool`"],
    );
    check(
        from,
        &csv("tool,tool\n1,a\n"),
        &["rows.csv:1: two columns have the name `tool`"],
    );
    check(
        from,
        &csv("tool\n\"a\n"),
        &["rows.csv:2: this quote has no end"],
    );
    check(
        from,
        &csv("tool\na \"b\"\n"),
        &["rows.csv:2: a quote inside a cell: put the whole cell in quotes, and double this one"],
    );
    check(
        from,
        &csv("tool\n"),
        &["task.yaml:6: `rows.csv` has no rows"],
    );
    check(
        from,
        &csv("id,tool\n[1],a\n"),
        &["rows.csv:2: invalid row id"],
    );
    check(
        from,
        &csv("tool,labels\na,x\n"),
        &["rows.csv:2: invalid labels `x`"],
    );
    check(
        from,
        &[("rows.csv", b"tool\na\n\xff\n")],
        &["rows.csv:3: the file is not UTF-8"],
    );
    let from = "  rowsFrom: rows.jsonl\n";
    let jsonl = |text: &'static str| [("rows.jsonl", text.as_bytes())];
    check(
        from,
        &jsonl("{\"tool\": \"a\"}\n{\"n\": 1}\n{\"tool\": null}\n"),
        &[
            "rows.jsonl:2: the row has no value `tool`, which the task uses",
            "rows.jsonl:3: the row has no value `tool`, which the task uses",
        ],
    );
    check(
        from,
        &jsonl("{\"tool\": \"a\", \"tool\": \"b\"}\n[1]\n"),
        &[
            "rows.jsonl:1: invalid JSON: duplicate key `tool`",
            "rows.jsonl:2: expected a JSON object on each line",
            "task.yaml:6: `rows.jsonl` has no rows",
        ],
    );
    check(
        "  rowsFrom: rows.txt\n",
        &[],
        &["task.yaml:6: `rows.txt` is neither a CSV nor a JSONL file"],
    );
    check(
        "  rowsFrom: none.csv\n",
        &[],
        &["task.yaml:6: `none.csv` does not exist"],
    );
    check(
        "",
        &[],
        &["task.yaml:5: `{row.tool}` needs rows, and the task has none"],
    );
    check(
        "  rows: [{tool: a}]\n  verify: [{script: {inline: \"test {row.tool} = a\"}}]\n",
        &[],
        &["task.yaml:7: `{row.tool}` is not filled into the text of a script"],
    );
    check(
        "  rows: [{tool: a}, {tool: \"\"}]\n",
        &[],
        &["task.yaml:6: the prompt of this row is empty"],
    );
}

#[test]
fn assertions_of_rows_are_checked_for_each_row() {
    let spec = "  prompt: {inline: p}\n  rows:\n    - {id: a, tool: add, n: 1}\n    - {id: b, tool: \"\", n: 1}\n";
    assert_eq!(
        loaded(spec, USED, &[]).unwrap_err(),
        [
            "eval.yaml:8: the assertions are wrong for `t[b]`, the row in line 8",
            "eval.yaml:8: the string is empty",
        ]
    );
    let spec = "  prompt: {inline: p}\n  rowsFrom: rows.csv\n";
    let csv: [(&str, &[u8]); 1] = [("rows.csv", b"id,word\na,hi\nb,\n")];
    for (matcher, problem) in [
        (
            "$contains: \"{row.word}\"",
            "every string contains the empty string",
        ),
        ("$match: \"{row.word}\"", "`` matches every string"),
        (
            "$match: \"(?i)^{row.word}\"",
            "`(?i)^` matches every string",
        ),
    ] {
        let used =
            format!("{{toolsUsed: [{{server: s, tool: t, arguments: {{q: {{{matcher}}}}}}}]}}");
        assert_eq!(
            loaded(spec, &used, &csv).unwrap_err(),
            [
                "eval.yaml:8: the assertions are wrong for `t[b]`, the row in line 3".to_owned(),
                format!("eval.yaml:8: {problem}"),
            ]
        );
    }
    let without = "  prompt: {inline: p}\n";
    assert_eq!(
        loaded(without, USED, &[]).unwrap_err(),
        ["eval.yaml:8: the assertions use `{row.NAME}`, and `t` has no rows"]
    );
    let lacking = "  prompt: {inline: p}\n  rows: [{tool: add}]\n";
    assert_eq!(
        loaded(lacking, USED, &[]).unwrap_err(),
        ["task.yaml:6: the row has no value `n`, which the task uses"]
    );
    let wrong = "{toolsUsed: [{server: s, toool: \"{row.tool}\"}]}";
    let spec = "  prompt: {inline: p}\n  rows: [{tool: add}]\n";
    assert!(
        loaded(spec, wrong, &[])
            .unwrap_err()
            .join(" ")
            .contains("unknown key `toool`")
    );
}

#[test]
fn values_fill_in_steps_as_they_are_and_patterns_as_text() {
    let spec = "  prompt: {inline: \"{row.q} {agent.nothing}\"}\n";
    let _ = loaded(spec, "{minToolCalls: 1}", &[]).unwrap_err();
    let spec = "  requires: [{mcpServer: s}]\n  prompt: {inline: \"{row.q}\"}\n  rows: [{q: \"{env.HOME} a.b\", n: 2}]\n  verify:\n    - s.look: {args: {n: \"{row.n}\", q: \"{row.q}\"}, expect: {content: {match: \"^{row.q}$\"}}}\n";
    let suite = loaded(spec, "{minToolCalls: 1}", &[]).unwrap();
    let case = &suite.cases[0];
    // The text of a row is data: braces in it are no template.
    let values = crate::suite::step::values::TemplateValues::default();
    assert_eq!(values.fill(&case.prompt).unwrap(), "{env.HOME} a.b");
    let crate::suite::step::Action::CallTool(step) = &case.verify[0].action else {
        panic!("{:?}", case.verify);
    };
    let args = values.fill_value(&step.args).unwrap();
    assert_eq!(args, serde_json::json!({"n": 2, "q": "{env.HOME} a.b"}));
    let pattern = step.content.as_ref().unwrap().pattern.as_ref().unwrap();
    let pattern = values.fill_pattern(pattern).unwrap();
    assert!(pattern.is_match("{env.HOME} a.b"));
    assert!(!pattern.is_match("{env.HOME} axb"));
}
