//! Guards run one program after another, and only if nothing of the last one is left.

use std::fs;

use proctor_contain::process::{Process, ProcessExit};
use rustix::process::{Pid, Signal, kill_process};
use tokio::time::timeout;

use crate::host::program;
use crate::stage::{LIMIT, Stage, line, until};

fn guard_of(process: &Process) -> Pid {
    process.guard_pid().expect("it runs")
}

/// Runs a script to its end. Returns its guard.
async fn run(stage: &Stage, script: &str, expected: ProcessExit) -> Pid {
    let mut process = program(stage, script);
    let guard = guard_of(&process);
    assert_eq!(process.wait().await, expected, "{script}");
    guard
}

#[tokio::test]
async fn a_guard_whose_program_ended_runs_the_next_one() {
    let stage = Stage::new();
    let first = run(&stage, "exit 3", ProcessExit::Exited(3)).await;
    // Each ends everything that it started, and takes the next program.
    for (script, expected) in [
        ("kill -9 $$", ProcessExit::Signalled(9)),
        ("setsid sleep 1000 & exit 5", ProcessExit::Exited(5)),
        ("exec ./none", ProcessExit::Exited(127)),
    ] {
        assert_eq!(run(&stage, script, expected).await, first, "{script}");
        stage.clears().await;
    }
    // Two at once need two guards.
    let (mut one, mut two) = (program(&stage, "read line"), program(&stage, "read line"));
    assert_ne!(guard_of(&one), guard_of(&two));
    for process in [&mut one, &mut two] {
        drop(process.stdin.take());
        process.wait().await;
    }
}

#[tokio::test]
async fn the_end_of_a_program_is_told_though_its_guard_goes_on() {
    let stage = Stage::new();
    let mut process = program(&stage, "read line");
    let (guard, end) = (guard_of(&process), process.ending());
    drop(process.stdin.take());
    timeout(LIMIT, end.wait()).await.expect("an end");
    assert!(process.guard_pid().is_none());
    drop(process);
    assert_eq!(run(&stage, "exit 0", ProcessExit::Exited(0)).await, guard);
}

#[tokio::test]
async fn a_guard_that_got_a_signal_runs_no_other_program() {
    let stage = Stage::new();
    let next = async |first: Pid| {
        let second = run(&stage, "exit 0", ProcessExit::Exited(0)).await;
        assert_ne!(first, second);
        second
    };
    // From Proctor, while the program runs.
    let process = program(&stage, "sleep 1000");
    let mut guard = guard_of(&process);
    process.stop(std::time::Duration::ZERO).await;
    guard = next(guard).await;
    // From the program, which ends before the guard has looked.
    let asked = run(
        &stage,
        "trap '' TERM; kill -TERM $PPID; kill -9 $$",
        ProcessExit::Signalled(9),
    );
    assert_eq!(asked.await, guard);
    guard = next(guard).await;
    // From another process, while there is no program.
    kill_process(guard, Signal::TERM).expect("it waits for a program");
    ends(guard).await;
    guard = next(guard).await;
    kill_process(guard, Signal::KILL).expect("it waits for a program");
    ends(guard).await;
    next(guard).await;
}

/// The next program would inherit the limits: for example, a verify script that can't write a file.
#[tokio::test]
async fn a_guard_whose_limits_were_changed_runs_no_other_program() {
    let stage = Stage::new();
    for change in [
        "prlimit --pid $PPID --fsize=0",
        "renice -n 5 -p $PPID >/dev/null",
        "echo 900 > /proc/$PPID/oom_score_adj",
    ] {
        let guard = run(&stage, change, ProcessExit::Exited(0)).await;
        let limits = "test $(ulimit -f) = unlimited && test $(nice) = 0";
        let next = run(&stage, limits, ProcessExit::Exited(0)).await;
        assert_ne!(guard, next, "{change}");
        assert_eq!(run(&stage, "exit 0", ProcessExit::Exited(0)).await, next);
    }
}

#[tokio::test]
async fn a_program_whose_guard_ends_before_it_runs_did_not_succeed() {
    let stage = Stage::new();
    for _ in 0..30 {
        let guard = run(&stage, "exit 0", ProcessExit::Exited(0)).await;
        kill_process(guard, Signal::TERM).expect("it waits for a program");
        // The guard passes the signal on if it comes while the program starts.
        let (own, passed_on) = (ProcessExit::Exited(7), ProcessExit::Signalled(15));
        let ended = program(&stage, "exit 7").wait().await;
        let expected = [own, passed_on, ProcessExit::Unknown];
        assert!(expected.contains(&ended), "{ended:?}");
    }
}

#[tokio::test]
async fn a_guard_that_was_stopped_meanwhile_is_not_used() {
    let stage = Stage::new();
    let (mut one, mut other) = (program(&stage, "read line"), program(&stage, "sleep 1000"));
    let guard = guard_of(&one);
    drop(one.stdin.take());
    assert_eq!(one.wait().await, ProcessExit::Exited(1));
    kill_process(guard, Signal::STOP).expect("it waits for a program");
    let has_stopped = || stat(guard).is_some_and(|stat| stat.contains(") T "));
    until("it has stopped", has_stopped).await;
    // The host reports one after the other.
    kill_process(guard_of(&other), Signal::KILL).expect("it runs a program");
    assert_eq!(other.wait().await, ProcessExit::Signalled(9));
    assert_ne!(run(&stage, "exit 0", ProcessExit::Exited(0)).await, guard);
    // It would stay stopped after Proctor's end.
    ends(guard).await;
}

fn stat(pid: Pid) -> Option<String> {
    fs::read_to_string(format!("/proc/{}/stat", pid.as_raw_pid())).ok()
}

async fn ends(pid: Pid) {
    until("the guard has ended", || stat(pid).is_none()).await;
}

#[tokio::test]
async fn a_guard_knows_nothing_of_the_program_before_it() {
    let stage = Stage::new();
    let secret = "a-variable-of-another-program";
    run(&stage, "exit 0", ProcessExit::Exited(0)).await;
    // The next request is shorter, and would leave the end of this one in place.
    let mut spawn = stage.spawn("sh", &["-c", "read line", "an-argument-of-another-program"]);
    spawn.guard = stage.folder.path().join("proctor");
    spawn.env.insert("LONG".into(), "x".repeat(10_000));
    spawn.env.insert("SECRET".into(), secret.into());
    let mut process = spawn.start().expect("it starts");
    let guard = guard_of(&process);
    let holds = |text: &str| memory(guard.as_raw_pid()).contains(text);
    until("the request has arrived", || holds(secret)).await;
    drop(process.stdin.take());
    assert_eq!(process.wait().await, ProcessExit::Exited(1));
    let files = "ls /proc/$PPID/fd | wc -l; tr '\\0' '\\n' </proc/$PPID/environ";
    let mut process = program(&stage, &format!("{files}; echo end; read line"));
    assert_eq!(guard_of(&process), guard);
    let mut stdout = process.stdout.take().expect("a stream");
    // The standard streams, the channel, /dev/null, and a pipe for each of two signals.
    assert_eq!(line(&mut stdout).await, "9");
    assert_eq!(line(&mut stdout).await, "end");
    assert!(!holds(secret));
    assert!(!holds("an-argument-of-another-program"));
}

/// The heap and the stack of a process.
fn memory(pid: i32) -> String {
    use std::os::unix::fs::FileExt as _;
    let maps = fs::read_to_string(format!("/proc/{pid}/maps")).expect("its maps");
    let file = fs::File::open(format!("/proc/{pid}/mem")).expect("its memory");
    let mut all = Vec::new();
    for map in maps
        .lines()
        .filter(|line| line.contains("[heap]") || line.contains("[stack]"))
    {
        let (from, to) = map
            .split(' ')
            .next()
            .and_then(|range| range.split_once('-'))
            .expect("a range");
        let [from, to] = [from, to].map(|at| u64::from_str_radix(at, 16).expect("an address"));
        let mut bytes = vec![0; usize::try_from(to - from).expect("a size")];
        file.read_exact_at(&mut bytes, from)
            .expect("a mapped range");
        all.extend(bytes);
    }
    String::from_utf8_lossy(&all).into_owned()
}
