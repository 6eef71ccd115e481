//! Servers that die, hang, flood and say too much.

use std::path::Path;
use std::time::Duration;

use proctor_record::event::FindingKind;
use proctor_wire::proxy::{Admission, Bridge};
use proctor_wire::recorder::Recorder;
use serde_json::{Value, json};

use super::host::Host;
use super::http::Http;
use super::stage::{Stage, command, eventually, fixture, options};

/// The most memory that a bridge may take, whatever a server sends.
const MEMORY_KIB: u64 = 150 * 1024;

/// What text on stdout is taken for: text in brackets looks like a message.
const NOISE: [FindingKind; 2] = [FindingKind::Noise, FindingKind::Malformed];

fn echo(id: u64) -> Value {
    let params = json!({"name": "echo", "arguments": {"text": "hi"}});
    json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params})
}

#[tokio::test]
async fn a_server_that_dies_is_told_of_and_its_session_is_gone() {
    let modes = [
        ("exit-before-handshake=3", "exited with code 3"),
        ("exit-in-handshake=4", "exited with code 4"),
        ("exit-in-call=5", "exited with code 5"),
        ("kill-in-call", "was killed by signal 9 (SIGKILL)"),
        ("torn-line=6", "exited with code 6"),
        ("exit-between-calls=7", "exited with code 7"),
    ];
    for (mode, expected) in modes {
        let stage = Stage::on_fixture(&["--era", "handshake", "--mode", mode]).await;
        if mode.contains("handshake") {
            let message = json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {}});
            let reply = stage.http().post(&message).await;
            reply.fails(expected).await;
        } else {
            let (client, _) = stage.http().initialize().await;
            let reply = client.post(&echo(1)).await;
            if mode.contains("between") {
                assert_eq!(reply.status, 200);
            } else {
                reply.fails(expected).await;
            }
            let mut status = 0;
            for id in 2..200 {
                status = client.post(&echo(id)).await.status;
                if status == 404 {
                    break;
                }
            }
            assert_eq!(status, 404, "{mode}");
        }
        let record = stage.end().await;
        let closed = &record.closed()[0];
        assert_eq!(closed.reason, expected);
    }
}

#[tokio::test]
async fn a_stream_breaks_when_the_server_dies_in_the_middle() {
    let log = r#"{"jsonrpc":"2.0","method":"notifications/message","params":{}}"#;
    let script = format!("read line; echo '{log}'; sleep 0.2; exit 7");
    let stage = Stage::new(&command("sh", &["-c", &script]), Admission::Open).await;
    let mut reply = stage.http().post(&echo(1)).await;
    assert!(reply.is_stream());
    assert_eq!(reply.event().await.unwrap().to_string(), log);
    assert!(reply.is_cut().await);
    let record = stage.end().await;
    assert_eq!(record.closed()[0].reason, "exited with code 7");
}

#[tokio::test]
async fn what_is_shared_is_started_anew() {
    let args = ["--era", "stateless", "--mode", "exit-between-calls"];
    let stage = Stage::on_fixture(&args).await;
    let mut answered = 0;
    for id in 1..200 {
        answered += u32::from(stage.http().post(&echo(id)).await.status == 200);
        if answered == 3 {
            break;
        }
    }
    let record = stage.end().await;
    assert_eq!((answered, record.processes()), (3, 3));
}

#[tokio::test]
async fn a_server_that_can_not_be_started_is_told_of() {
    let stage = Stage::new(&command("no-such-program", &[]), Admission::Open).await;
    let reply = stage.http().post(&echo(1)).await;
    assert_eq!(reply.status, 502);
    assert!(reply.text().await.contains("no-such-program"));
    let record = stage.end().await;
    assert!(record.closed()[0].reason.contains("no-such-program"));
}

#[tokio::test]
async fn noise_is_recorded_and_not_passed_on() {
    for mode in [
        "banner",
        "log-noise",
        "blank-lines",
        "bom",
        "crlf",
        "split-write",
    ] {
        let stage = Stage::on_fixture(&["--mode", mode]).await;
        let reply = stage.http().post(&echo(1)).await;
        assert_eq!(reply.json().await["id"], json!(1), "{mode}");
        let record = stage.end().await;
        let found = &record.folded.findings;
        let is_noisy = mode != "split-write";
        assert_eq!(
            found.iter().any(|f| NOISE.contains(&f.kind)),
            is_noisy,
            "{mode}: {found:?}"
        );
    }
}

#[tokio::test]
async fn a_server_that_hangs_does_not_keep_the_bridge() {
    for mode in [
        "never-answer=tools/call",
        "never-reads-stdin",
        "ignores-stdin-close",
    ] {
        let stage = Stage::on_fixture(&["--mode", mode]).await;
        let reply = stage.http().post(&echo(1)).await;
        if mode.starts_with("never") {
            assert!(reply.is_stream(), "{mode}");
        } else {
            assert_eq!(reply.json().await["id"], json!(1), "{mode}");
        }
        let record = stage.end().await;
        assert_eq!(record.processes(), 1);
    }
}

#[tokio::test]
async fn a_line_that_is_too_long_is_cut_in_the_record_and_its_call_ends() {
    let stage = Stage::on_fixture(&["--mode", "big-result=50000000", "--times", "1"]).await;
    let reply = stage.http().post(&echo(1)).await;
    reply.fails("too large").await;
    assert_eq!(stage.http().post(&echo(2)).await.status, 200);
    let record = stage.end().await;
    assert_eq!(record.found(FindingKind::TooLarge).len(), 1);
}

#[tokio::test]
async fn a_line_that_never_ends_takes_no_memory() {
    let host = Host::start(&["--mode", "endless-line=1000000000"]);
    assert!(host.http.post(&echo(1)).await.is_stream());
    eventually("enough of the line", || host.read() > 400_000_000).await;
    assert!(host.peak_kib() < MEMORY_KIB, "{} KiB", host.peak_kib());
}

#[tokio::test]
async fn large_answers_pass_whole() {
    let host = Host::start(&["--mode", "big-result=30000000"]);
    for id in 1..4 {
        let reply = host.http.post(&echo(id)).await;
        let mut reply = reply;
        let size = if reply.is_stream() {
            reply.event().await.unwrap().to_string().len()
        } else {
            reply.text().await.len()
        };
        assert!(size > 30_000_000);
    }
    assert!(host.peak_kib() < MEMORY_KIB, "{} KiB", host.peak_kib());
}

#[tokio::test]
async fn a_flood_waits_for_who_does_not_read() {
    let host = Host::start(&["--mode", "flood-notifications=5000000"]);
    let mut reply = host.http.post(&echo(1)).await;
    assert!(reply.is_stream());
    let mut last = 0;
    while last != host.read() {
        last = host.read();
        tokio::time::sleep(Duration::from_millis(500)).await;
    }
    assert!(last < 50_000_000, "{last} bytes were read");
    assert!(host.peak_kib() < MEMORY_KIB, "{} KiB", host.peak_kib());
    // It goes on where it was.
    for _ in 0..1000 {
        let event = reply.event().await.unwrap();
        assert_eq!(event["method"], "notifications/message");
    }
}

#[tokio::test]
async fn nothing_is_left_whether_the_bridge_is_closed_or_killed() {
    let modes = [
        "--mode",
        "spawns-children=FILE",
        "--mode",
        "ignores-sigterm",
        "--mode",
        "ignores-stdin-close",
    ];
    for is_killed in [false, true] {
        let pids = tempfile::NamedTempFile::new().unwrap();
        let file = format!("spawns-children={}", pids.path().display());
        let args: Vec<&str> = modes
            .iter()
            .map(|mode| {
                if mode.contains("FILE") {
                    file.as_str()
                } else {
                    mode
                }
            })
            .collect();
        let mut host = Host::start(&args);
        assert_eq!(host.http.post(&echo(1)).await.status, 200);
        let pids = three_pids(pids.path()).await;
        let lives = |pid: &String| Path::new(&format!("/proc/{pid}")).exists();
        assert!(pids.iter().all(lives));
        if is_killed {
            host.child.kill().unwrap();
        } else {
            drop(host.child.stdin.take());
        }
        host.child.wait().unwrap();
        eventually("the end of all", || !pids.iter().any(lives)).await;
    }
}

#[tokio::test]
async fn a_bridge_that_is_dropped_leaves_nothing() {
    let pids = tempfile::NamedTempFile::new().unwrap();
    let file = format!("spawns-children={}", pids.path().display());
    let server = fixture(&["--mode", &file]);
    let options = options(Recorder::nothing());
    let bridge = Bridge::start(&server, &options, 0, Admission::Header)
        .await
        .unwrap();
    assert_eq!(Http::to(&bridge).post(&echo(1)).await.status, 200);
    let pids = three_pids(pids.path()).await;
    drop(bridge);
    let lives = |pid: &String| Path::new(&format!("/proc/{pid}")).exists();
    eventually("the end of all", || !pids.iter().any(lives)).await;
}

/// The processes that the fixture started, once all are there.
async fn three_pids(file: &Path) -> Vec<String> {
    let mut pids = Vec::new();
    eventually("the third process", || {
        let text = std::fs::read_to_string(file).unwrap_or_default();
        pids = text.split_whitespace().map(ToOwned::to_owned).collect();
        pids.len() == 3
    })
    .await;
    pids
}
