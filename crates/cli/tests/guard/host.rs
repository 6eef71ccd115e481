//! What happens to the process that forks the guards.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use proctor_contain::process::{Process, ProcessExit};
use proctor_record::redact::Redactor;
use rustix::process::{Pid, Resource, Rlimit, Signal, getrlimit, kill_process, prlimit};
use tokio::time::timeout;

use crate::stage::{LIMIT, Stage, line, until};

/// The parent of a guard, which is its host.
fn host_of(process: &Process) -> Pid {
    let guard = process.guard_pid().expect("it runs").as_raw_pid();
    let stat = fs::read_to_string(format!("/proc/{guard}/stat")).expect("the guard runs");
    let (_, fields) = stat.rsplit_once(')').expect("a name");
    let parent = fields.split_whitespace().nth(1).expect("a parent");
    Pid::from_raw(parent.parse().expect("a pid")).expect("a pid")
}

/// A program under a host that only this test uses: a host is found by the path of the binary.
pub fn program(stage: &Stage, script: &str) -> Process {
    let binary = stage.folder.path().join("proctor");
    if !binary.exists() {
        link(&binary);
    }
    let mut spawn = stage.spawn("sh", &["-c", script]);
    spawn.guard = binary;
    spawn.start().expect("a shell starts")
}

fn link(to: &Path) {
    let proctor = env!("CARGO_BIN_EXE_proctor");
    fs::hard_link(proctor, to)
        .or_else(|_| fs::copy(proctor, to).map(drop))
        .expect("it can be copied");
}

#[tokio::test]
async fn programs_of_a_killed_host_end_without_a_status_and_later_ones_start() {
    let stage = Stage::new();
    let mut first = program(
        &stage,
        "trap '' TERM; setsid sleep 1000 & echo ready; sleep 1000",
    );
    assert_eq!(
        line(first.stdout.as_mut().expect("a stream")).await,
        "ready"
    );
    kill_process(host_of(&first), Signal::KILL).expect("the host runs");
    let ended = timeout(LIMIT, first.wait()).await.expect("an end");
    assert_eq!(ended, ProcessExit::Unknown);
    let said = first.stderr_tail(&Redactor::default());
    assert!(said.contains("the guard host was killed"), "{said}");
    stage.clears().await;
    let mut second = program(&stage, "exit 7");
    assert_eq!(second.wait().await, ProcessExit::Exited(7));
}

#[tokio::test]
async fn a_stopped_host_is_continued() {
    let stage = Stage::new();
    let mut first = program(&stage, "read line; exit 3");
    kill_process(host_of(&first), Signal::STOP).expect("the host runs");
    let mut second = program(&stage, "exit 7");
    assert_eq!(second.wait().await, ProcessExit::Exited(7));
    drop(first.stdin.take());
    assert_eq!(first.wait().await, ProcessExit::Exited(3));
}

#[tokio::test]
async fn a_host_without_files_refuses_one_program_and_keeps_the_others() {
    let stage = Stage::new();
    let mut first = program(&stage, "read line; exit 3");
    let host = host_of(&first);
    let files = |count: u64| {
        let limit = Rlimit {
            current: Some(count),
            maximum: getrlimit(Resource::Nofile).maximum,
        };
        prlimit(Some(host), Resource::Nofile, limit).expect("a limit");
    };
    files(5);
    let mut spawn = stage.spawn("true", &[]);
    spawn.guard = stage.folder.path().join("proctor");
    let refused = spawn.start().expect_err("no files");
    assert!(
        refused
            .to_string()
            .ends_with("Too many open files (os error 24)"),
        "{refused}"
    );
    files(100);
    assert_eq!(
        program(&stage, "exit 7").wait().await,
        ProcessExit::Exited(7)
    );
    assert_eq!(host_of(&first), host);
    drop(first.stdin.take());
    assert_eq!(first.wait().await, ProcessExit::Exited(3));
}

/// The guard hosts and guards of a binary.
fn running(binary: &Path) -> Vec<String> {
    let processes = fs::read_dir("/proc").expect("/proc").flatten();
    let lines = processes.filter_map(|process| fs::read(process.path().join("cmdline")).ok());
    let lines = lines.map(|line| String::from_utf8_lossy(&line).replace('\0', " "));
    let name = binary.display().to_string();
    lines
        .filter(|line| line.starts_with(&name) && line.contains("__guards"))
        .collect()
}

#[tokio::test]
async fn a_host_ends_before_proctor_and_with_a_killed_one() {
    let stage = Stage::new();
    let binary = stage.folder.path().join("proctor");
    link(&binary);
    let record = |script: &str| {
        let mut command = Command::new(&binary);
        command
            .args(["record", "--", "sh", "-c", script])
            .current_dir(stage.folder.path())
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        command.spawn().expect("it starts")
    };
    let mut ended = record("exit 0");
    ended.wait().expect("an end");
    assert_eq!(running(&binary), [""; 0]);
    let mut killed = record("trap '' TERM; touch started; while :; do sleep 1; done");
    until("the program runs", || stage.has("started")).await;
    assert!(!running(&binary).is_empty());
    killed.kill().expect("it runs");
    killed.wait().expect("an end");
    until("all has ended", || running(&binary).is_empty()).await;
}
