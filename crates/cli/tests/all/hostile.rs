//! Files that are made to do harm: each ends in a clear error, in bounded memory.

use std::fs;
use std::path::Path;
use std::process::Command;

use crate::proctor::proctor;

/// Validates under a limit on the address space, so that a bomb ends in an allocation failure
/// instead of an error, and fails the test.
#[track_caller]
fn check(folder: &Path, file: &str, expected: &str) {
    let output = Command::new("sh")
        .args(["-c", r#"ulimit -v 300000; exec "$0" validate "$1""#])
        .args([env!("CARGO_BIN_EXE_proctor"), file])
        .current_dir(folder)
        .output()
        .expect("sh starts");
    let stdout = String::from_utf8_lossy(&output.stdout);
    assert_eq!(output.status.code(), Some(2), "{stdout}");
    assert!(stdout.contains(expected), "{stdout}");
    assert!(stdout.len() < 500_000, "{} bytes of output", stdout.len());
}

#[test]
fn bombs_end_in_a_clear_error() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str, text: &str| fs::write(folder.path().join(name), text).unwrap();

    let sparse = fs::File::create(folder.path().join("large.yaml")).unwrap();
    sparse.set_len(100 << 20).unwrap();
    check(
        folder.path(),
        "large.yaml",
        "error: `large.yaml` is larger than 8 MiB",
    );

    at("deep.yaml", &format!("a: {}", "[".repeat(10_000)));
    check(
        folder.path(),
        "deep.yaml",
        "error: lists and maps are nested deeper than 100 levels",
    );

    at("deep-block.yaml", &"- ".repeat(10_000));
    check(
        folder.path(),
        "deep-block.yaml",
        "error: lists and maps are nested deeper than 100 levels",
    );

    let mut laughs = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n".to_owned();
    for level in 1..20 {
        let alias = format!("*a{}, ", level - 1).repeat(10);
        laughs.push_str(&format!("a{level}: &a{level} [{alias}]\n"));
    }
    at("laughs.yaml", &laughs);
    check(
        folder.path(),
        "laughs.yaml",
        "error: the file contains more than 200000 values",
    );

    at("wide.yaml", &format!("[{}]", "a,".repeat(3 << 20)));
    check(
        folder.path(),
        "wide.yaml",
        "error: the file contains more than 200000 values",
    );

    let mut keys = "kind: Eval\n".to_owned();
    for key in 0..90_000 {
        keys.push_str(&format!("key{key}: 1\n"));
    }
    at("keys.yaml", &keys);
    check(folder.path(), "keys.yaml", "more problems\n");

    let one_line = format!(
        "{{\"kind\": \"Agent\", \"x\": \"{}\", \"metadata\": 5}}",
        "é".repeat(1 << 20)
    );
    at("one-line.json", &one_line);
    check(
        folder.path(),
        "one-line.json",
        "error: expected a map, found the number `5`",
    );
}

#[test]
fn what_is_no_file_is_not_waited_for() {
    let folder = tempfile::tempdir().unwrap();
    let fifo = folder.path().join("fifo.yaml");
    assert!(
        Command::new("mkfifo")
            .arg(&fifo)
            .status()
            .unwrap()
            .success()
    );
    check(
        folder.path(),
        "fifo.yaml",
        "error: `fifo.yaml` is not a regular file",
    );
    std::os::unix::fs::symlink("loop.yaml", folder.path().join("loop.yaml")).unwrap();
    check(
        folder.path(),
        "loop.yaml",
        "error: `loop.yaml` can't be read",
    );
    // Readable by its permissions, yet reading fails.
    check(
        folder.path(),
        "/proc/self/mem",
        "error: `/proc/self/mem` can't be read",
    );
    check(
        folder.path(),
        "nowhere/a.yaml",
        "hint: the folder `nowhere` does not exist",
    );
}

#[test]
fn a_closed_pipe_is_a_quiet_end() {
    let folder = tempfile::tempdir().unwrap();
    let mut keys = "kind: Eval\n".to_owned();
    for key in 0..2_000 {
        keys.push_str(&format!("key{key}: 1\n"));
    }
    fs::write(folder.path().join("a.yaml"), keys).unwrap();
    let output = Command::new("sh")
        .args([
            "-c",
            r#""$0" validate a.yaml | head -n 1"#,
            env!("CARGO_BIN_EXE_proctor"),
        ])
        .current_dir(folder.path())
        .output()
        .unwrap();
    assert_eq!(String::from_utf8_lossy(&output.stderr), "");
}

#[test]
fn what_a_file_says_can_not_reach_the_terminal() {
    let folder = tempfile::tempdir().unwrap();
    let name = "a\u{1b}[31m\u{202e}.yaml";
    fs::write(
        folder.path().join(name),
        "kind: Eval\nmetadata: {name: \"\u{9b}31m\u{7f}\u{200b}\"}\n\"\u{2066}key\": 1\n",
    )
    .unwrap();
    let output = proctor(["validate", name])
        .current_dir(folder.path())
        .output();
    let hidden = |c: char| c != '\n' && proctor_core::printable::is_hidden(c);
    assert!(!output.stdout.contains(hidden), "{output}");
    assert!(output.stdout.contains("\\u{1b}[31m"), "{output}");
}
