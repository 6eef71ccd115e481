//! The suite that `docs/suites.md` shows runs as printed.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use proctor_e2e::session::Session;
use proctor_record::event::{Actor, EventKind, Outcome};

use crate::servers;

/// The YAML blocks of the page that start with `# NAME`, by that name.
fn files() -> Vec<(String, String)> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/suites.md");
    let text = fs::read_to_string(path).unwrap();
    let blocks = text.split("```yaml\n").skip(1);
    let bodies = blocks.filter_map(|block| block.split("```").next());
    let named = bodies.filter_map(|body| {
        let name = body.lines().next()?.strip_prefix("# ")?;
        (!name.contains(' ')).then(|| (name.to_owned(), body.to_owned()))
    });
    named.collect()
}

#[test]
fn the_suite_of_the_page_on_suites_passes() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path().canonicalize().unwrap();
    for (name, text) in files() {
        let path = folder.join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
    // The prompt names the folder of the trial.
    let rules = r"kind: Script
rules:
  - when: {prompt: 'in (\S+)\?', results: 0}
    reply: {calls: [{tool: list_directory, arguments: {path: '{match.1}'}}]}
  - when: {prompt: 'into (\S+)\.$', results: 1}
    reply: {calls: [{tool: write_file, arguments: {path: '{match.1}', content: '1'}}]}
  - reply: {text: There is one file.}
";
    fs::write(folder.join("model.yaml"), rules).unwrap();
    // Stands for `npx -y PACKAGE`, with the installed package.
    let server = servers::node("mcp-server-filesystem");
    let bin = folder.join("bin");
    fs::create_dir(&bin).unwrap();
    let npx = bin.join("npx");
    fs::write(&npx, format!("#!/bin/sh\nshift 2\nexec {server} \"$@\"\n")).unwrap();
    fs::set_permissions(&npx, fs::Permissions::from_mode(0o755)).unwrap();
    let path = format!("{}:{}", bin.display(), std::env::var("PATH").unwrap());
    let model = format!("scripted:{}", folder.join("model.yaml").display());
    let eval = folder.join("eval.yaml").display().to_string();
    let seen = Session::new(&["check", &eval, "--model", &model])
        .env("PATH", &path)
        .run();
    assert_eq!(seen.code, Some(0), "{}\n{}", seen.stdout, seen.stderr);
    assert_eq!(seen.outcome(), Some(Outcome::Passed));
    let opened = seen.events.iter().filter(|event| {
        matches!(&event.event, EventKind::ConnectionOpened(opened) if opened.actor == Actor::Loop)
    });
    assert_eq!(opened.count(), 1);
}
