//! Runs that the system gives little: few processes, a small stack.

use std::os::unix::fs::PermissionsExt;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use proctor_e2e::suite::SuiteFixture;
use serde_json::json;

fn suite() -> SuiteFixture {
    let rules = "  - when: {results: 0}\n    reply: {calls: [{tool: echo, arguments: {text: hi}}]}\n  \
                 - reply: {text: done}\n";
    let suite = SuiteFixture::new(rules, &[]);
    let assertions = json!({"toolsUsed": [{"server": "fixture", "tool": "echo"}]});
    suite.eval(&json!({}), &json!({"assertions": assertions}));
    suite.task("quick", &json!({}));
    suite
}

/// A shell that sets a limit, and becomes the command behind it.
fn limited(limit: &str) -> [String; 4] {
    let script = format!("ulimit {limit}; exec \"$@\"");
    ["bash", "-c", &script, "bash"].map(str::to_owned)
}

#[test]
fn too_few_processes_are_an_error_and_not_a_hang() {
    let suite = suite();
    // The limit does not hold for root; and another user must find the program and the suite.
    let program = suite.path("proctor");
    std::fs::copy(proctor_e2e::proctor(), &program).unwrap();
    for path in [suite.folder(), &program] {
        std::fs::set_permissions(path, PermissionsExt::from_mode(0o755)).unwrap();
    }
    let is_root = rustix::process::geteuid().is_root();
    let other_user = ["setpriv", "--reuid=65534", "--clear-groups"].map(str::to_owned);
    for processes in 1..=5 {
        let mut words: Vec<String> = Vec::new();
        words.extend(other_user.iter().filter(|_| is_root).cloned());
        words.extend(limited(&format!("-u {processes}")));
        words.push(program.display().to_string());
        words.extend(["check", "eval.yaml"].map(str::to_owned));
        let mut command = Command::new(&words[0]);
        command.args(&words[1..]).current_dir(suite.folder());
        let (code, said) = ended(&mut command);
        assert_eq!(code, Some(2), "{processes} processes: {said}");
        assert!(said.contains("can't start a thread"), "{said}");
        assert!(!said.contains("bug"), "{said}");
    }
}

/// The exit code and stderr of a command that must end soon.
fn ended(command: &mut Command) -> (Option<i32>, String) {
    let command = command.stdout(Stdio::null()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let deadline = Instant::now() + Duration::from_mins(3);
    while child.try_wait().unwrap().is_none() {
        if Instant::now() > deadline {
            child.kill().unwrap();
            panic!("it hangs");
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    let done = child.wait_with_output().unwrap();
    let said = String::from_utf8_lossy(&done.stderr).into_owned();
    (done.status.code(), said)
}

#[test]
fn a_small_stack_is_enough() {
    let suite = suite();
    let shell = limited("-s 64");
    let shell: Vec<&str> = shell.iter().map(String::as_str).collect();
    let seen = suite.check(&[]).under(&shell).run();
    assert_eq!(seen.code, Some(0), "{}", seen.stderr);
    assert!(seen.stdout.contains("PASS"), "{}", seen.stdout);
}
