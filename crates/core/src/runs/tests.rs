use std::fs;
use std::path::Path;

use proctor_record::event::{RECORD_VERSION, RunStarted};
use proctor_record::record::RunWriter;
use proctor_record::redact::Redactor;

use super::*;

fn write(runs: &Path, name: &str, started: &str) {
    let started = RunStarted {
        record: RECORD_VERSION,
        proctor: "0.1.0".to_owned(),
        started: started.to_owned(),
        name: name.to_owned(),
        command: Vec::new(),
        context: None,
    };
    RunWriter::create(&runs.join(name), Redactor::default(), started).unwrap();
}

fn runs() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    for (name, started) in [
        ("20261114-090000-kubernetes", "2026-11-14T09:00:00.5Z"),
        ("20261115-090000-kubernetes", "2026-11-15T09:00:00Z"),
        ("20261115-090000-kubernetes-2", "2026-11-15T09:00:00.25Z"),
        ("20261113-090000-helm", "2026-11-13T09:00:00Z"),
        ("mine", "2026-11-12T09:00:00Z"),
    ] {
        write(folder.path(), name, started);
    }
    folder
}

#[test]
fn runs_are_listed_from_the_newest_with_unreadable_ones_last() {
    let folder = runs();
    fs::create_dir(folder.path().join("99999999-empty")).unwrap();
    fs::write(folder.path().join("a-file"), "").unwrap();
    let listed = list(folder.path()).unwrap();
    let names: Vec<&str> = listed.iter().map(|entry| entry.name.as_str()).collect();
    let expected = [
        "20261115-090000-kubernetes-2",
        "20261115-090000-kubernetes",
        "20261114-090000-kubernetes",
        "20261113-090000-helm",
        "mine",
        "99999999-empty",
    ];
    assert_eq!(names, expected);
    let error = listed[5].run.as_ref().unwrap_err().to_string();
    assert!(error.ends_with("is not a run: it has no `run.jsonl`"));
}

#[test]
fn a_run_is_named_by_its_folder_as_latest_or_by_a_unique_part() {
    let folder = runs();
    let check = |text: &str, name: &str| {
        let found = resolve(folder.path(), Path::new(text)).unwrap();
        assert_eq!(found, folder.path().join(name), "{text}");
    };
    check("latest", "20261115-090000-kubernetes-2");
    check("helm", "20261113-090000-helm");
    check("1114", "20261114-090000-kubernetes");
    check("min", "mine");
    check("20261115-090000-kubernetes", "20261115-090000-kubernetes");
    let elsewhere = tempfile::tempdir().unwrap();
    write(elsewhere.path(), "helm", "2020-01-01T00:00:00Z");
    let path = elsewhere.path().join("helm");
    assert_eq!(resolve(folder.path(), &path).unwrap(), path);
    // A folder that is not a run is left to the record, which says why.
    let path = elsewhere.path();
    assert_eq!(resolve(folder.path(), path).unwrap(), path);
}

#[test]
fn an_unreadable_run_is_never_the_latest() {
    let folder = runs();
    let path = folder.path().join("20261115-090000-kubernetes-2/run.jsonl");
    fs::write(path, "torn").unwrap();
    let found = resolve(folder.path(), Path::new(LATEST)).unwrap();
    assert_eq!(found, folder.path().join("20261115-090000-kubernetes"));
}

#[test]
fn a_name_that_leads_nowhere_is_an_error_that_helps() {
    let folder = runs();
    let shown = folder.path().display().to_string();
    let check = |runs: &Path, text: &str, expected: &str| {
        let error = resolve(runs, Path::new(text)).unwrap_err().to_string();
        assert_eq!(error.replace(&shown, "RUNS"), expected);
    };
    check(
        folder.path(),
        "kubernetes",
        "`kubernetes` matches 3 runs: `20261115-090000-kubernetes-2`, `20261115-090000-kubernetes`, \
         `20261114-090000-kubernetes`; write more of the name",
    );
    check(
        folder.path(),
        "hlem",
        "run `hlem` not found: not a folder, and not part of a name in `RUNS`; did you mean `20261113-090000-helm`?",
    );
    check(
        folder.path(),
        ".proctor/runs/20261113-090000-helmet",
        "run `.proctor/runs/20261113-090000-helmet` not found: not a folder, and not part of a name in `RUNS`; \
         did you mean `20261113-090000-helm`?",
    );
    check(
        folder.path(),
        "zzz",
        "run `zzz` not found: not a folder, and not part of a name in `RUNS`; `proctor result list` shows the runs",
    );
    let empty = "run `latest` not found: `RUNS/none` contains no runs; `proctor check` creates one";
    check(&folder.path().join("none"), "latest", empty);
}

#[test]
fn a_run_is_also_named_by_a_file_that_holds_it() {
    let folder = runs();
    let file = |name: &str, content: &[u8]| {
        let path = folder.path().join(name);
        fs::write(&path, content).unwrap();
        path
    };
    let pack = file("run.bin", b"\x1f\x8b\x08rest");
    let object = file("result.json", b"\xef\xbb\xbf \n{\"results\": []}");
    let array = file("old", b"[]");
    let other = file("notes.txt", b"hello");
    let found = |path: &Path| find(folder.path(), path);
    assert_eq!(found(&pack).unwrap(), NamedRun::Pack(pack.clone()));
    assert_eq!(found(&object).unwrap(), NamedRun::ResultFile(object));
    assert_eq!(found(&array).unwrap(), NamedRun::ResultFile(array));
    let mine = folder.path().join("mine");
    assert_eq!(found(&mine).unwrap(), NamedRun::Folder(mine.clone()));
    assert_eq!(found(Path::new("mine")).unwrap(), NamedRun::Folder(mine));
    let error = found(&other).unwrap_err().to_string();
    let expected = "is neither a packed run (`.tar.gz`) nor a result file (JSON)";
    assert!(error.ends_with(expected), "{error}");
    // Commands that continue a run need its folder.
    let error = resolve(folder.path(), &pack).unwrap_err().to_string();
    let expected = "is a file: this command needs the folder of a run";
    assert!(error.ends_with(expected), "{error}");
}

#[test]
fn a_folder_of_runs_is_told_from_a_run_and_names_only_what_is_in_it() {
    let folder = runs();
    let runs = folder.path();
    assert!(is_store(runs));
    assert!(!is_store(&runs.join("mine")));
    assert!(!is_store(&runs.join("absent")));
    let empty = tempfile::tempdir().unwrap();
    assert!(!is_store(empty.path()));
    assert_eq!(named(runs, "mine").unwrap(), Some(runs.join("mine")));
    for other in [
        "min",
        "",
        ".",
        "..",
        "mine/",
        "mine/trials",
        "/etc",
        "mine\0",
    ] {
        assert_eq!(named(runs, other).unwrap(), None, "{other}");
    }
}
