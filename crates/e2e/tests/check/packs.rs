//! Packed runs: `proctor result export`, and every command on a pack.

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

use proctor_e2e::suite::SuiteFixture;
use serde_json::Value;

/// Runs the program with temporary folders of its own, and checks that it leaves none.
fn proctor(suite: &SuiteFixture, words: &[&str]) -> Output {
    let temporary = suite.path("tmp");
    fs::create_dir_all(&temporary).unwrap();
    let output = Command::new(proctor_e2e::proctor())
        .args(words)
        .current_dir(suite.folder())
        .env("TMPDIR", &temporary)
        .output()
        .unwrap();
    let left: Vec<_> = fs::read_dir(&temporary).unwrap().collect();
    assert!(left.is_empty(), "{words:?} left {left:?}");
    output
}

#[track_caller]
fn done(suite: &SuiteFixture, words: &[&str]) -> String {
    let output = proctor(suite, words);
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(0), "{words:?}: {stderr}");
    String::from_utf8(output.stdout).unwrap()
}

#[track_caller]
fn refused(suite: &SuiteFixture, words: &[&str]) -> String {
    let output = proctor(suite, words);
    let stderr = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(2), "{words:?}: {stderr}");
    assert_eq!(String::from_utf8_lossy(&output.stdout), "");
    stderr
}

/// A suite with a run of a case that passes and one that fails, two trials each.
fn suite() -> SuiteFixture {
    let suite = SuiteFixture::good_and_bad();
    let words = ["check", "eval.yaml", "-n", "2", "--record", "run"];
    assert_eq!(proctor(&suite, &words).status.code(), Some(1));
    suite
}

fn names(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).unwrap();
    let names = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let mut names: Vec<String> = names.collect();
    names.sort();
    names
}

#[test]
fn every_command_reads_a_pack_as_it_reads_the_folder() {
    let suite = suite();
    done(&suite, &["result", "export", "run", "--pack", "p.tar.gz"]);
    for words in [
        &["show"][..],
        &["show", "-o", "json"],
        &["show", "--failed"],
        &["summary"],
        &["coverage"],
        &["regrade", "--dry-run"],
        &["view"],
        &["view", "--raw"],
        &["view", "-o", "json"],
        &["convert", "--to", "junit"],
        &["convert", "--to", "markdown"],
        &["convert", "--to", "json"],
        &["convert", "--to", "mcpchecker"],
        &["convert", "--to", "otlp"],
        &["convert", "--to", "csv", "--table", "trials"],
        &["convert", "--to", "csv", "--table", "calls"],
        &["convert", "--to", "csv", "--table", "checks"],
    ] {
        let with = |run: &str| {
            let mut all = vec!["result", words[0], run];
            all.extend(&words[1..]);
            let output = proctor(&suite, &all);
            // Regrading has the exit code of the gate.
            let expected = i32::from(words[0] == "regrade");
            let stderr = String::from_utf8_lossy(&output.stderr);
            assert_eq!(output.status.code(), Some(expected), "{all:?}: {stderr}");
            String::from_utf8(output.stdout).unwrap()
        };
        // Only the path that the user gave differs.
        let packed = with("p.tar.gz").replace("p.tar.gz", "run");
        // A pack can't be resumed.
        let folder = with("run");
        let folder: String = folder
            .split_inclusive('\n')
            .filter(|line| !line.contains("--resume"))
            .collect();
        assert!(folder.len() > 100, "{words:?}: {folder}");
        assert_eq!(packed, folder, "{words:?}");
    }
}

#[test]
fn a_pack_has_the_same_bytes_every_time_and_is_replaced_only_on_request() {
    let suite = suite();
    let pack = ["result", "export", "run", "--pack"];
    let read = |name: &str| fs::read(suite.path(name)).unwrap();
    done(&suite, &[&pack[..], &["a.tar.gz"]].concat());
    done(&suite, &["result", "show", "run"]);
    done(&suite, &[&pack[..], &["b.tar.gz"]].concat());
    assert_eq!(read("a.tar.gz"), read("b.tar.gz"));
    let words = ["result", "export", "a.tar.gz", "--pack", "c.tar.gz"];
    done(&suite, &words);
    assert_eq!(read("a.tar.gz"), read("c.tar.gz"), "a pack of a pack");

    fs::write(suite.path("a.tar.gz"), "mine").unwrap();
    let error = refused(&suite, &[&pack[..], &["a.tar.gz"]].concat());
    assert_eq!(error, "error: `a.tar.gz` exists; `--force` replaces it\n");
    assert_eq!(read("a.tar.gz"), b"mine");
    done(&suite, &[&pack[..], &["a.tar.gz", "--force"]].concat());
    assert_eq!(read("a.tar.gz"), read("b.tar.gz"));
}

#[test]
fn a_pack_is_whole_or_absent() {
    let suite = suite();
    let before = names(suite.folder());
    // A blob that can't be read, after most of the pack is written.
    let secret = suite.path("run/trials/zz.1.jsonl");
    std::os::unix::fs::symlink("/nonexistent", &secret).unwrap();
    refused(&suite, &["result", "export", "run", "--pack", "p.tar.gz"]);
    assert_eq!(names(suite.folder()), before);
    fs::remove_file(secret).unwrap();
    let error = refused(&suite, &["result", "export", "run", "--pack", "/dev/full"]);
    assert!(error.contains("No space left"), "{error}");
    refused(
        &suite,
        &["result", "export", "run", "--pack", "none/p.tar.gz"],
    );
    assert_eq!(names(suite.folder()), before);
}

/// Writes archives that mean harm, as a script in another language would.
const HOSTILE: &str = r#"
import io, tarfile, sys
def archive(name, entries, mode="w:gz"):
    with tarfile.open(name, mode) as tar:
        for entry in entries:
            tar.addfile(entry, io.BytesIO(b"x" * entry.size))
def entry(name, size=3, kind=tarfile.REGTYPE, link=""):
    info = tarfile.TarInfo(name)
    info.size, info.type, info.linkname = size, kind, link
    return info
archive("parent.tar.gz", [entry("run/run.jsonl"), entry("run/trials/../../../../escaped.jsonl")])
archive("absolute.tar.gz", [entry(sys.argv[1] + "/escaped.jsonl")])
archive("link.tar.gz", [entry("run/trials", 0, tarfile.SYMTYPE, sys.argv[1]), entry("run/trials/a.1.jsonl")])
archive("hard.tar.gz", [entry("run/run.jsonl", 0, tarfile.LNKTYPE, "/etc/passwd")])
archive("device.tar.gz", [entry("run/run.jsonl", 0, tarfile.CHRTYPE)])
archive("long.tar.gz", [entry("../" + "x" * 300 + "/run.jsonl")])
archive("bomb.tar.gz", [entry("run/run.jsonl", 600_000_000)])
archive("other.tar.gz", [entry("notes.txt")])
archive("run.tar.xz", [entry("run/run.jsonl")], "w:xz")
"#;

#[test]
fn hostile_packs_are_refused_and_leave_nothing() {
    let suite = suite();
    let outside = suite.path("outside");
    fs::create_dir(&outside).unwrap();
    let python = Command::new("python3")
        .args(["-c", HOSTILE])
        .arg(&outside)
        .current_dir(suite.folder())
        .status()
        .unwrap();
    assert!(python.success());
    let before = names(suite.folder());
    for (pack, expected) in [
        ("parent.tar.gz", "leads outside the run's folder"),
        ("absolute.tar.gz", "leads outside the run's folder"),
        ("link.tar.gz", "`run/trials` is a link"),
        ("hard.tar.gz", "`run/run.jsonl` is a link"),
        ("device.tar.gz", "`run/run.jsonl` is a device"),
        ("long.tar.gz", "leads outside the run's folder"),
        ("bomb.tar.gz", "it expands to over"),
        ("other.tar.gz", "it has no `run.jsonl`"),
        (
            "run.tar.xz",
            "neither a packed run (`.tar.gz`) nor a result file",
        ),
    ] {
        let error = refused(&suite, &["result", "show", pack]);
        assert!(error.contains(expected), "{pack}: {error}");
        assert!(error.contains(&format!("`{pack}`")), "{pack}: {error}");
    }
    assert!(names(&outside).is_empty());
    assert_eq!(names(suite.folder()), before);
}

#[test]
fn a_pack_of_another_program_is_read() {
    let suite = suite();
    let tar = |words: &[&str]| {
        let mut tar = Command::new("tar");
        let tar = tar.args(words).current_dir(suite.folder());
        assert!(tar.status().unwrap().success());
    };
    tar(&["-czf", "gnu.tgz", "./run"]);
    tar(&["--format=pax", "-czf", "pax.tgz", "run"]);
    let shown = done(&suite, &["result", "show", "run", "-o", "json"]);
    for pack in ["gnu.tgz", "pax.tgz"] {
        let packed = done(&suite, &["result", "show", pack, "-o", "json"]);
        assert_eq!(packed.replace(pack, "run"), shown);
    }
    // And the other way round.
    done(&suite, &["result", "export", "run", "--pack", "p.tar.gz"]);
    fs::create_dir(suite.path("unpacked")).unwrap();
    tar(&["-xzf", "p.tar.gz", "-C", "unpacked"]);
    let again = done(&suite, &["result", "show", "unpacked/run", "-o", "json"]);
    assert_eq!(again.replace("unpacked/run", "run"), shown);
}

#[test]
fn packs_are_verified_and_compared_as_their_folders_are() {
    let suite = suite();
    // The same cases, and none of their trials passes.
    suite.write(
        "model.yaml",
        "kind: Script\nrules:\n  - reply: {text: done}\n",
    );
    let words = ["check", "eval.yaml", "-n", "2", "--record", "worse"];
    assert_eq!(proctor(&suite, &words).status.code(), Some(1));
    for run in ["run", "worse"] {
        let pack = format!("{run}.tar.gz");
        done(&suite, &["result", "export", run, "--pack", &pack]);
    }
    let seen = |words: &[&str]| {
        let output = proctor(&suite, words);
        let stderr = String::from_utf8(output.stderr).unwrap();
        let stdout = String::from_utf8(output.stdout).unwrap();
        (output.status.code(), stdout.replace(".tar.gz", ""), stderr)
    };
    for (words, exit) in [
        (
            &["result", "verify", "run", "--min-pass-rate", "0.5"][..],
            0,
        ),
        (&["result", "verify", "worse", "--min-pass-rate", "0.5"], 1),
        (&["result", "verify", "run", "--assertion", "0.6"], 1),
        (&["result", "verify", "run", "-o", "json"], 1),
        (&["result", "verify", "worse", "--no-regression", "run"], 3),
        (&["result", "diff", "run", "worse"], 3),
        (&["result", "diff", "run", "worse", "-o", "json"], 3),
    ] {
        let folders = seen(words);
        let packs: Vec<String> = words
            .iter()
            .map(|word| match *word {
                "run" | "worse" => format!("{word}.tar.gz"),
                word => word.to_owned(),
            })
            .collect();
        let packs: Vec<&str> = packs.iter().map(String::as_str).collect();
        assert_eq!(folders.0, Some(exit), "{words:?}: {folders:?}");
        assert_eq!(seen(&packs), folders, "{words:?}");
    }
}

/// A run is never worse than itself, so comparing it with its own pack would always be green.
#[test]
fn a_pack_of_the_run_itself_is_not_a_base() {
    let suite = suite();
    done(&suite, &["result", "export", "run", "--pack", "p.tar.gz"]);
    let error = refused(&suite, &["result", "diff", "run", "p.tar.gz"]);
    assert!(error.contains("BASE and NEW are the same run"), "{error}");
    let error = refused(&suite, &["result", "diff", "p.tar.gz", "run"]);
    assert!(error.contains("BASE and NEW are the same run"), "{error}");
    let words = ["result", "verify", "run", "--no-regression", "p.tar.gz"];
    let error = refused(&suite, &words);
    assert!(error.contains("is the run itself: `p.tar.gz`"), "{error}");
}

#[test]
fn a_new_run_is_compared_with_a_base_of_any_form() {
    let suite = suite();
    done(&suite, &["result", "export", "run", "--pack", "p.tar.gz"]);
    let convert = ["result", "convert", "run", "--to", "mcpchecker", "--out"];
    done(&suite, &[&convert[..], &["base.json"]].concat());
    let gated = |base: &str, record: &str| {
        let words = ["check", "eval.yaml", "-n", "2", "-q", "-o", "json"];
        let gate = ["--no-regression", base, "--record", record];
        let output = proctor(&suite, &[&words[..], &gate].concat());
        let document: Value = serde_json::from_slice(&output.stdout).unwrap();
        (output.status.code(), document["proctor"]["gate"].clone())
    };
    // Two cases with two trials are too few for an answer, whatever holds the base.
    let folder = gated("run", "a");
    assert_eq!(folder.0, Some(3), "{folder:?}");
    let reason = folder.1["reasons"][0].as_str().unwrap();
    assert!(reason.contains("Inconclusive"), "{reason}");
    assert_eq!(gated("p.tar.gz", "b"), folder);
    // A result file has no content of cases to compare, so the case that fails misses its pass rule.
    let imported = gated("base.json", "c");
    assert_eq!(imported.0, Some(1), "{imported:?}");
    let words = ["check", "eval.yaml", "--no-regression", "none.tar.gz"];
    let error = refused(&suite, &words);
    assert!(error.contains("the base of `--no-regression`"), "{error}");
}
