//! What happens when Proctor, played by a shell, goes away.

use rustix::process::{Pid, Signal, kill_process_group};
use tokio::io::AsyncWriteExt;

use crate::stage::{Stage, line};

#[tokio::test]
async fn nothing_is_left_when_proctor_is_killed() {
    let stage = Stage::new();
    let script = "$GUARD --parent $$ -- sh -c \"$TREE\" & wait";
    let tree = "TREE=\"trap '' TERM; setsid sleep 1000 & (sleep 1000 &); echo ready; sleep 1000\"";
    let mut proctor = stage.stand_in(&format!("{tree}; {script}"));
    assert_eq!(line(proctor.stdout.as_mut().unwrap()).await, "ready");
    proctor.kill().await.unwrap();
    stage.clears().await;
}

#[tokio::test]
async fn nothing_is_left_of_what_lingers_when_proctor_is_killed() {
    let stage = Stage::new();
    let tree = "TREE=\"trap '' TERM; setsid sleep 1000 & echo ready\"";
    let script = "$GUARD --parent $$ --linger -- sh -c \"$TREE\" & wait";
    let mut proctor = stage.stand_in(&format!("{tree}; {script}"));
    assert_eq!(line(proctor.stdout.as_mut().unwrap()).await, "ready");
    proctor.kill().await.unwrap();
    stage.clears().await;
}

#[tokio::test]
async fn a_guard_whose_parent_is_gone_starts_nothing() {
    let stage = Stage::new();
    // The inner shell ends before its guard starts, and the outer one is not the guard's parent.
    let script =
        "sh -c '(while kill -0 $$; do :; done; exec $GUARD --parent $$ -- touch started) 2>said &'";
    let output = stage.stand_in(script).wait_with_output().await.unwrap();
    assert!(output.status.success());
    stage.clears().await;
    assert!(!stage.has("started"));
    let said = std::fs::read_to_string(stage.folder.path().join("said")).unwrap();
    assert!(
        said.ends_with("proctor guard: the process that started `touch` has exited\n"),
        "{said}"
    );
}

#[tokio::test]
async fn a_guard_refuses_a_parent_that_is_not_its_own() {
    let stage = Stage::new();
    let output = stage.stand_in("$GUARD --parent 1 -- touch started 2>&1; echo $?");
    let said = output.wait_with_output().await.unwrap().stdout;
    let said = String::from_utf8(said).unwrap();
    assert_eq!(
        said,
        "proctor guard: the process that started `touch` has exited\n125\n"
    );
    assert!(!stage.has("started"));
}

#[tokio::test]
async fn ctrl_c_reaches_only_proctor() {
    let stage = Stage::new();
    let server = "echo ready; read line; echo got $line; kill -INT $$";
    let script = format!("trap 'echo heard' INT; $GUARD --parent $$ -- sh -c '{server}'; echo $?");
    let mut proctor = stage.stand_in(&script);
    let mut stdout = proctor.stdout.take().unwrap();
    assert_eq!(line(&mut stdout).await, "ready");
    // The terminal would signal the foreground group, which the stand-in leads.
    let group = Pid::from_raw(proctor.id().unwrap().cast_signed()).unwrap();
    kill_process_group(group, Signal::INT).unwrap();
    proctor
        .stdin
        .as_mut()
        .unwrap()
        .write_all(b"it\n")
        .await
        .unwrap();
    assert_eq!(line(&mut stdout).await, "got it");
    // It would have died of it.
    assert_eq!(line(&mut stdout).await, "heard");
    assert_eq!(line(&mut stdout).await, "130");
    proctor.wait().await.unwrap();
    stage.clears().await;
}
