//! The files that documents show are what they claim to be.

mod examples;
mod links;

use std::fs;
use std::path::Path;

use crate::proctor::proctor;

#[test]
fn the_page_on_models_names_every_key_of_a_script() {
    use proctor_core::suite::schema::{FileKind, schema};
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/models.md");
    let text = fs::read_to_string(path).unwrap();
    for (name, definition) in schema(FileKind::Script)["$defs"].as_object().unwrap() {
        let keys = definition["properties"].as_object().unwrap().keys();
        for key in keys.filter(|key| *key != "$schema" && *key != "kind") {
            let shown = [format!("`{key}`"), format!("{key}:")];
            assert!(shown.iter().any(|s| text.contains(s)), "`{key}` of {name}");
        }
    }
}

#[test]
fn the_page_on_suites_shows_what_init_writes() {
    let folder = tempfile::tempdir().unwrap();
    let output = proctor(["init", "my-suite"])
        .current_dir(folder.path())
        .output();
    assert_eq!(output.code, Some(0), "{output}");
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/suites.md");
    let text = fs::read_to_string(path).unwrap();
    let shown = output.stdout.lines().chain(output.stderr.lines());
    let mut lines = 0;
    for line in shown {
        assert!(text.contains(line), "{line}");
        lines += 1;
    }
    assert_eq!(lines, 5, "{output}");
}

/// The names below `Commands:` in the help of a command.
fn subcommands(words: &[&str]) -> Vec<String> {
    let output = proctor([words, &["--help"]].concat()).output();
    assert_eq!(output.code, Some(0), "{output}");
    let listed = output.stdout.split("Commands:\n").nth(1).unwrap_or("");
    let lines = listed.lines().take_while(|line| !line.is_empty());
    // What is indented further is the rest of a description.
    let lines = lines.filter_map(|line| line.strip_prefix("  "));
    let names = lines.filter_map(|line| line.split(' ').next());
    let is_name = |name: &&str| !matches!(*name, "" | "help");
    names.filter(is_name).map(str::to_owned).collect()
}

#[test]
fn the_page_on_commands_names_every_command() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/commands.md");
    let page = fs::read_to_string(path).unwrap();
    let rows: Vec<&str> = page.lines().filter(|line| line.starts_with('|')).collect();
    let mut count = 0;
    for command in subcommands(&[]) {
        let prefix = format!("`proctor {command} ");
        let nested = subcommands(&[&command]);
        for name in nested.iter().chain(nested.is_empty().then_some(&command)) {
            let is_row = |row: &&str| {
                let shown = row.contains(&prefix);
                let alone = row.contains(&format!("`proctor {command}`"));
                let mut words = row.split(|c: char| !c.is_ascii_lowercase());
                (shown || alone) && words.any(|word| word == name)
            };
            assert!(rows.iter().any(is_row), "{command} {name}");
            count += 1;
        }
    }
    assert!(count > 30, "{count}");
}

/// All commands of the page run on the files of the page, and print the figures of the page.
#[test]
fn the_page_on_ci_runs() {
    let folder = tempfile::tempdir().unwrap();
    examples::write("ci.md", folder.path());
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/ci.md");
    let text = fs::read_to_string(path).unwrap();
    let binary = Path::new(env!("CARGO_BIN_EXE_proctor")).parent().unwrap();
    let search = format!("{}:{}", binary.display(), std::env::var("PATH").unwrap());
    let mut printed = String::new();
    let mut commands = 0;
    for block in text.split("```sh\n").skip(1) {
        for line in block.split("```").next().unwrap().lines() {
            let output = std::process::Command::new("sh")
                .args(["-c", line])
                .env("PATH", &search)
                .current_dir(folder.path())
                .output()
                .unwrap();
            let stdout = String::from_utf8_lossy(&output.stdout).into_owned();
            let stderr = String::from_utf8_lossy(&output.stderr);
            assert!(output.status.success(), "{line}\n{stdout}\n{stderr}");
            printed.push_str(&stdout);
            commands += 1;
        }
    }
    assert_eq!(commands, 11);
    // All but the time, which is another one each time.
    let shown = text.lines().filter(|line| line.starts_with("estimate: "));
    let figures: Vec<&str> = shown
        .map(|line| line.rsplitn(3, ", ").nth(2).unwrap())
        .collect();
    assert_eq!(figures.len(), 3);
    for figure in figures {
        assert!(printed.contains(figure), "{figure}\n{printed}");
    }
}
