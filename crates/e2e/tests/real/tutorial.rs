//! The tutorial works as printed: its files, commands, exit codes and output, on the real server, in an empty
//! environment. `scripts/try-tutorial` does it; here `npx` starts the installed package, so that no network is needed.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::servers;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn read(path: &str) -> String {
    fs::read_to_string(root().join(path)).unwrap()
}

/// A folder with an `npx` that starts server-memory, whatever it is asked for.
fn npx() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("npx");
    let server = servers::node("mcp-server-memory");
    fs::write(&path, format!("#!/bin/sh\nexec {server}\n")).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    folder
}

#[test]
fn the_tutorial_works_as_printed() {
    let npx = npx();
    let output = Command::new(root().join("scripts/try-tutorial"))
        .arg("--bin")
        .arg(npx.path())
        .arg("--bin")
        .arg(proctor_e2e::proctor().parent().unwrap())
        .output()
        .unwrap();
    let shown = String::from_utf8_lossy(&output.stdout);
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{shown}\n{error}");
    assert!(shown.contains("the tutorial works: "), "{shown}");
    assert!(shown.contains("Regression: 10/10 → 0/10"), "{shown}");
}

#[test]
fn the_tutorial_names_the_server_that_is_tested() {
    let scripts = read("scripts/install-servers");
    let version = scripts.split(" memory=").nth(1).unwrap();
    let version = version.split_whitespace().next().unwrap();
    let named = format!("@modelcontextprotocol/server-memory@{version}\"");
    assert!(read("docs/tutorial.md").contains(&named), "{named}");
}
