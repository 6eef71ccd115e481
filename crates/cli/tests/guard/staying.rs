//! Programs that do all they can to be left behind, but stay in their session: every system ends these.

use std::fs;
use std::time::Duration;

use proctor_contain::process::ProcessExit;
use tokio::task::JoinSet;
use tokio::time::timeout;

use crate::stage::{LIMIT, Stage, line};

/// What they do, and how. `SLEEPER` is found by its name.
const STAYING: [(&str, &str); 8] = [
    ("fork", "sleep 1000 & echo ready; sleep 1000"),
    (
        "fork twice",
        "(sh -c 'sleep 1000 & wait' &); echo ready; exit 0",
    ),
    (
        "ignore signals",
        "trap '' TERM HUP INT QUIT; sleep 1000 & echo ready; sleep 1000",
    ),
    (
        "close all streams",
        "(exec <&- 2>&- >&-; trap '' TERM; sleep 1000) & echo ready; exec <&- 2>&- >&-; sleep 1000",
    ),
    (
        "stop",
        "(trap '' TERM; sh -c 'kill -STOP $$'; sleep 1000) & echo ready; kill -STOP $$; sleep 1000",
    ),
    (
        "run another program",
        "(exec sleep 1000) & echo ready; exec sleep 1000",
    ),
    (
        "clear the environment",
        "(exec env -i ./SLEEPER 1000) & echo ready; exec env -i NAME=1 ./SLEEPER 1000",
    ),
    (
        "groups of its own",
        "set -m; (trap '' TERM; sleep 1000 & sleep 1000) & sleep 1000 & echo ready; sleep 1000",
    ),
];

#[tokio::test(flavor = "current_thread")]
async fn of_two_hundred_hostile_programs_that_stay_in_their_session_nothing_is_left() {
    let stage = std::sync::Arc::new(Stage::new().with_sleeper());
    let mut running = JoinSet::new();
    for number in 0..200 {
        if running.len() == 8 {
            running.join_next().await.unwrap().unwrap();
        }
        let stage = stage.clone();
        running.spawn(async move {
            let (_, script) = STAYING[number % STAYING.len()];
            let file = format!("./{number}.sh");
            let script = script.replace("SLEEPER", &stage.sleeper());
            fs::write(stage.folder.path().join(&file), script).unwrap();
            let start = || stage.spawn("sh", &[&file]).start().expect("a shell starts");
            match number / STAYING.len() % 4 {
                0 => {
                    let mut process = start();
                    assert_eq!(line(process.stdout.as_mut().unwrap()).await, "ready");
                    process.stop(Duration::ZERO).await;
                }
                1 => drop(start()),
                // Kills Proctor when the program is ready, or while it starts.
                way => {
                    let mut proctor =
                        stage.stand_in(&format!("$GUARD --parent $$ -- sh {file} & wait"));
                    if way == 2 {
                        assert_eq!(line(proctor.stdout.as_mut().unwrap()).await, "ready");
                    }
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

#[tokio::test]
async fn a_chain_that_stays_in_its_session_ends() {
    a_chain_ends("").await;
}

/// Starts a chain of processes, each of which starts the next one and ends; it must stop with the program.
pub async fn a_chain_ends(start: &str) {
    let stage = Stage::new();
    let at = stage.folder.path().join("at");
    let link =
        format!("trap '' TERM\necho $1 >at\n[ $1 = 0 ] || {start} sh ./link $(($1 - 1)) &\n");
    fs::write(stage.folder.path().join("link"), link).expect("a file");
    let mut process = stage.script("sh ./link 5000");
    let ended = timeout(LIMIT, process.wait()).await.expect("an end");
    assert_eq!(ended, ProcessExit::Exited(0));
    let reached = fs::read_to_string(&at).expect("a number");
    assert_ne!(reached, "0\n", "the chain came to its own end");
    // A link lives too short to be seen in each look.
    for _ in 0..20 {
        stage.clears().await;
    }
    assert_eq!(fs::read_to_string(&at).expect("a number"), reached);
}
