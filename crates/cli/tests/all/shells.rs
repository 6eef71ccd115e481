//! Completions and man pages, for every shell and every command.

use std::path::Path;
use std::process::Command;

use crate::proctor::proctor;

#[test]
fn there_are_completions_for_five_shells() {
    for shell in ["bash", "zsh", "fish", "powershell", "elvish"] {
        let output = proctor(["completions", shell]).output();
        assert_eq!(output.code, Some(0), "{output}");
        // The script asks the program, so it can't be out of date.
        assert!(output.stdout.contains("PROCTOR_COMPLETE"), "{output}");
    }
    let output = proctor(["completions", "tcsh"]).output();
    assert_eq!(output.code, Some(2), "{output}");
    assert!(output.stderr.contains("elvish"), "{output}");
}

/// The arguments of a shell that make it load the script in a file.
fn loading(shell: &str, script: &Path) -> Vec<String> {
    let script = script.display();
    match shell {
        "zsh" => vec![
            "-fc".to_owned(),
            format!("autoload -Uz compinit; compinit -D; source {script}"),
        ],
        _ => vec![format!("{script}")],
    }
}

/// Elvish has completions only at a terminal, and PowerShell is rarely installed.
#[test]
fn shells_load_their_completions() {
    let folder = tempfile::tempdir().unwrap();
    let mut loaded = Vec::new();
    for shell in ["bash", "zsh", "fish"] {
        let script = folder.path().join(shell);
        let output = proctor(["completions", shell]).output();
        std::fs::write(&script, output.stdout).unwrap();
        let mut command = Command::new(shell);
        let command = command.args(loading(shell, &script));
        match command.env("HOME", folder.path()).output() {
            Ok(run) => {
                let said = String::from_utf8_lossy(&run.stderr);
                assert!(run.status.success() && said.is_empty(), "{shell}: {said}");
                loaded.push(shell);
            }
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
            Err(error) => panic!("{shell}: {error}"),
        }
    }
    assert!(loaded.contains(&"bash"), "{loaded:?}");
}

#[test]
fn each_command_has_a_man_page_with_its_examples() {
    let folder = tempfile::tempdir().unwrap();
    let output = proctor(["man", "man/man1"])
        .current_dir(folder.path())
        .output();
    assert_eq!(output.code, Some(0), "{output}");
    let page = |name: &str| {
        let path = folder.path().join("man/man1").join(name);
        std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{name}: {error}"))
    };
    for name in ["proctor.1", "proctor-check.1", "proctor-result-view.1"] {
        let text = page(name);
        assert!(text.contains(".TH "), "{name}: {text}");
        let examples = text.split_once(".SH EXAMPLES\n.nf\n");
        let examples = examples.unwrap_or_else(|| panic!("{name}: {text}")).1;
        assert!(examples.trim_start().starts_with("proctor "), "{examples}");
    }
    let pages = std::fs::read_dir(folder.path().join("man/man1")).unwrap();
    let pages = pages.count();
    let expected = format!("{pages} pages written to man/man1\n");
    assert_eq!(output.stderr, expected);
    // Commands for programs have none.
    assert!(!folder.path().join("man/man1/proctor-man.1").exists());
    assert!(page("proctor.1").contains("proctor\\-check(1)"));
}

#[test]
fn a_man_folder_that_can_not_be_written_is_an_error() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("file"), "").unwrap();
    let output = proctor(["man", "file/man1"])
        .current_dir(folder.path())
        .output();
    assert_eq!(output.code, Some(2), "{output}");
    assert!(
        output.stderr.contains("can't create `file/man1`"),
        "{output}"
    );
}
