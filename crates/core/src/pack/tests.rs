use std::fs;
use std::io::Write;
use std::path::Path;

use flate2::Compression;
use flate2::write::GzEncoder;
use proctor_record::event::{
    Body, EventKind, Outcome, RECORD_VERSION, RunStarted, TrialEnded, TrialStarted,
};
use proctor_record::record::RunWriter;
use proctor_record::redact::Redactor;
use tar::{EntryType, Header};

use super::*;

fn started() -> RunStarted {
    RunStarted {
        record: RECORD_VERSION,
        proctor: "0.1.0".to_owned(),
        started: "2026-11-15T05:00:00Z".to_owned(),
        name: "sample".to_owned(),
        command: Vec::new(),
        context: None,
    }
}

/// A run with a trial that has ended, one that has not, and a blob.
fn write_run(folder: &Path) -> RunReader {
    let run = RunWriter::create(folder, Redactor::default(), started()).unwrap();
    // Its file name does not fit the header of an archive.
    let name = "x".repeat(99);
    for (name, ends) in [("left", false), (name.as_str(), true)] {
        let trial = TrialStarted {
            case: name.to_owned(),
            agent: None,
            repeat: 1,
            attempt: 1,
        };
        let mut trial = run.trial(5, name, trial).unwrap();
        let text = Body::Text("long ".repeat(10_000));
        trial
            .append(6, EventKind::Prompted { text, turn: None })
            .unwrap();
        if ends {
            let ended = TrialEnded {
                outcome: Outcome::Passed,
                reason: None,
                blame: None,
            };
            index::end_trial(trial, 7, ended).unwrap();
        }
    }
    RunReader::open(folder).unwrap()
}

fn packed(run: &RunReader) -> Vec<u8> {
    let mut out = Vec::new();
    write(run, &mut out).unwrap();
    out
}

/// All files below a folder, by their paths.
fn files(folder: &Path) -> Vec<(String, Vec<u8>)> {
    let entries = walkdir::WalkDir::new(folder).sort_by_file_name();
    let entries = entries.into_iter().map(Result::unwrap);
    let files = entries.filter(|entry| entry.file_type().is_file());
    files
        .map(|entry| {
            let path = entry.path().strip_prefix(folder).unwrap();
            (path.display().to_string(), fs::read(entry.path()).unwrap())
        })
        .collect()
}

/// Unpacks below a folder that holds nothing else, and returns the files that came of it.
fn unpacked(pack: &[u8], limits: PackLimits) -> Result<Vec<(String, Vec<u8>)>, PackError> {
    let folder = tempfile::tempdir().unwrap();
    let inner = folder.path().join("a/b/c");
    fs::create_dir_all(&inner).unwrap();
    let result = unpack(pack, &inner, limits);
    for (path, _) in files(folder.path()) {
        assert!(path.starts_with("a/b/c/"), "{path} is outside");
    }
    result.map(|_| files(&inner))
}

#[test]
fn a_pack_holds_the_whole_run_and_has_the_same_bytes_every_time() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("20261115-050000-sample");
    let run = write_run(&path);
    fs::write(path.join("notes.txt"), "not part of a run").unwrap();
    fs::create_dir(path.join("grades")).unwrap();
    fs::write(path.join("grades/new.jsonl"), "{}\n").unwrap();
    let pack = packed(&run);
    // A stored index may have lines in any order.
    fs::remove_file(path.join("index.jsonl")).unwrap();
    assert_eq!(packed(&run), pack);
    let again = folder.path().join("again");
    let name = unpack(&pack[..], &again, PackLimits::default()).unwrap();
    assert_eq!(name.as_deref(), Some("20261115-050000-sample"));
    let mut expected = files(&path);
    expected.retain(|(name, _)| !["lock", "notes.txt"].contains(&name.as_str()));
    assert_eq!(files(&again), expected);
    let moved = folder.path().join("elsewhere/20261115-050000-sample");
    fs::create_dir(folder.path().join("elsewhere")).unwrap();
    fs::rename(&again, &moved).unwrap();
    assert_eq!(packed(&RunReader::open(&moved).unwrap()), pack);
}

#[test]
fn a_run_that_is_written_is_not_packed() {
    let folder = tempfile::tempdir().unwrap();
    let writer = RunWriter::create(folder.path(), Redactor::default(), started()).unwrap();
    let run = RunReader::open(folder.path()).unwrap();
    let error = write(&run, &mut Vec::new()).unwrap_err();
    assert!(
        matches!(error, PackError::Record(RecordError::Locked { .. })),
        "{error:?}"
    );
    drop(writer);
    assert!(write(&run, &mut Vec::new()).is_ok());
}

/// One file of an archive, with a path that the library would refuse to write.
struct Hostile<'a> {
    path: &'a str,
    kind: EntryType,
    link: &'a str,
    content: &'a [u8],
}

impl<'a> Hostile<'a> {
    fn file(path: &'a str) -> Self {
        Self {
            path,
            kind: EntryType::Regular,
            link: "",
            content: b"{}\n",
        }
    }
}

fn archive(entries: &[Hostile<'_>]) -> Vec<u8> {
    let mut out = GzEncoder::new(Vec::new(), Compression::default());
    for entry in entries {
        let mut header = Header::new_gnu();
        header.set_entry_type(entry.kind);
        header.set_size(entry.content.len() as u64);
        header.set_mode(0o6777);
        let gnu = header.as_gnu_mut().unwrap();
        gnu.name[..entry.path.len()].copy_from_slice(entry.path.as_bytes());
        gnu.linkname[..entry.link.len()].copy_from_slice(entry.link.as_bytes());
        header.set_cksum();
        out.write_all(header.as_bytes()).unwrap();
        out.write_all(entry.content).unwrap();
        let rest = entry.content.len().next_multiple_of(512) - entry.content.len();
        out.write_all(&vec![0; rest]).unwrap();
    }
    out.write_all(&[0; 1024]).unwrap();
    out.finish().unwrap()
}

#[track_caller]
fn refused(entries: &[Hostile<'_>], expected: &str) {
    let error = unpacked(&archive(entries), PackLimits::default()).unwrap_err();
    let shown = error.to_string();
    assert!(shown.contains(expected), "{shown}");
}

#[test]
fn paths_that_lead_outside_are_refused() {
    for path in [
        "../run.jsonl",
        "x/../../run.jsonl",
        "/tmp/proctor-hostile/run.jsonl",
        "run/trials/../../../a.1.jsonl",
        "..",
    ] {
        let entries = [Hostile::file("run/run.jsonl"), Hostile::file(path)];
        refused(&entries, "leads outside the run's folder");
    }
    assert!(!Path::new("/tmp/proctor-hostile").exists());
}

#[test]
fn long_names_are_paths_as_well() {
    let name = format!("{}/../../../../x.1.jsonl", "y/".repeat(10));
    for (kind, content) in [
        (EntryType::GNULongName, format!("../{name}\0")),
        (
            EntryType::XHeader,
            "31 path=/tmp/proctor-hostile/a\n".to_owned(),
        ),
    ] {
        let long = Hostile {
            path: "././@LongLink",
            kind,
            link: "",
            content: content.as_bytes(),
        };
        let entries = [long, Hostile::file("run/run.jsonl")];
        refused(&entries, "leads outside the run's folder");
    }
}

#[test]
fn links_and_devices_are_refused() {
    for (kind, expected) in [
        (EntryType::Symlink, "is a link"),
        (EntryType::Link, "is a link"),
        (EntryType::Fifo, "is a device"),
        (EntryType::Char, "is a device"),
        (EntryType::Block, "is a device"),
        (EntryType::GNUSparse, "is not a plain file"),
        (EntryType::new(b'Z'), "is not a plain file"),
    ] {
        let entry = Hostile {
            path: "run/run.jsonl",
            kind,
            link: "/etc/passwd",
            content: b"",
        };
        refused(&[entry], expected);
    }
}

#[test]
fn a_link_to_a_folder_does_not_lead_a_later_file_outside() {
    let outside = tempfile::tempdir().unwrap();
    let target = outside.path().display().to_string();
    let link = Hostile {
        path: "run/trials",
        kind: EntryType::Symlink,
        link: &target,
        content: b"",
    };
    let entries = [link, Hostile::file("run/trials/a.1.jsonl")];
    refused(&entries, "is a link");
    assert!(files(outside.path()).is_empty());
}

#[test]
fn only_files_of_one_run_are_unpacked() {
    let entries = [
        Hostile::file("./.proctor/runs/r/run.jsonl"),
        Hostile::file("./.proctor/runs/r/trials/a.1.jsonl"),
        Hostile::file("./.proctor/runs/r/trials/.hidden"),
        Hostile::file("./.proctor/runs/r/blobs/run.sh"),
        Hostile::file("./.proctor/runs/r/.bashrc"),
        Hostile::file("./.proctor/runs/r/lock"),
    ];
    let files = unpacked(&archive(&entries), PackLimits::default()).unwrap();
    let names: Vec<&str> = files.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(names, ["run.jsonl", "trials/a.1.jsonl"]);
    let twice = [Hostile::file("run.jsonl"), Hostile::file("run.jsonl")];
    refused(&twice, "is in the pack twice");
    let two = [
        Hostile::file("a/run.jsonl"),
        Hostile::file("b/trials/a.1.jsonl"),
    ];
    refused(&two, "belongs to another run");
    refused(
        &[Hostile::file("a/trials/a.1.jsonl")],
        "it has no `run.jsonl`",
    );
}

#[test]
fn a_pack_that_expands_too_far_is_refused_before_it_fills_the_disk() {
    let limits = PackLimits {
        files: 3,
        bytes: 100_000,
        ratio: 20,
    };
    let bomb = Hostile {
        content: &vec![b' '; 10_000_000],
        ..Hostile::file("run.jsonl")
    };
    let bomb = archive(&[bomb]);
    assert!(bomb.len() < 100_000);
    let folder = tempfile::tempdir().unwrap();
    let error = unpack(&bomb[..], folder.path(), limits).unwrap_err();
    assert!(matches!(error, PackError::TooLarge { .. }), "{error:?}");
    let written: usize = files(folder.path()).iter().map(|(_, c)| c.len()).sum();
    assert!(written < 1_000_000, "{written}");
    // The same bytes in a file that no run has, and behind the end of the archive.
    let skipped = Hostile {
        path: "video.mkv",
        content: &vec![0; 10_000_000],
        ..Hostile::file("")
    };
    let skipped = archive(&[skipped]);
    let error = unpacked(&skipped, limits).unwrap_err();
    assert!(matches!(error, PackError::TooLarge { .. }), "{error:?}");
    let mut trailing = archive(&[Hostile::file("run.jsonl")]);
    trailing.extend(archive(&[Hostile {
        content: &vec![0; 10_000_000],
        ..Hostile::file("x")
    }]));
    let error = unpacked(&trailing, limits).unwrap_err();
    assert!(matches!(error, PackError::TooLarge { .. }), "{error:?}");
    let names = ["run.jsonl", "trials/a.1.jsonl", "trials/b.1.jsonl", "x"];
    let error = unpacked(&archive(&names.map(Hostile::file)), limits).unwrap_err();
    assert!(matches!(error, PackError::TooMany { .. }), "{error:?}");
    let long = Hostile {
        path: "././@LongLink",
        kind: EntryType::GNULongName,
        link: "",
        content: &vec![b'x'; 70_000],
    };
    refused(&[long, Hostile::file("run.jsonl")], "over 64 KiB");
}

#[test]
fn a_damaged_pack_is_an_error_and_not_a_shorter_run() {
    let folder = tempfile::tempdir().unwrap();
    let pack = packed(&write_run(folder.path()));
    assert!(unpacked(&pack, PackLimits::default()).is_ok());
    // The last bytes are the checksum, behind everything that an archive needs.
    for length in [0, 1, 20, pack.len() / 2, pack.len() - 9, pack.len() - 1] {
        let error = unpacked(&pack[..length], PackLimits::default());
        assert!(error.is_err(), "{length} of {} bytes", pack.len());
    }
    for at in [12, pack.len() / 2, pack.len() - 6] {
        let mut changed = pack.clone();
        changed[at] ^= 1;
        let error = unpacked(&changed, PackLimits::default());
        assert!(error.is_err(), "byte {at}");
    }
    let text = unpacked(b"not gzip", PackLimits::default()).unwrap_err();
    assert_eq!(text.to_string(), "not a packed run, or damaged");
}
