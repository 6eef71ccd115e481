//! What a program is started with, and what is said of one that can't be.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;

use proctor_contain::process::{ProcessExit, SpawnError};
use proctor_record::redact::Redactor;
use tokio::io::AsyncReadExt;

use crate::stage::Stage;

#[tokio::test]
async fn what_can_not_be_started_is_told_before_a_guard_starts() {
    let stage = Stage::new();
    fs::write(stage.folder.path().join("data"), "").unwrap();
    let check = |program: &str, expected: &str| {
        let error = stage.spawn(program, &[]).start().unwrap_err();
        let text = error.to_string();
        let folder = stage.folder.path().to_string_lossy();
        assert_eq!(text.replace(&*folder, "FOLDER"), expected);
    };
    check(
        "no-such-program",
        "program `no-such-program` was not found in PATH",
    );
    check("./none", "program `FOLDER/./none` does not exist");
    check("./data", "program `FOLDER/./data` is not executable");

    let mut spawn = stage.spawn("sh", &[]);
    spawn.folder = "/no/such/folder".into();
    let error = spawn.start().unwrap_err();
    assert_eq!(error.to_string(), "folder `/no/such/folder` does not exist");

    let mut spawn = stage.spawn("sh", &[]);
    spawn.guard = "/no/such/guard".into();
    assert!(matches!(spawn.start(), Err(SpawnError::Guard { .. })));
}

#[tokio::test]
async fn a_file_that_is_no_program_is_told_by_the_guard() {
    let stage = Stage::new();
    let check = async |text: &[u8], code: i32, expected: &str| {
        let file = stage.folder.path().join("tool");
        fs::write(&file, text).unwrap();
        fs::set_permissions(&file, Permissions::from_mode(0o755)).unwrap();
        let mut process = stage.spawn("./tool", &[]).start().unwrap();
        assert_eq!(process.wait().await, ProcessExit::Exited(code));
        let said = process.stderr_tail(&Redactor::default());
        assert!(said.starts_with("proctor guard: program `"), "{said}");
        assert!(said.contains(expected), "{said}");
        assert_eq!(said.lines().count(), 1, "{said}");
        fs::remove_file(&file).unwrap();
    };
    check(
        b"#!/no/such/interpreter\n",
        126,
        "names an interpreter that does not exist",
    )
    .await;
    check(
        b"\x7fELF and no more",
        126,
        "can't be executed: Exec format error",
    )
    .await;
}

#[tokio::test]
async fn environment_and_folder_are_as_given() {
    let stage = Stage::new();
    let mut spawn = stage.spawn(
        "sh",
        &["-c", "pwd -P; env; echo \"$1\"", "sh", "a  'b' $HOME"],
    );
    spawn.env.insert("OWN".into(), "1".into());
    let marker = spawn.env["PROCTOR_GUARD_TEST"].clone();
    let path = spawn.env["PATH"].clone();
    let mut process = spawn.start().unwrap();
    let mut said = String::new();
    let mut stdout = process.stdout.take().unwrap();
    stdout.read_to_string(&mut said).await.unwrap();
    let mut lines: Vec<&str> = said.lines().collect();
    let folder = fs::canonicalize(stage.folder.path()).unwrap();
    assert_eq!(lines.remove(0), folder.to_str().unwrap());
    assert_eq!(lines.pop(), Some("a  'b' $HOME"));
    // A shell sets these itself, and a guard without a subreaper its cookie.
    let cookie = format!("{}=", proctor_contain::os::COOKIE);
    let cookies = lines
        .iter()
        .filter(|line| line.starts_with(&cookie))
        .count();
    assert_eq!(cookies, usize::from(cfg!(feature = "posix")), "{said}");
    lines.retain(|line| {
        !["PWD=", "_=", "SHLVL=", "OLDPWD", &cookie]
            .iter()
            .any(|own| line.starts_with(own))
    });
    lines.sort_unstable();
    let expected = [
        "OWN=1".to_owned(),
        format!("PATH={path}"),
        format!("PROCTOR_GUARD_TEST={marker}"),
    ];
    assert_eq!(lines, expected);
    assert_eq!(process.wait().await, ProcessExit::Exited(0));
}

#[tokio::test]
async fn no_signal_is_blocked_ignored_or_handled_in_the_program() {
    let stage = Stage::new();
    // A shell ignores SIGINT and SIGQUIT for what it starts in the background.
    let script = "trap '' HUP USR1 PIPE CHLD; $GUARD --parent $$ -- grep '^Sig[BI]' /proc/self/status & wait";
    let said = stage.stand_in(script).wait_with_output().await.unwrap();
    let said = String::from_utf8(said.stdout).unwrap();
    let masks: Vec<u64> = said
        .lines()
        .map(|line| u64::from_str_radix(line.split_whitespace().nth(1).unwrap(), 16).unwrap())
        .collect();
    // Those from 32 on belong to the C library.
    let [blocked, ignored] = masks[..] else {
        panic!("two masks: {said}");
    };
    assert_eq!(
        (blocked & 0x7fff_ffff, ignored & 0x7fff_ffff),
        (0, 0),
        "{said}"
    );
}

#[tokio::test]
async fn the_program_leads_a_group_in_the_session_of_the_guard() {
    let stage = Stage::new();
    let mut process = stage.script("echo $$ $PPID; cut -d' ' -f5,6 /proc/$$/stat");
    let mut stdout = process.stdout.take().unwrap();
    let mut said = String::new();
    stdout.read_to_string(&mut said).await.unwrap();
    let (own, group_and_session) = said.split_once('\n').unwrap();
    assert_eq!(own, group_and_session.trim_end());
}

#[tokio::test]
async fn the_program_gets_the_standard_streams_and_no_other_file() {
    let stage = Stage::new();
    let look = "ls /proc/$$/fd; ls -l /proc/$PPID/fd; :";
    let script = format!("exec 3</dev/null 7>secret; $GUARD --parent $$ -- sh -c '{look}'");
    let said = stage.stand_in(&script).wait_with_output().await.unwrap();
    let said = String::from_utf8(said.stdout).unwrap();
    let (program, guard) = said.split_once("total 0\n").unwrap();
    assert_eq!(program, "0\n1\n2\n");
    assert!(!guard.contains("secret"), "{guard}");
}
