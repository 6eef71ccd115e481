//! The names and modes of files.

use super::*;

#[test]
fn file_names_are_safe_and_never_shared() {
    let check = |name: &str, expected: &str| assert_eq!(trial_stem(name), expected);
    check("add", "add");
    check("tasks-1_b.c", "tasks-1_b.c");
    check("a/b", "a-b-c14cddc033f6");
    check("a b", "a-b-c8687a08aa5d");
    check("A", "A-559aead08264");
    check("..", "_..-5ec1f7e700f3");
    check("-rf", "_-rf-686c39acd632");
    check("nul.txt", "nul.txt-7f3cbdd58ac5");
    check("", "_-e3b0c44298fc");
    let long = trial_stem(&"é/".repeat(500));
    assert!(long.len() < 100 && long.is_ascii(), "{long}");
}

#[cfg(unix)]
#[test]
fn only_the_owner_can_read_a_record() {
    use std::os::unix::fs::PermissionsExt;
    let parent = tempfile::tempdir().unwrap();
    let folder = parent.path().join("runs").join("one");
    let run = create(&folder);
    let mut trial = run.trial(0, "x", trial_started(1)).unwrap();
    frame(&mut trial, 0, &vec![b'x'; MAX_INLINE + 1]).unwrap();
    trial.end(0, passed()).unwrap();
    let mut seen = 0;
    for entry in walkdir::WalkDir::new(&folder) {
        let entry = entry.unwrap();
        let expected = if entry.file_type().is_dir() {
            0o700
        } else {
            0o600
        };
        let mode = entry.metadata().unwrap().permissions().mode() & 0o777;
        assert_eq!(mode, expected, "{}", entry.path().display());
        seen += 1;
    }
    assert_eq!(seen, 8);
}
