//! How a program ends, and how it is ended.

use std::time::{Duration, Instant};

use proctor_contain::process::ProcessExit;
use tokio::time::timeout;

use crate::stage::{LIMIT, Stage, line, until};

#[tokio::test]
async fn an_exit_code_and_a_signal_are_passed_on() {
    let stage = Stage::new();
    let check = async |script: &str, expected: ProcessExit| {
        assert_eq!(stage.script(script).wait().await, expected, "{script}");
    };
    check("exit 0", ProcessExit::Exited(0)).await;
    check("exit 3", ProcessExit::Exited(3)).await;
    check("exit 255", ProcessExit::Exited(255)).await;
    for signal in [1, 2, 3, 6, 9, 10, 11, 13, 15, 31, 40] {
        check(
            &format!("kill -{signal} $$"),
            ProcessExit::Signalled(signal),
        )
        .await;
    }
    // Its whole group, but not the guard.
    let kill_all = "mkfifo f; setsid sh -c 'echo >f; sleep 1000' & read line <f; kill -9 0";
    check(kill_all, ProcessExit::Signalled(9)).await;
    assert_eq!(stage.left(), [""; 0]);
}

#[tokio::test]
async fn stop_lets_a_program_end_by_itself_when_its_input_ends() {
    let stage = Stage::new();
    let process = stage.script("cat; seq 100000; exit 7");
    assert_eq!(process.stop(LIMIT).await, ProcessExit::Exited(7));
    assert_eq!(stage.left(), [""; 0]);
}

#[tokio::test]
async fn stop_terminates_a_program_that_stays() {
    let stage = Stage::new();
    let script = "trap 'exit 9' TERM; echo ready; while :; do sleep 0.01; done";
    let mut spawn = stage.spawn("sh", &["-c", script]);
    spawn.grace = LIMIT;
    let mut process = spawn.start().unwrap();
    assert_eq!(line(process.stdout.as_mut().unwrap()).await, "ready");
    assert_eq!(process.stop(Duration::ZERO).await, ProcessExit::Exited(9));
    assert_eq!(stage.left(), [""; 0]);
}

#[tokio::test]
async fn a_program_that_ignores_sigterm_is_killed_after_the_grace() {
    let stage = Stage::new();
    let mut process = stage.script("trap '' TERM; echo ready; sleep 1000; sleep 1000");
    assert_eq!(line(process.stdout.as_mut().unwrap()).await, "ready");
    let asked = Instant::now();
    assert_eq!(
        process.stop(Duration::ZERO).await,
        ProcessExit::Signalled(9)
    );
    assert!(asked.elapsed() >= Duration::from_millis(50));
    assert_eq!(stage.left(), [""; 0]);
}

#[tokio::test]
async fn a_stopped_program_hears_sigterm_too() {
    let stage = Stage::new();
    let mut spawn = stage.spawn(
        "sh",
        &[
            "-c",
            "trap 'exit 8' TERM; echo $$; kill -STOP $$; sleep 1000",
        ],
    );
    spawn.grace = LIMIT;
    let mut process = spawn.start().unwrap();
    let pid = line(process.stdout.as_mut().unwrap()).await;
    until("the program has stopped", || state(&pid).starts_with('T')).await;
    assert_eq!(
        process.stop(Duration::from_millis(50)).await,
        ProcessExit::Exited(8)
    );
}

/// The state of a process, as `ps` prints it.
fn state(pid: &str) -> String {
    let listed = std::process::Command::new("ps")
        .args(["-o", "state=", "-p", pid])
        .output();
    String::from_utf8(listed.expect("ps").stdout).expect("a state")
}

#[tokio::test]
async fn asking_twice_skips_the_grace() {
    let stage = Stage::new();
    let mut spawn = stage.spawn(
        "sh",
        &[
            "-c",
            "trap 'touch told' TERM; echo ready; while :; do sleep 0.01; done",
        ],
    );
    spawn.grace = LIMIT * 10;
    let mut process = spawn.start().unwrap();
    assert_eq!(line(process.stdout.as_mut().unwrap()).await, "ready");
    process.end();
    until("the program was told", || stage.has("told")).await;
    process.end();
    let ended = timeout(LIMIT, process.wait()).await.expect("no grace");
    assert_eq!(ended, ProcessExit::Signalled(9));
}

#[tokio::test]
async fn what_a_program_starts_to_clean_up_is_not_terminated() {
    let stage = Stage::new();
    let clean = "sh -c 'sleep 0.2 && touch cleaned'";
    let script = format!("trap \"{clean}; exit 6\" TERM; echo ready; while :; do sleep 0.01; done");
    let mut spawn = stage.spawn("sh", &["-c", &script]);
    spawn.grace = LIMIT;
    let mut process = spawn.start().unwrap();
    assert_eq!(line(process.stdout.as_mut().unwrap()).await, "ready");
    assert_eq!(process.stop(Duration::ZERO).await, ProcessExit::Exited(6));
    assert!(stage.has("cleaned"));
}

#[tokio::test]
async fn a_dropped_process_ends() {
    let stage = Stage::new();
    let mut process = stage.script("trap '' TERM; setsid sleep 1000 & echo ready; sleep 1000");
    assert_eq!(line(process.stdout.as_mut().unwrap()).await, "ready");
    drop(process);
    stage.clears().await;
}

#[tokio::test]
async fn a_process_dropped_at_once_ends() {
    let stage = Stage::new();
    drop(stage.script("setsid sleep 1000 & sleep 1000"));
    stage.clears().await;
}
