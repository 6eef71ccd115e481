//! `proctor evals` on servers that say what they are told: what is printed, what is asked, what is called.

mod canned;
mod consent;
mod init;
mod list;
mod validate;

use std::path::Path;
use std::process::{ChildStdin, Command, Stdio};

/// The path of the binary, whose hidden server ships evals.
const PROCTOR: &str = env!("CARGO_BIN_EXE_proctor");

/// Runs the binary on a terminal, with keys typed into it; gives the exit code and what was shown.
fn on_a_terminal(folder: &Path, command: &str, keys: &str) -> (Option<i32>, String) {
    while_asked(folder, command, |stdin| {
        std::io::Write::write_all(stdin, keys.as_bytes()).expect("keys can be typed");
    })
}

/// Runs the binary on a terminal, and does something when it asks; gives the exit code and what was shown.
fn while_asked(
    folder: &Path,
    command: &str,
    act: impl FnOnce(&mut ChildStdin),
) -> (Option<i32>, String) {
    let mut child = Command::new("script")
        .args(["-qec", command, "/dev/null"])
        .current_dir(folder)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .expect("`script` is there");
    let mut stdin = child.stdin.take().expect("stdin is piped");
    let mut stdout = child.stdout.take().expect("stdout is piped");
    let mut shown = Vec::new();
    // What is typed too early would be echoed before there is a question.
    while !String::from_utf8_lossy(&shown).contains("[y/N] ") {
        let mut byte = [0];
        match std::io::Read::read(&mut stdout, &mut byte) {
            Ok(1) => shown.push(byte[0]),
            _ => break,
        }
    }
    act(&mut stdin);
    std::io::Read::read_to_end(&mut stdout, &mut shown).expect("the screen can be read");
    drop(stdin);
    let code = child.wait().expect("it ends").code();
    (code, String::from_utf8_lossy(&shown).into_owned())
}
