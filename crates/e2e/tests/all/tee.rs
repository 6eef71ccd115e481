//! The tee.

use std::io::Write;
use std::process::{Command, Stdio};

#[test]
fn every_byte_is_passed_on_and_kept() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("session");
    let mut child = Command::new(proctor_e2e::tee())
        .arg(&file)
        .args(["--", "sh", "-c", "tr a-c A-C; exit 5"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    child
        .stdin
        .take()
        .unwrap()
        .write_all(b"a\xff\0b\r\nc")
        .unwrap();
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(5));
    assert_eq!(output.stdout, b"A\xff\0B\r\nC");
    assert_eq!(
        std::fs::read(file.with_extension("in")).unwrap(),
        b"a\xff\0b\r\nc"
    );
    assert_eq!(
        std::fs::read(file.with_extension("out")).unwrap(),
        b"A\xff\0B\r\nC"
    );
}
