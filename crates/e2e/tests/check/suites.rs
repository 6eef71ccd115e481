//! Several suites in one command: one plan, one budget, one table, the worst exit code.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use proctor_e2e::session::{Session, SessionOutcome};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};

/// A model that calls `echo` unless the task is bad, hangs in slow tasks, and has no key in others.
const RULES: &str = r"
  - when: {prompt: bad}
    reply: {text: I would rather not., usage: {input: 90, output: 10}}
  - when: {prompt: outage}
    reply: {error: {kind: key, detail: no such key}}
  - when: {prompt: slow, results: 0}
    reply: {calls: [{tool: sleep, arguments: {ms: 600000}}]}
  - when: {results: 0}
    reply: {calls: [{tool: echo, arguments: {text: hi}}], usage: {input: 90, output: 10}}
  - reply: {text: done, usage: {input: 90, output: 10}}
";

/// A folder with suites.
struct Suites {
    folder: tempfile::TempDir,
}

impl Suites {
    /// Creates suites with these tasks; a task is as good as its name.
    fn new(suites: &[(&str, &[&str])]) -> Self {
        let this = Self {
            folder: tempfile::tempdir().unwrap(),
        };
        for (name, tasks) in suites {
            this.add(name, tasks);
        }
        this
    }

    fn add(&self, name: &str, tasks: &[&str]) {
        self.write(
            &format!("{name}/model.yaml"),
            &format!("kind: Script\nrules:\n{RULES}"),
        );
        let server = json!({"fixture": {"command": proctor_e2e::fixture()}});
        let servers = json!({"mcpServers": server}).to_string();
        self.write(&format!("{name}/mcp.json"), &servers);
        let assertions = json!({"toolsUsed": [{"server": "fixture", "tool": "echo"}]});
        let eval = json!({"kind": "Eval", "metadata": {"name": name}, "config": {
            "agent": {"type": "builtin.llm-agent", "model": "scripted:model.yaml"},
            "mcpConfigFile": "mcp.json",
            "taskSets": [{"glob": "tasks/*.yaml", "assertions": assertions}],
        }});
        self.write(&format!("{name}/eval.yaml"), &eval.to_string());
        for task in tasks {
            let labels = json!({"name": task, "labels": {"task": task}});
            let task_file = json!({"kind": "Task", "apiVersion": "mcpchecker/v1alpha2",
                "metadata": labels, "spec": {"prompt": {"inline": task}}});
            self.write(&format!("{name}/tasks/{task}.yaml"), &task_file.to_string());
        }
    }

    fn write(&self, name: &str, text: &str) {
        let path = self.path(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// `proctor check` on the whole folder.
    fn check(&self, words: &[&str]) -> SessionOutcome {
        let folder = self.folder.path().to_str().unwrap();
        Session::new(&[&["check", folder], words].concat()).run()
    }
}

fn verify(record: &Path) -> (Option<i32>, String) {
    let mut command = Command::new(proctor_e2e::proctor());
    let output = command
        .args(["result", "verify"])
        .arg(record)
        .output()
        .unwrap();
    (
        output.status.code(),
        String::from_utf8(output.stdout).unwrap(),
    )
}

#[test]
fn the_worst_exit_code_counts() {
    for (suites, code) in [
        (&[("a", &["good"][..]), ("b", &["fine"])][..], 0),
        (&[("a", &["good"]), ("b", &["bad"])], 1),
        (&[("a", &["outage"]), ("b", &["good"])], 3),
        (&[("a", &["outage"]), ("b", &["bad"]), ("c", &["good"])], 1),
        (&[("a", &["bad"])], 1),
    ] {
        let seen = Suites::new(suites).check(&[]);
        assert_eq!(seen.code, Some(code), "{}{}", seen.stdout, seen.stderr);
    }
}

#[test]
fn each_suite_has_a_record_and_all_share_a_plan_and_a_table() {
    let suites = Suites::new(&[("a", &["good", "fine"]), ("b", &["bad"])]);
    let seen = suites.check(&["-n", "2"]);
    assert_eq!(seen.code, Some(1), "{}", seen.stderr);
    assert!(
        seen.stderr.starts_with("2 suites, 3 cases, 6 trials\n"),
        "{}",
        seen.stderr
    );
    assert!(seen.stderr.contains("6/6 "), "{}", seen.stderr);
    assert!(seen.stderr.contains("b: bad #2"), "{}", seen.stderr);
    assert!(
        seen.stdout
            .ends_with("\n2 suites: 1 met, 1 missed; exit code 1\n"),
        "{}",
        seen.stdout
    );
    for (name, code) in [("a", 0), ("b", 1)] {
        let (found, text) = verify(&seen.record.join(name));
        assert_eq!(found, Some(code), "{text}");
        let again = Session::new(&["check"])
            .resume(&seen.record.join(name))
            .run();
        assert_eq!(again.code, Some(code), "{}", again.stderr);
        assert!(
            again.stderr.contains("nothing to resume"),
            "{}",
            again.stderr
        );
    }
}

#[test]
fn documents_hold_all_suites() {
    let suites = Suites::new(&[("a", &["good"]), ("b", &["bad"])]);
    let (out, junit) = (suites.path("out.json"), suites.path("out.xml"));
    let words = [
        "-o",
        "json",
        "--out",
        out.to_str().unwrap(),
        "--junit",
        junit.to_str().unwrap(),
    ];
    let seen = suites.check(&words);
    let json: Value = serde_json::from_str(&seen.stdout).unwrap();
    assert_eq!(json["proctor"]["exit"]["code"], 1);
    let codes: Vec<&Value> = json["suites"].as_array().unwrap().iter().collect();
    let codes = codes.iter().map(|suite| &suite["proctor"]["exit"]["code"]);
    assert_eq!(codes.collect::<Vec<_>>(), [&json!(0), &json!(1)]);
    let written: Value = serde_json::from_slice(&std::fs::read(out).unwrap()).unwrap();
    assert_eq!(written, json);
    let xml = std::fs::read_to_string(junit).unwrap();
    assert!(
        xml.contains(r#"<testsuites name="proctor" tests="2" failures="1""#),
        "{xml}"
    );
    assert_eq!(xml.matches("<testsuite ").count(), 2, "{xml}");
}

#[test]
fn a_suite_that_cant_be_loaded_stops_all_and_all_errors_are_told() {
    let suites = Suites::new(&[("a", &["good"]), ("b", &["good"]), ("c", &["good"])]);
    suites.write("b/eval.yaml", "kind: Eval\nconfig: [\n");
    suites.write(
        "c/eval.yaml",
        "kind: Eval\nmetadata: {name: c}\nconfig: {agnet: x}\n",
    );
    let seen = suites.check(&["-o", "json"]);
    assert_eq!(seen.code, Some(2), "{}", seen.stderr);
    assert!(!seen.record.exists());
    for words in ["b/eval.yaml", "c/eval.yaml", "agnet"] {
        assert!(seen.stderr.contains(words), "{}", seen.stderr);
    }
    let json: Value = serde_json::from_str(&seen.stdout).unwrap();
    assert_eq!(json["proctor"]["exit"]["code"], 2);
    let empty = tempfile::tempdir().unwrap();
    let seen = Session::new(&["check", empty.path().to_str().unwrap()]).run();
    assert_eq!(seen.code, Some(2));
    assert!(
        seen.stderr.contains("contains no eval file"),
        "{}",
        seen.stderr
    );
}

#[test]
fn a_selection_is_about_all_suites_and_must_select_something() {
    let suites = Suites::new(&[("a", &["good"]), ("b", &["fine"])]);
    let seen = suites.check(&["-r", "^good$"]);
    assert_eq!(seen.code, Some(0), "{}", seen.stderr);
    assert!(
        seen.stderr
            .contains("b: not run: no case of `b` is selected"),
        "{}",
        seen.stderr
    );
    assert!(
        seen.stdout.contains("1 met, 1 not selected"),
        "{}",
        seen.stdout
    );
    let seen = suites.check(&["-r", "^absent$"]);
    assert_eq!(seen.code, Some(4), "{}", seen.stderr);
    // Without a selection, a suite without cases is a mistake.
    suites.add("c", &[]);
    let seen = suites.check(&[]);
    assert!(
        matches!(seen.code, Some(2 | 4)),
        "{:?} {}",
        seen.code,
        seen.stderr
    );
    assert!(!seen.record.exists());
}

#[test]
fn all_suites_share_the_budget_and_each_is_resumable() {
    let suites = Suites::new(&[("a", &["good"]), ("b", &["good"])]);
    let seen = suites.check(&["-n", "2", "--budget-tokens", "350"]);
    assert_eq!(seen.code, Some(3), "{}", seen.stdout);
    assert!(
        seen.stdout.contains("the budget of 350 tokens is spent"),
        "{}",
        seen.stdout
    );
    let b = seen.record.join("b");
    assert!(std::fs::read_dir(b.join("trials")).map_or(0, Iterator::count) == 0);
    assert_eq!(verify(&b).0, Some(3));
    let again = Session::new(&["check"]).resume(&b).run();
    assert_eq!(again.code, Some(0), "{}", again.stderr);
    assert_eq!(verify(&b).0, Some(0));
}

#[test]
fn fail_fast_stops_all_suites() {
    let suites = Suites::new(&[("a", &["bad"]), ("b", &["good"])]);
    let seen = suites.check(&["-n", "2", "--fail-fast"]);
    assert_eq!(seen.code, Some(1), "{}", seen.stdout);
    assert_eq!(verify(&seen.record.join("b")).0, Some(3));
}

#[test]
fn an_interrupt_ends_all_suites() {
    let suites = Suites::new(&[("a", &["slow"]), ("b", &["good"])]);
    let record = suites.path("record");
    let child = Command::new(proctor_e2e::proctor())
        .arg("check")
        .args([suites.path("a/eval.yaml"), suites.path("b/eval.yaml")])
        .arg("--record")
        .arg(&record)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let deadline = Instant::now() + Duration::from_mins(3);
    let calls = || {
        let trials = std::fs::read_dir(record.join("a/trials"))
            .into_iter()
            .flatten();
        let mut texts = trials.filter_map(|entry| std::fs::read_to_string(entry.ok()?.path()).ok());
        texts.any(|text| text.contains("tools/call"))
    };
    while !calls() {
        assert!(Instant::now() < deadline, "no call was recorded");
        std::thread::sleep(Duration::from_millis(5));
    }
    kill_process(Pid::from_child(&child), Signal::INT).unwrap();
    let output = child.wait_with_output().unwrap();
    let stdout = String::from_utf8(output.stdout).unwrap();
    assert_eq!(output.status.code(), Some(130), "{stdout}");
    assert!(
        stdout.contains("2 suites: 2 interrupted; exit code 130"),
        "{stdout}"
    );
    let again = Session::new(&["check"]).resume(&record.join("b")).run();
    assert_eq!(again.code, Some(0), "{}", again.stderr);
}

/// Suites of single trials, and a base in which all passed.
fn with_base(cases: usize) -> (Suites, SessionOutcome) {
    let names: Vec<String> = (0..cases).map(|number| format!("case{number}")).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let suites = Suites::new(&[("a", &names), ("b", &names)]);
    let base = suites.check(&["-j", "4"]);
    assert_eq!(base.code, Some(0), "{}", base.stderr);
    let rules = format!("  - when: {{prompt: case}}\n    reply: {{text: no}}\n{RULES}");
    suites.write("a/model.yaml", &format!("kind: Script\nrules:\n{rules}"));
    (suites, base)
}

#[test]
fn regressions_are_corrected_over_suites() {
    // Six cases that all fail now: p = 0.031 alone, and 0.063 after Holm over two suites.
    let (suites, base) = with_base(6);
    let alone = base.record.join("a");
    let file = suites.path("a/eval.yaml");
    let words = [
        "check",
        file.to_str().unwrap(),
        "--no-regression",
        alone.to_str().unwrap(),
    ];
    let seen = Session::new(&words).run();
    assert_eq!(seen.code, Some(1), "{}", seen.stdout);
    let bases = base.record.to_str().unwrap();
    let seen = suites.check(&["-j", "4", "--no-regression", bases]);
    assert_eq!(seen.code, Some(0), "{}", seen.stdout);
    let (code, text) = verify(&seen.record.join("a"));
    assert_eq!(code, Some(0), "{text}");
    assert!(text.contains("after Holm over 2 suites"), "{text}");
    // Ten cases are a regression in any company.
    let (suites, base) = with_base(10);
    let bases = base.record.to_str().unwrap();
    let seen = suites.check(&["-j", "4", "--no-regression", bases]);
    assert_eq!(seen.code, Some(1), "{}", seen.stdout);
    // A suite without a base, and a base that is one run, can't answer.
    for bases in [base.record.join("a"), suites.path("a")] {
        let seen = suites.check(&["--no-regression", bases.to_str().unwrap()]);
        assert_eq!(seen.code, Some(2), "{}", seen.stderr);
        assert!(!seen.record.exists());
    }
}

/// Runs all suites, each case eight times.
fn recorded(suites: &Suites) -> SessionOutcome {
    let seen = suites.check(&["-n", "8"]);
    assert!(matches!(seen.code, Some(0 | 1)), "{}", seen.stderr);
    seen
}

fn diff(base: &Path, new: &Path, words: &[&str]) -> (Option<i32>, String, String) {
    let mut command = Command::new(proctor_e2e::proctor());
    let output = command
        .args(["result", "diff"])
        .args([base, new])
        .args(words)
        .output()
        .unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    (
        output.status.code(),
        text(output.stdout),
        text(output.stderr),
    )
}

#[test]
fn folders_of_runs_are_compared_suite_by_suite() {
    let suites = Suites::new(&[("a", &["good"]), ("b", &["fine"])]);
    let base = recorded(&suites);
    // The second suite gets worse, the first stays as it is.
    suites.write(
        "b/model.yaml",
        "kind: Script\nrules:\n  - reply: {text: no}\n",
    );
    let new = recorded(&suites);
    let (base, new) = (&base.record, &new.record);
    let (code, text, _) = diff(base, new, &[]);
    assert_eq!(code, Some(1), "{text}");
    assert!(text.contains("== a\n") && text.contains("== b\n"), "{text}");
    assert!(
        text.ends_with("a: no regression shown\nb: regression\n2 suites compared; exit code 1\n"),
        "{text}"
    );
    let (code, text, _) = diff(base, new, &["-o", "json"]);
    assert_eq!(code, Some(1), "{text}");
    let value: Value = serde_json::from_str(&text).unwrap();
    assert_eq!((&value["exit"], &value["missing"]), (&json!(1), &json!([])));
    assert_eq!(value["suites"][1]["suite"], "b");
    assert_eq!(value["suites"][1]["answer"], "regression");
    let (code, text, _) = diff(base, new, &["-o", "markdown"]);
    assert_eq!(code, Some(1), "{text}");
    assert!(
        text.starts_with("- `a`: no regression shown\n- `b`: regression\n"),
        "{text}"
    );
    // The other way round, it got better.
    assert_eq!(diff(new, base, &[]).0, Some(0));
    // One run and a folder of runs can't be paired.
    let (code, _, error) = diff(&base.join("a"), new, &[]);
    assert_eq!(code, Some(2), "{error}");
}

#[test]
fn a_suite_that_is_gone_is_no_success() {
    let suites = Suites::new(&[("a", &["good"]), ("b", &["fine"])]);
    let (base, new) = (recorded(&suites), recorded(&suites));
    let (base, new) = (&base.record, &new.record);
    assert_eq!(diff(base, new, &[]).0, Some(0));
    // The same record twice proves nothing.
    assert_eq!(diff(base, base, &[]).0, Some(2));
    std::fs::remove_file(new.join("b/run.jsonl")).unwrap();
    let (code, text, _) = diff(base, new, &[]);
    assert_eq!(code, Some(3), "{text}");
    assert!(
        text.contains("b: inconclusive: NEW has no run of it\n"),
        "{text}"
    );
    let (code, text, _) = diff(new, base, &[]);
    assert_eq!(code, Some(0), "{text}");
    assert!(text.contains("b: new, not compared\n"), "{text}");
    // Two runs of one suite: which one is meant is not known.
    std::fs::rename(new.join("a"), base.join("again")).unwrap();
    let (code, _, error) = diff(base, new, &[]);
    assert_eq!(code, Some(2), "{error}");
}
