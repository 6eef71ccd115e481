//! `proctor result view`: a running trial as it goes on, and tab completion of what there is to view.

use std::io::{BufRead, BufReader, Read};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use proctor_e2e::suite::SuiteFixture;
use proctor_record::record::RunReader;
use serde_json::json;

const RULES: &str = r"
  - when: {results: 0}
    reply: {calls: [{tool: echo, arguments: {text: hi}}]}
  - reply: {text: all done}
";

/// A suite whose trial runs until the file `go` exists.
fn suite() -> SuiteFixture {
    let suite = SuiteFixture::new(RULES, &[]);
    let go = suite.path("go");
    let wait = format!("until test -e {}; do sleep 0.05; done", go.display());
    suite.task("wait", &json!({"verify": [{"script": {"inline": wait}}]}));
    suite
}

fn proctor(suite: &SuiteFixture, words: &[&str]) -> Command {
    let mut command = Command::new(proctor_e2e::proctor());
    command
        .args(words)
        .current_dir(suite.folder())
        .stdin(Stdio::null());
    command
}

/// Waits until a trial of the run has answered.
fn until_answered(suite: &SuiteFixture) {
    let deadline = Instant::now() + Duration::from_mins(3);
    loop {
        let run = RunReader::open(&suite.path("run")).ok();
        let trials = run.and_then(|run| run.trials().ok()).unwrap_or_default();
        let text = trials
            .first()
            .and_then(|trial| std::fs::read_to_string(&trial.path).ok());
        if text.is_some_and(|text| text.contains("agentAnswered")) {
            return;
        }
        assert!(Instant::now() < deadline, "the trial did not answer");
        std::thread::sleep(Duration::from_millis(20));
    }
}

#[test]
fn a_running_trial_is_followed_to_its_end() {
    let suite = suite();
    let mut check = proctor(&suite, &["check", "eval.yaml", "--record", "run"])
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    until_answered(&suite);
    let mut view = proctor(&suite, &["result", "view", "run", "wait", "--follow"])
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdout = BufReader::new(view.stdout.take().unwrap());
    let mut text = String::new();
    // It follows the trial before the trial may end.
    stdout.read_line(&mut text).unwrap();
    suite.write("go", "");
    stdout.read_to_string(&mut text).unwrap();
    assert_eq!(check.wait().unwrap().code(), Some(0));
    assert_eq!(view.wait().unwrap().code(), Some(0), "{text}");
    assert!(text.starts_with("RUNNING  wait"), "{text}");
    for part in ["Prompt", "fixture.echo", "all done", "PASS  verify_0"] {
        assert_eq!(text.matches(part).count(), 1, "{part} in {text}");
    }
    let last = text.lines().rfind(|line| line.starts_with("PASS")).unwrap();
    assert!(last.starts_with("PASS  wait"), "{text}");
    // It is over, so it can't be followed again.
    let again = proctor(&suite, &["result", "view", "run", "--follow"])
        .output()
        .unwrap();
    assert_eq!(again.status.code(), Some(4));
}

#[test]
fn a_killed_run_is_not_followed_for_ever() {
    let suite = suite();
    let mut check = proctor(&suite, &["check", "eval.yaml", "--record", "run"])
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    until_answered(&suite);
    check.kill().unwrap();
    check.wait().unwrap();
    let output = proctor(&suite, &["result", "view", "run", "wait", "--follow"])
        .output()
        .unwrap();
    let stderr = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(3), "{stderr}");
    assert!(
        stderr.contains("the run ended before its trial"),
        "{stderr}"
    );
}

#[test]
fn a_shell_is_told_runs_trials_and_numbers() {
    let suite = suite();
    suite.write("go", "");
    let checked = proctor(&suite, &["check", "eval.yaml", "-n", "2"])
        .output()
        .unwrap();
    assert_eq!(checked.status.code(), Some(0));
    let completed = |words: &[&str]| {
        let output = proctor(&suite, &["--", "proctor"])
            .args(words)
            .env("PROCTOR_COMPLETE", "fish")
            .output()
            .unwrap();
        let text = String::from_utf8(output.stdout).unwrap();
        let lines = text.lines().filter(|line| !line.starts_with('-'));
        lines.map(str::to_owned).collect::<Vec<String>>()
    };
    let runs = completed(&["result", "view", ""]);
    assert_eq!(runs.len(), 2, "{runs:?}");
    assert_eq!(runs[0], "latest");
    assert!(runs[1].ends_with("-suite"), "{runs:?}");
    assert_eq!(completed(&["check", "--resume", ""]), runs);
    for words in [
        &["result", "diff", ""][..],
        &["result", "diff", "latest", ""],
        &["check", "eval.yaml", "--no-regression", ""],
    ] {
        assert_eq!(completed(words), runs, "{words:?}");
    }
    assert_eq!(completed(&["result", "view", "latest", "wa"]), ["wait"]);
    assert_eq!(
        completed(&["result", "view", "latest", "wait", ""]),
        ["1", "2"]
    );
    for shell in ["bash", "zsh", "fish"] {
        let script = proctor(&suite, &["completions", shell]).output().unwrap();
        let script = String::from_utf8(script.stdout).unwrap();
        assert!(script.contains("PROCTOR_COMPLETE"), "{shell}: {script}");
    }
}

/// Bash splits words at colons. Readline is not needed to see what the script makes of that.
#[test]
fn bash_completes_a_name_behind_its_colon() {
    const TYPED: &str = r"
COMP_LINE='proctor result view latest a:b' COMP_WORDS=(proctor result view latest a : b)
COMP_POINT=${#COMP_LINE} COMP_CWORD=6 COMP_TYPE=9 COMP_WORDBREAKS=$' \t\n:'
_proctor proctor b :
printf '%s\n' ${COMPREPLY[@]}
";
    let suite = suite();
    suite.write("go", "");
    for name in ["a:bc", "a:bd"] {
        suite.task(name, &json!({}));
    }
    proctor(&suite, &["check", "eval.yaml"]).output().unwrap();
    let script = proctor(&suite, &["completions", "bash"]).output().unwrap();
    let script = String::from_utf8(script.stdout).unwrap();
    let folder = proctor_e2e::proctor();
    let folder = folder.parent().unwrap().display();
    let output = Command::new("bash")
        .args(["--norc", "--noprofile", "-c", &format!("{script}{TYPED}")])
        .env(
            "PATH",
            format!("{folder}:{}", std::env::var("PATH").unwrap()),
        )
        .current_dir(suite.folder())
        .output()
        .unwrap();
    let replies = String::from_utf8(output.stdout).unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert_eq!(replies, "bc\nbd\n", "{errors}");
}
