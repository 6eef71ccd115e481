//! Trees of processes that detach themselves, ignore SIGTERM, and grow.

use std::time::Duration;

use proctor_contain::process::ProcessExit;
use tokio::task::JoinSet;
use tokio::time::sleep;

use crate::stage::{Stage, line};
use crate::staying::a_chain_ends;

/// Ignores SIGTERM (which is inherited), starts sessions, forks twice.
const TREE: &str = "trap '' TERM
setsid sh -c 'sleep 1000 & wait' &
(setsid sh -c '(sleep 1000 &); sleep 1000' &)
(sleep 1000 &)
echo ready
sleep 1000";

#[tokio::test]
async fn a_daemon_ends_with_the_program_that_started_it() {
    let stage = Stage::new();
    let mut process = stage.script("(setsid sh -c '(sleep 1000 >/dev/null 2>&1 &)' &); exit 6");
    assert_eq!(process.wait().await, ProcessExit::Exited(6));
    assert_eq!(stage.left(), [""; 0]);
}

#[tokio::test]
async fn helpers_that_are_started_all_the_time_end() {
    let stage = Stage::new();
    // Bounded, for the case that the guard fails.
    let script = "trap '' TERM; i=0; while [ $i -lt 2000 ]; do setsid sleep 30 & i=$((i+1)); [ $i = 20 ] && echo ready; sleep 0.005; done";
    let mut process = stage.script(script);
    assert_eq!(line(process.stdout.as_mut().unwrap()).await, "ready");
    assert_eq!(
        process.stop(Duration::ZERO).await,
        ProcessExit::Signalled(9)
    );
    assert_eq!(stage.left(), [""; 0]);
}

#[tokio::test]
#[cfg_attr(
    feature = "posix",
    ignore = "a chain of sessions outruns a guard without a subreaper"
)]
async fn a_chain_in_which_each_process_outlives_its_parent_ends() {
    a_chain_ends("setsid").await;
}

#[tokio::test]
#[cfg(feature = "posix")]
async fn a_detached_program_that_cleared_its_environment_is_ended_and_reported() {
    let stage = Stage::new().with_sleeper();
    let script = "setsid env -i NAME=1 ./SLEEPER 1000 & echo ready; wait";
    let mut process = stage.script(&script.replace("SLEEPER", &stage.sleeper()));
    assert_eq!(line(process.stdout.as_mut().unwrap()).await, "ready");
    // Under the shell it is seen, and stays known after the shell is gone.
    let is_named = |line: &String| line.contains(&stage.sleeper());
    crate::stage::until("it runs", || stage.left().iter().any(is_named)).await;
    let stderr = process.stderr();
    process.stop(Duration::ZERO).await;
    assert_eq!(stage.left(), [""; 0]);
    let said = stderr.redacted(&proctor_record::redact::Redactor::default());
    assert!(
        said.contains("cleared its environment: processes that it detached"),
        "{said}"
    );
}

#[tokio::test(flavor = "current_thread")]
async fn of_two_hundred_hostile_trees_nothing_is_left() {
    let stage = std::sync::Arc::new(Stage::new());
    let mut running = JoinSet::new();
    for number in 0..200 {
        if running.len() == 8 {
            running.join_next().await.unwrap().unwrap();
        }
        let stage = stage.clone();
        running.spawn(async move {
            match number % 4 {
                0 => {
                    let mut process = stage.script(TREE);
                    assert_eq!(line(process.stdout.as_mut().unwrap()).await, "ready");
                    assert_eq!(
                        process.stop(Duration::ZERO).await,
                        ProcessExit::Signalled(9)
                    );
                }
                1 => {
                    let process = stage.script(TREE);
                    sleep(Duration::from_millis(number / 4)).await;
                    drop(process);
                }
                // Kills Proctor when the tree stands.
                2 => {
                    let mut proctor =
                        stage.stand_in(&format!("$GUARD --parent $$ -- sh -c \"{TREE}\" & wait"));
                    assert_eq!(line(proctor.stdout.as_mut().unwrap()).await, "ready");
                    proctor.kill().await.unwrap();
                }
                // Kills Proctor while the guard starts or the tree grows.
                _ => {
                    let mut proctor =
                        stage.stand_in(&format!("$GUARD --parent $$ -- sh -c \"{TREE}\" & wait"));
                    sleep(Duration::from_millis(number / 4)).await;
                    proctor.kill().await.unwrap();
                }
            }
        });
    }
    while let Some(done) = running.join_next().await {
        done.unwrap();
    }
    stage.clears().await;
}
