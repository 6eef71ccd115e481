//! `proctor evals init` on real servers: what it writes is valid, and passes when it is run.

use std::path::Path;
use std::process::{Command, Output};

use serde_json::Value;

use crate::servers::{self, RealServer, filesystem, git, memory};

fn proctor(words: &[&str], server: &RealServer, place: &Path) -> Output {
    let mut command = Command::new(proctor_e2e::proctor());
    command.args(words).current_dir(place);
    if let Some((name, value)) = &server.env {
        command.env(name, value).args(["--pass-env", name]);
    }
    command.arg("--").args(&server.command);
    command.output().expect("proctor starts")
}

fn everything(_: &Path) -> RealServer {
    servers::everything()
}

fn time(_: &Path) -> RealServer {
    servers::time()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// Writes evals, looks for mistakes in them, and runs those that need no model. Gives how many passed.
fn check(server: &RealServer, place: &Path) -> usize {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("evals.yaml").display().to_string();
    let written = proctor(&["evals", "init", "--yes", "--out", &file], server, place);
    assert!(written.status.success(), "{}", text(&written.stderr));
    let valid = proctor(&["evals", "validate", &file], server, place);
    assert!(valid.status.success(), "{}", text(&valid.stdout));
    let again = proctor(&["evals", "init", "--yes", "--out", &file], server, place);
    assert_eq!(again.status.code(), Some(2), "a file was overwritten");
    let record = folder.path().join("run").display().to_string();
    let run = proctor(
        &[
            "evals",
            "run",
            "--yes",
            "--evals",
            &file,
            "--level",
            "execution",
            "--record",
            &record,
            "-o",
            "json",
        ],
        server,
        place,
    );
    // A server without a tool that says it only reads gets no such evals.
    if run.status.code() == Some(4) {
        return 0;
    }
    assert_eq!(run.status.code(), Some(0), "{}", text(&run.stdout));
    let document: Value = serde_json::from_slice(&run.stdout).unwrap();
    let results = document["results"].as_array().unwrap();
    assert!(results.iter().all(|result| result["passed"] == true));
    results.len()
}

#[test]
fn e38_what_is_written_for_real_servers_passes() {
    let folder = tempfile::tempdir().unwrap();
    let place = |name: &str| {
        let place = folder.path().join(name);
        std::fs::create_dir(&place).unwrap();
        place
    };
    let all = [
        ("everything", everything as fn(&Path) -> RealServer),
        ("files", filesystem),
        ("memory", memory),
        ("git", git),
        ("time", time),
    ];
    let passed: Vec<usize> = std::thread::scope(|scope| {
        let running = all.map(|(name, server)| {
            let place = place(name);
            scope.spawn(move || check(&server(&place), &place))
        });
        running.map(|one| one.join().unwrap()).to_vec()
    });
    assert!(passed.iter().sum::<usize>() > 10, "{passed:?}");
}
