//! What goes through the standard streams.

use proctor_contain::process::ProcessExit;
use proctor_record::redact::Redactor;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::time::timeout;

use crate::stage::{LIMIT, Stage, line};

#[tokio::test]
async fn a_mebibyte_passes_both_ways_unchanged() {
    let stage = Stage::new();
    let mut process = stage.spawn("cat", &[]).start().unwrap();
    let sent: Vec<u8> = (0..1 << 20)
        .map(|at: u32| (at ^ (at >> 8)).to_le_bytes()[0])
        .collect();
    let mut stdin = process.stdin.take().unwrap();
    let mut stdout = process.stdout.take().unwrap();
    let mut received = Vec::new();
    let write = async {
        stdin.write_all(&sent).await.unwrap();
        drop(stdin);
    };
    let ((), read) = tokio::join!(write, stdout.read_to_end(&mut received));
    read.unwrap();
    assert!(received == sent);
    assert_eq!(process.wait().await, ProcessExit::Exited(0));
}

#[tokio::test]
async fn closed_streams_are_seen_while_the_program_runs_on() {
    let stage = Stage::new();
    let mut process = stage.script("exec <&- >&-; exec sleep 1000");
    let mut rest = Vec::new();
    let mut stdout = process.stdout.take().unwrap();
    timeout(LIMIT, stdout.read_to_end(&mut rest))
        .await
        .expect("the end of stdout")
        .unwrap();
    // The pipe breaks; a guard that held it would take 64 KiB and then block.
    let mut stdin = process.stdin.take().unwrap();
    let sent = vec![0; 1 << 20];
    let sent = timeout(LIMIT, stdin.write_all(&sent)).await;
    assert!(sent.expect("the end of stdin").is_err());
    assert_eq!(
        process.stop(std::time::Duration::ZERO).await,
        ProcessExit::Signalled(15)
    );
}

#[tokio::test]
async fn stdout_ends_though_a_grandchild_held_it() {
    let stage = Stage::new();
    let mut process = stage.script("trap '' TERM; setsid sleep 1000 & echo ready; exit 5");
    let mut said = String::new();
    let mut stdout = process.stdout.take().unwrap();
    timeout(LIMIT, stdout.read_to_string(&mut said))
        .await
        .expect("the end of stdout")
        .unwrap();
    assert_eq!(said, "ready\n");
    assert_eq!(process.wait().await, ProcessExit::Exited(5));
    assert_eq!(stage.left(), [""; 0]);
}

#[tokio::test]
async fn a_flood_on_stderr_is_drained_and_its_end_kept() {
    let stage = Stage::new();
    let flood = "head -c 50000000 /dev/zero | tr '\\0' x >&2; echo >&2; echo the end >&2; echo done; read line";
    let mut process = stage.script(flood);
    assert_eq!(line(process.stdout.as_mut().unwrap()).await, "done");
    assert_eq!(process.stop(LIMIT).await, ProcessExit::Exited(1));

    let mut process = stage.script(flood);
    process.stdin = None;
    assert_eq!(process.wait().await, ProcessExit::Exited(1));
    let tail = process.stderr_tail(&Redactor::default());
    assert_eq!(tail.len(), 64 * 1024);
    assert!(tail.ends_with("xxx\nthe end\n"));
}
