//! On GitHub Actions: annotations and a job summary, and no text from outside that is a command to the runner.

use std::fs;
use std::process::{Command, Output};

use proctor_e2e::suite::SuiteFixture;
use serde_json::json;

/// Commands to the runner, as a server, a model and a script may write them.
const HOSTILE: &str =
    "::error::pwned\n::stop-commands::x\n  ::add-mask::a\nz ##[error]pwned ##[add-mask]b";

const EVAL: &str = "\
kind: Eval
metadata:
  name: suite
config:
  agent: {type: builtin.llm-agent, model: 'scripted:model.yaml'}
  mcpConfigFile: mcp.json
  taskSets:
    - glob: tasks/*.yaml
      assertions:
        maxToolCalls: 5
        toolsUsed:
          - {server: fixture, tool: never}
";

/// A suite in which everything that can write does so, and a case fails.
fn suite() -> SuiteFixture {
    let rules = json!([
        {"when": {"results": 0}, "reply": {"calls": [{"tool": "echo", "arguments": {"text": HOSTILE}}]}},
        {"reply": {"text": HOSTILE}},
    ]);
    let suite = SuiteFixture::new("", &[]);
    let script = json!({"kind": "Script", "rules": rules});
    suite.write("model.yaml", &script.to_string());
    suite.write("eval.yaml", EVAL);
    let print = format!("cat <<'END'\n{HOSTILE}\nEND\nexit 1");
    let step = json!({"script": {"inline": print}});
    suite.task("a,line=1::b", &json!({"verify": [step]}));
    suite
}

fn check(suite: &SuiteFixture, words: &[&str]) -> Output {
    Command::new(proctor_e2e::proctor())
        .args(["check", "eval.yaml"])
        .args(words)
        .env("GITHUB_ACTIONS", "true")
        .env("GITHUB_WORKSPACE", suite.folder())
        .env("GITHUB_STEP_SUMMARY", suite.path("summary.md"))
        .current_dir(suite.folder())
        .output()
        .unwrap()
}

/// The lines that GitHub's runner takes as commands: it looks for `::` behind blanks, and for `##[` anywhere.
fn commands(output: &Output) -> Vec<String> {
    let mut all = Vec::new();
    for stream in [&output.stdout, &output.stderr] {
        let text = String::from_utf8(stream.clone()).unwrap();
        let lines = text.lines().map(str::to_owned);
        all.extend(
            lines.filter(|line| line.trim_start().starts_with("::") || line.contains("##[")),
        );
    }
    all
}

#[test]
fn a_failed_case_is_annotated_at_the_line_of_its_check() {
    let suite = suite();
    let output = check(&suite, &["-v"]);
    assert_eq!(output.status.code(), Some(1));
    let commands = commands(&output);
    let [command] = &commands[..] else {
        panic!("{commands:#?}");
    };
    let start =
        "::error file=eval.yaml,line=11,title=a%2Cline=1%3A%3Ab%3A 0/1 trials passed::failed: ";
    assert!(command.starts_with(start), "{command}");
    let stdout = String::from_utf8(output.stdout).unwrap();
    assert!(stdout.contains("toolsUsed (eval.yaml:11): "), "{stdout}");
    assert!(
        stdout.contains("verify_0 (script, tasks/a,line=1::b.yaml:1): "),
        "{stdout}"
    );
    assert!(stdout.contains("##\\[error]pwned"), "{stdout}");
    let summary = fs::read_to_string(suite.path("summary.md")).unwrap();
    assert!(
        summary.starts_with("### Proctor: gate missed in `suite`"),
        "{summary}"
    );
    assert!(
        summary.contains("| **missed** | `a,line=1::b` | 0/1 |"),
        "{summary}"
    );
    // A second run in the same step adds its summary.
    check(&suite, &[]);
    let both = fs::read_to_string(suite.path("summary.md")).unwrap();
    assert_eq!(both.matches("### Proctor").count(), 2, "{both}");
}

#[test]
fn nothing_is_written_for_github_if_it_is_turned_off() {
    let suite = suite();
    let output = check(&suite, &["--no-github"]);
    assert_eq!(output.status.code(), Some(1));
    assert_eq!(commands(&output), Vec::<String>::new());
    assert!(!suite.path("summary.md").exists());
}

#[test]
fn json_in_a_log_is_no_command_and_the_same_value() {
    let suite = suite();
    let output = check(&suite, &["--no-github", "-o", "json", "--out", "out.json"]);
    assert_eq!(commands(&output), Vec::<String>::new());
    let shown: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    let written = fs::read_to_string(suite.path("out.json")).unwrap();
    assert!(written.contains("##[error]"), "{written}");
    let written: serde_json::Value = serde_json::from_str(&written).unwrap();
    assert_eq!(shown, written);
}

#[test]
fn a_full_job_summary_is_a_warning() {
    let suite = suite();
    fs::write(suite.path("summary.md"), vec![b'x'; 1024 * 1024]).unwrap();
    let output = check(&suite, &[]);
    assert_eq!(output.status.code(), Some(1));
    let stderr = String::from_utf8(output.stderr).unwrap();
    assert!(stderr.contains("warning: no job summary"), "{stderr}");
    assert_eq!(
        fs::metadata(suite.path("summary.md")).unwrap().len(),
        1024 * 1024
    );
}
