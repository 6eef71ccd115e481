//! Trees of processes that detach themselves, ignore SIGTERM, and grow.

use std::fs;
use std::time::Duration;

use proctor_contain::process::Ended;
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};

use crate::stage::{LIMIT, Stage, line};

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
    assert_eq!(process.wait().await, Ended::Exited(6));
    assert_eq!(stage.left(), [""; 0]);
}

#[tokio::test]
async fn helpers_that_are_started_all_the_time_end() {
    let stage = Stage::new();
    // Bounded, for the case that the guard fails.
    let script = "trap '' TERM; i=0; while [ $i -lt 2000 ]; do setsid sleep 30 & i=$((i+1)); [ $i = 20 ] && echo ready; sleep 0.005; done";
    let mut process = stage.script(script);
    assert_eq!(line(process.stdout.as_mut().unwrap()).await, "ready");
    assert_eq!(process.stop(Duration::ZERO).await, Ended::Signalled(9));
    assert_eq!(stage.left(), [""; 0]);
}

#[tokio::test]
async fn a_chain_in_which_each_process_outlives_its_parent_ends() {
    let stage = Stage::new();
    let file = stage.folder.path().join("link");
    let link = "trap '' TERM\n[ $1 = 0 ] && touch last || setsid sh ./link $(($1 - 1)) &\n";
    fs::write(&file, link).unwrap();
    let mut process = stage.script("sh ./link 5000");
    let ended = timeout(LIMIT, process.wait()).await.expect("an end");
    assert_eq!(ended, Ended::Exited(0));
    assert_eq!(stage.left(), [""; 0]);
    assert!(!stage.has("last"), "the chain came to its own end");
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
                    assert_eq!(process.stop(Duration::ZERO).await, Ended::Signalled(9));
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
