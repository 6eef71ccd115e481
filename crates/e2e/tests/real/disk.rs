//! Records that can't be written: the session says so, fails, and nothing looks more complete than it is.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;

use proctor_e2e::fixture;
use proctor_e2e::session::{Session, SessionOutcome};
use proctor_record::event::EventKind;
use proctor_record::record::RunReader;
use rustix::process::Signal;

pub const UNPRIVILEGED: &[&str] = &[
    "setpriv",
    "--reuid=65534",
    "--regid=65534",
    "--clear-groups",
];

fn call(tool: &str, arguments: &str) -> Session {
    Session::new(&["call", tool, "--args", arguments]).on(fixture().to_str().unwrap(), &[])
}

/// The session failed for want of a record, and the record does not say otherwise.
fn check_failed(seen: &SessionOutcome, codes: &[i32], message: &str) {
    let code = seen.code.expect("it ends by itself");
    assert!(codes.contains(&code), "exit code {code}: {}", seen.stderr);
    assert!(seen.stderr.contains("error: "), "{}", seen.stderr);
    assert!(seen.stderr.contains(message), "{}", seen.stderr);
    check_honest(&seen.record);
    assert!(!is_whole(&seen.record), "the record looks whole");
}

/// Every trial that has the name of an ended one has an end.
fn check_honest(record: &Path) {
    let Ok(run) = RunReader::open(record) else {
        return;
    };
    for trial in run.trials().unwrap() {
        let last = run.trial(&trial).unwrap().last().unwrap().unwrap();
        let has_end = matches!(last.event, EventKind::TrialEnded(_));
        assert!(has_end || !trial.ended, "{}", trial.path.display());
    }
}

/// Whether the run says that it has ended.
fn is_whole(record: &Path) -> bool {
    let Ok(run) = RunReader::open(record) else {
        return false;
    };
    let last = run.events().unwrap().last().unwrap().unwrap();
    matches!(last.event, EventKind::RunEnded(_))
}

#[test]
fn a_limit_on_the_size_of_files_is_an_error_wherever_it_strikes() {
    let mut codes = Vec::new();
    for signal in ["", "trap '' XFSZ; "] {
        // In blocks of 512 bytes: from the first line of the record to more than all of it.
        for blocks in [0, 1, 2, 3, 4, 6, 8, 10, 12, 14, 16, 18, 20, 24, 100] {
            let limit = format!(r#"{signal}ulimit -f {blocks}; exec "$@""#);
            let seen = call("big", r#"{"bytes": 5000}"#)
                .under(&["sh", "-c", &limit, "sh"])
                .run();
            let code = seen.code.expect("it ends by itself");
            codes.push(code);
            if code == 0 {
                check_honest(&seen.record);
                assert!(
                    seen.has_ended() && is_whole(&seen.record),
                    "{blocks} blocks"
                );
            } else {
                check_failed(&seen, &[2, 3], "File too large");
            }
        }
    }
    assert!(
        codes.contains(&2) && codes.contains(&3) && codes.contains(&0),
        "{codes:?}"
    );
}

#[test]
fn a_full_disk_is_an_error() {
    let namespace = ["unshare", "--mount", "--map-root-user"];
    if let Err(reason) = works(&namespace, &["true"]) {
        skipped("a full disk", &reason);
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    // The disk is gone with its name space, so its files are copied out.
    let script = r#"mount -t tmpfs -o size=64k tmpfs "$0/disk" || exit 99
        "$@"; code=$?; cp -r "$0/disk/." "$0/copy"; exit $code"#;
    for (name, session) in [
        ("a blob", call("big", r#"{"bytes": 200000}"#)),
        ("many lines", {
            let flood = ["--mode", "flood-notifications=1000"];
            Session::new(&["call", "add", "--args", r#"{"a": 1, "b": 2}"#])
                .on(fixture().to_str().unwrap(), &flood)
        }),
    ] {
        let (disk, copy) = (folder.path().join("disk"), folder.path().join("copy"));
        fs::create_dir_all(&disk).unwrap();
        let wrapper = ["sh", "-c", script, folder.path().to_str().unwrap()];
        let mut seen = session
            .under(&[&namespace[..], &wrapper].concat())
            .record_in(&disk.join("run"))
            .run();
        if seen.code == Some(99) {
            skipped("a full disk", &seen.stderr);
            return;
        }
        seen.record = copy.join("run");
        assert!(
            RunReader::open(&seen.record).is_ok(),
            "{name}: {}",
            seen.stderr
        );
        check_failed(&seen, &[3], "No space left on device");
        fs::remove_dir_all(&copy).unwrap();
    }
}

#[test]
fn a_folder_that_may_not_be_written_to_is_an_error() {
    let wrapper = if rustix::process::geteuid().is_root() {
        UNPRIVILEGED
    } else {
        &[]
    };
    let proctor = proctor_e2e::proctor();
    if let Err(reason) = works(wrapper, &[proctor.to_str().unwrap(), "--version"]) {
        skipped("a folder that may not be written to", &reason);
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let may = |mode| fs::set_permissions(folder.path(), fs::Permissions::from_mode(mode)).unwrap();
    may(0o555);
    let seen = call("add", r#"{"a": 1, "b": 2}"#)
        .under(wrapper)
        .record_in(&folder.path().join("run"))
        .run();
    may(0o755);
    check_failed(&seen, &[2], "Permission denied");
    assert_eq!(seen.stdout, "", "nothing was called");
}

#[test]
fn a_folder_that_is_removed_meanwhile_is_an_error() {
    let running = call("sleep", r#"{"ms": 1000}"#).start();
    running.wait_for("tools/call");
    fs::remove_dir_all(running.record()).unwrap();
    let seen = running.finish();
    check_failed(&seen, &[3], "the record is incomplete");
    assert!(!seen.record.exists());
}

#[test]
fn two_writers_don_t_meet_in_a_folder() {
    let first = call("sleep", r#"{"ms": 600000}"#).start();
    first.wait_for("tools/call");
    let second = call("add", r#"{"a": 1, "b": 2}"#)
        .record_in(first.record())
        .run();
    check_failed(&second, &[2], "another process is writing to");
    assert_eq!(second.stdout, "", "nothing was called");
    first.signal(Signal::INT);
    let first = first.finish();
    assert_eq!(first.code, Some(130), "{}", first.stderr);
    assert!(is_whole(&first.record));
}

#[test]
fn a_run_is_not_written_over() {
    let first = call("add", r#"{"a": 1, "b": 2}"#).run();
    assert_eq!(first.code, Some(0), "{}", first.stderr);
    let before = first.lines(proctor_record::event::Direction::ToServer);
    let second = call("fail", "{}").record_in(&first.record).run();
    assert_eq!(second.code, Some(2), "{}", second.stderr);
    assert!(second.stderr.contains("already holds a run"));
    assert_eq!(second.stdout, "", "nothing was called");
    assert_eq!(second.events, first.events);
    assert_eq!(
        second.lines(proctor_record::event::Direction::ToServer),
        before
    );
}

#[test]
fn a_record_has_an_end_though_nobody_reads_the_result() {
    let closed = r#"exec "$@" >&-"#;
    let full = r#"exec "$@" >/dev/full"#;
    for (script, codes) in [(closed, &[0, 2][..]), (full, &[2])] {
        let seen = call("big", r#"{"bytes": 5000}"#)
            .under(&["sh", "-c", script, "sh"])
            .run();
        assert!(codes.contains(&seen.code.unwrap()), "{script}: {seen:?}");
        assert!(seen.has_ended() && is_whole(&seen.record), "{script}");
    }
}

/// Whether a program can be started this way here.
pub fn works(wrapper: &[&str], command: &[&str]) -> Result<(), String> {
    let words = [wrapper, command].concat();
    match Command::new(words[0]).args(&words[1..]).output() {
        Ok(output) if output.status.success() => Ok(()),
        Ok(output) => Err(String::from_utf8_lossy(&output.stderr).into_owned()),
        Err(error) => Err(format!("`{}`: {error}", words[0])),
    }
}

#[expect(
    clippy::print_stderr,
    reason = "whoever reads the log must see what was not tried"
)]
pub fn skipped(what: &str, reason: &str) {
    eprintln!("skipped: {what} can't be had here: {}", reason.trim());
}
