//! The files that documents show are what they claim to be.

use std::fs;
use std::path::Path;

use crate::proctor::proctor;

/// The YAML blocks of a document that start with `# NAME`, by that name.
fn files(document: &str) -> Vec<(String, String)> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../docs")
        .join(document);
    let text = fs::read_to_string(path).expect("the document is there");
    let blocks = text.split("```yaml\n").skip(1);
    let bodies = blocks.filter_map(|block| block.split("```").next());
    bodies
        .filter_map(|body| {
            let name = body.lines().next()?.strip_prefix("# ")?;
            Some((name.to_owned(), body.to_owned()))
        })
        .collect()
}

#[test]
fn the_files_of_the_page_on_models_validate_strictly() {
    let folder = tempfile::tempdir().unwrap();
    let files = files("models.md");
    for (name, body) in &files {
        fs::write(folder.path().join(name), body).unwrap();
    }
    let names: Vec<&str> = files.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(
        names,
        ["model.yaml", "agent.yaml", "faults.yaml", "judge.yaml"]
    );
    let output = proctor(["validate", "--strict"].into_iter().chain(names))
        .current_dir(folder.path())
        .output();
    assert_eq!(output.code, Some(0), "{output}");
}

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

/// All commands of the page run on the files of the page, and print the figures of the page.
#[test]
fn the_page_on_ci_runs() {
    let folder = tempfile::tempdir().unwrap();
    for (name, body) in files("ci.md") {
        if !name.starts_with('.') {
            fs::write(folder.path().join(name), body).unwrap();
        }
    }
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
