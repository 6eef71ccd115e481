//! Repositories that try to leave their folder, to run programs, or to fill the disk.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};

use data_encoding::HEXLOWER;
use serde_json::json;

use crate::repository::{Repository, Stage, refused, said, task};

const FETCH: [&str; 3] = ["sources", "fetch", "eval.yaml"];

fn fetched(upstream: &Repository) -> Stage {
    upstream.release();
    let stage = Stage::at(&upstream.path().display().to_string());
    let (code, text) = said(&stage.proctor(&FETCH));
    assert_eq!(code, Some(0), "{text}");
    stage
}

#[test]
fn no_path_leaves_the_repository() {
    let outside = tempfile::tempdir().unwrap();
    let secret = outside.path().join("task.yaml");
    fs::write(&secret, task("good")).unwrap();
    let upstream = Repository::new();
    upstream.task("good");
    symlink(&secret, upstream.path().join("absolute.yaml")).unwrap();
    symlink(
        "../../../../../../../../../../etc",
        upstream.path().join("etc"),
    )
    .unwrap();
    upstream.write(
        "prompts/task.yaml",
        &task("good").replace("inline\":\"good", "file\":\"../etc/hostname"),
    );
    let stage = fetched(&upstream);
    let repo = json!({"repo": upstream.path(), "ref": "v1"});
    for path in [
        "../lock",
        "tasks/../../lock",
        "absolute.yaml",
        "etc/hostname",
        "/etc/hostname",
    ] {
        stage.eval(&repo, &json!({"path": path}));
        let expected = format!("`{path}` is outside the source `shared`");
        refused(&stage.proctor(&["validate", "eval.yaml"]), &expected);
        let seen = stage.check(&["--yes"]).run();
        assert_eq!(seen.code, Some(2), "{}", seen.stderr);
        assert!(seen.stderr.contains(&expected), "{}", seen.stderr);
    }
    stage.eval(&repo, &json!({"glob": "*.yaml"}));
    refused(
        &stage.proctor(&["validate", "eval.yaml"]),
        "is outside the source `shared`",
    );
    stage.eval(&repo, &json!({"path": "prompts/task.yaml"}));
    refused(
        &stage.proctor(&["validate", "eval.yaml"]),
        "`../etc/hostname` is outside the source `shared`",
    );
}

/// Makes a commit with entries that git itself would refuse to add, and releases it.
fn release_tree(upstream: &Repository, entries: &[(&str, &str, &str)]) {
    let mut tree = Vec::new();
    for (mode, name, object) in entries {
        tree.extend(format!("{mode} {name}\0").into_bytes());
        tree.extend(HEXLOWER.decode(object.as_bytes()).unwrap());
    }
    let words = ["hash-object", "-t", "tree", "--literally", "-w", "--stdin"];
    let tree = upstream.git_with(&words, &tree);
    let commit = upstream.git(&["commit-tree", "-m", "hostile", &tree]);
    upstream.git(&["tag", "--force", "v1", &commit]);
}

#[test]
fn a_commit_with_paths_that_leave_it_is_refused() {
    let upstream = Repository::new();
    upstream.task("good");
    upstream.release();
    let blob = upstream.git_with(&["hash-object", "-w", "--stdin"], b"touched");
    let target = tempfile::tempdir().unwrap();
    let link = target.path().display().to_string();
    let link = upstream.git_with(&["hash-object", "-w", "--stdin"], link.as_bytes());
    let stage = Stage::at(&upstream.path().display().to_string());
    let check = |entries: &[(&str, &str, &str)], expected: &str| {
        release_tree(&upstream, entries);
        refused(&stage.proctor(&FETCH), expected);
        assert_eq!((stage.lock(), stage.cached()), (String::new(), Vec::new()));
    };
    check(
        &[("100644", "..", &blob)],
        "the path `..` in the commit is not a path of a file",
    );
    check(
        &[("100644", "../../x", &blob)],
        "the path `../../x` in the commit",
    );
    check(
        &[("100644", ".git/config", &blob)],
        "the path `.git/config` in the commit",
    );
    check(
        &[("100644", ".GIT", &blob)],
        "the path `.GIT` in the commit",
    );
    // A link and a file below it.
    check(
        &[("120000", "a", &link), ("100644", "a/x", &blob)],
        "`a` can't be written",
    );
    assert_eq!(fs::read_dir(target.path()).unwrap().count(), 0);
}

#[test]
fn fetching_runs_no_hook_and_no_filter() {
    let upstream = Repository::new();
    upstream.task("good");
    upstream.write(".gitattributes", "* filter=evil\n");
    upstream.release();
    let home = tempfile::tempdir().unwrap();
    let mark = home.path().join("mark");
    let program = home.path().join("program");
    fs::write(
        &program,
        format!("#!/bin/sh\ntouch {}\ncat\n", mark.display()),
    )
    .unwrap();
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
    fs::create_dir_all(home.path().join("template/hooks")).unwrap();
    for name in ["reference-transaction", "post-checkout", "post-merge"] {
        symlink(&program, home.path().join("template/hooks").join(name)).unwrap();
    }
    let (program, home) = (program.display(), home.path().display());
    let config = format!(
        "[core]\n hooksPath = {home}/template/hooks\n fsmonitor = {program}\n[init]\n templateDir = {home}/template\n\
         [filter \"evil\"]\n smudge = {program}\n clean = {program}\n required = true\n"
    );
    fs::write(format!("{home}/.gitconfig"), config).unwrap();
    let stage = Stage::at(&upstream.path().display().to_string());
    let output = stage
        .command(&FETCH)
        .env("HOME", home.to_string())
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(0), "{}", said(&output).1);
    assert!(!mark.exists());
    assert_eq!(stage.check(&["--locked"]).run().code, Some(0));
}

#[test]
fn a_huge_file_is_refused() {
    let upstream = Repository::new();
    upstream.task("good");
    let file = fs::File::create(upstream.path().join("huge")).unwrap();
    file.set_len(257 << 20).unwrap();
    upstream.release();
    let stage = Stage::at(&upstream.path().display().to_string());
    refused(&stage.proctor(&FETCH), "`huge` is larger than 256 MiB");
    assert_eq!((stage.lock(), stage.cached()), (String::new(), Vec::new()));
}

#[test]
fn a_disk_that_is_full_leaves_nothing_behind() {
    let upstream = Repository::new();
    upstream.task("good");
    // Random bytes, which git can't make smaller.
    let mut noise = 0x9e37_79b9_u32;
    let bytes = std::iter::repeat_with(|| {
        noise ^= noise << 13;
        noise ^= noise >> 17;
        noise ^= noise << 5;
        noise.to_le_bytes()[0]
    });
    fs::write(
        upstream.path().join("noise"),
        bytes.take(2 << 20).collect::<Vec<u8>>(),
    )
    .unwrap();
    upstream.release();
    let stage = Stage::at(&upstream.path().display().to_string());
    // In blocks of 512 bytes.
    let limited = [
        "sh",
        "-c",
        "trap '' XFSZ; ulimit -f 1024; exec \"$0\" \"$@\"",
    ];
    let seen = stage.check(&["--yes"]).under(&limited).run();
    assert_eq!(seen.code, Some(2), "{}", seen.stderr);
    assert!(
        seen.stderr.contains("can't fetch the source `shared`"),
        "{}",
        seen.stderr
    );
    assert_eq!((stage.lock(), stage.cached()), (String::new(), Vec::new()));
}

#[test]
fn submodules_and_lfs_pointers_are_named() {
    let upstream = Repository::new();
    upstream.task("good");
    upstream.write(
        ".gitmodules",
        "[submodule \"v\"]\n\tpath = vendor/tasks\n\turl = ../v\n",
    );
    let pointer = "version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 9\n";
    upstream.write("lfs/task.yaml", pointer);
    upstream.git(&["add", "--all"]);
    let module = format!("160000,{},vendor/tasks", "1".repeat(40));
    upstream.git(&["update-index", "--add", "--cacheinfo", &module]);
    upstream.git(&["commit", "--quiet", "-m", "change"]);
    upstream.git(&["tag", "v1"]);
    let stage = Stage::at(&upstream.path().display().to_string());
    let (code, text) = said(&stage.proctor(&FETCH));
    assert_eq!(code, Some(0), "{text}");
    assert!(
        text.contains("Proctor does not fetch submodules: `vendor/tasks`"),
        "{text}"
    );
    assert!(
        text.contains("these are pointers: `lfs/task.yaml`"),
        "{text}"
    );
    assert_eq!(stage.check(&["--locked"]).run().code, Some(0));
    let repo = json!({"repo": upstream.path(), "ref": "v1"});
    stage.eval(&repo, &json!({"path": "vendor/tasks/task.yaml"}));
    refused(
        &stage.proctor(&["validate", "eval.yaml"]),
        "`vendor/tasks` is a git submodule",
    );
    stage.eval(&repo, &json!({"glob": "vendor/tasks/*.yaml"}));
    refused(
        &stage.proctor(&["validate", "eval.yaml"]),
        "`vendor/tasks` is a git submodule",
    );
    stage.eval(&repo, &json!({"path": "lfs/task.yaml"}));
    refused(
        &stage.proctor(&["validate", "eval.yaml"]),
        "is a Git LFS pointer, not the file itself",
    );
}

#[test]
fn arguments_that_git_could_take_for_options_are_refused() {
    let stage = Stage::at("--upload-pack=touch mark");
    let refused_at = |source: serde_json::Value, expected: &str| {
        stage.eval(&source, &json!({}));
        refused(&stage.proctor(&["validate", "eval.yaml"]), expected);
        refused(&stage.proctor(&FETCH), expected);
    };
    refused_at(
        json!({"repo": "--upload-pack=x"}),
        "invalid repository `--upload-pack=x`",
    );
    refused_at(json!({"repo": "ext::sh"}), "invalid repository `ext::sh`");
    refused_at(
        json!({"repo": "https://u:secret@h/r"}),
        "contains a password",
    );
    refused_at(
        json!({"repo": "./r", "ref": "--all"}),
        "invalid reference `--all`",
    );
    refused_at(
        json!({"repo": "./r", "ref": "a:b"}),
        "invalid reference `a:b`",
    );
}
