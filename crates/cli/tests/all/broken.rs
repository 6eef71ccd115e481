//! Each broken file under `tests/broken` gives its own message.

use std::fs;
use std::path::{Path, PathBuf};

use crate::proctor::proctor;

fn broken_files() -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/broken");
    let mut files: Vec<PathBuf> = fs::read_dir(folder)
        .expect("the broken files are there")
        .filter_map(|entry| Some(entry.ok()?.path()))
        .filter(|path| path.is_file())
        .collect();
    files.sort();
    files
}

#[test]
fn every_broken_file_gives_its_own_message() {
    let files = broken_files();
    assert!(files.len() >= 40, "only {} broken files", files.len());
    for path in files {
        let name = path.file_name().unwrap().to_str().unwrap();
        let run = proctor(["validate", name])
            .current_dir(path.parent().unwrap())
            .output();
        insta::with_settings!({snapshot_path => "snapshots/broken", prepend_module_to_snapshot => false, omit_expression => true}, {
            insta::assert_snapshot!(path.file_stem().unwrap().to_str().unwrap(), run.to_string());
        });
    }
}
