//! Programs that leave others running on purpose.

use proctor_contain::process::{LingeringProcess, ProcessExit};

use crate::stage::{Stage, until};

fn lingering(stage: &Stage, script: &str) -> LingeringProcess {
    let spawn = stage.spawn("sh", &["-c", script]);
    spawn.start_lingering().expect("a shell starts")
}

#[tokio::test]
async fn what_a_program_left_goes_on_until_it_is_stopped() {
    let stage = Stage::new();
    let script = "(trap '' TERM; touch begun; setsid sleep 1000) & exit 3";
    let mut program = lingering(&stage, script);
    assert_eq!(program.ended().await, ProcessExit::Exited(3));
    until("the other one has begun", || stage.has("begun")).await;
    assert!(!program.is_over());
    program.stop().await;
    stage.clears().await;
}

#[tokio::test]
async fn a_program_that_left_nothing_is_over() {
    let check = async |script: &str, expected: ProcessExit| {
        let stage = Stage::new();
        let mut program = lingering(&stage, script);
        assert_eq!(program.ended().await, expected);
        stage.clears().await;
        until("the guard has ended", || program.is_over()).await;
    };
    check("cat", ProcessExit::Exited(0)).await;
    check("exit 255", ProcessExit::Exited(255)).await;
    check("kill -TERM $$", ProcessExit::Signalled(15)).await;
    check("setsid sh -c 'sleep 0.1' &", ProcessExit::Exited(0)).await;
}

#[tokio::test]
async fn dropping_it_ends_the_program_and_what_it_left() {
    let stage = Stage::new();
    drop(lingering(&stage, "setsid sleep 1000 & sleep 1000"));
    stage.clears().await;
    let mut program = lingering(&stage, "setsid sleep 1000 &");
    assert_eq!(program.ended().await, ProcessExit::Exited(0));
    drop(program);
    stage.clears().await;
}
