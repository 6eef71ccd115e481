//! The files that documents show are what they claim to be.

mod examples;

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
