//! The changes of a run as lines of JSON, while they happen.

use std::sync::Arc;
use std::time::{Duration, Instant};

use proctor_wire::site::ChunkSender;
use serde_json::json;

use super::live::{Known, LiveRun, POLL};
use super::patch;

/// How long a stream is silent at most, so that both sides notice a lost connection.
const SILENCE: Duration = Duration::from_secs(15);

/// Sends what changed after a revision, then every further change, until the client leaves.
pub(super) async fn follow(run: Arc<LiveRun>, mut revision: u64, sender: ChunkSender) {
    let mut error: Option<String> = None;
    // Firefox takes a response only with its first byte, so one is sent at once.
    let mut sent: Option<Instant> = None;
    loop {
        let known = run.followed().await;
        let line = line(&known, &mut revision, &mut error);
        let line = match line {
            Some(line) => Some(line),
            None if sent.is_none_or(|at| at.elapsed() > SILENCE) => Some(Vec::new()),
            None => None,
        };
        if let Some(mut line) = line {
            line.push(b'\n');
            if !sender.send(line).await {
                return;
            }
            sent = Some(Instant::now());
        }
        // A large run is compared with its trials after its first page is there.
        if let Ok(snapshot) = known
            && !snapshot.status.is_checked
            && !snapshot.status.is_active
        {
            drop(snapshot);
            drop(run.checked().await);
            continue;
        }
        tokio::select! {
            () = tokio::time::sleep(POLL) => {}
            () = sender.closed() => return,
        }
    }
}

/// The next line; `None` if there is nothing new.
fn line(known: &Known, revision: &mut u64, error: &mut Option<String>) -> Option<Vec<u8>> {
    match known {
        Ok(snapshot) => {
            // A snapshot after an error has a new number, so the page takes back its message.
            *error = None;
            let patch = patch::since(snapshot, *revision)?;
            *revision = snapshot.revision;
            serde_json::to_vec(&patch).ok()
        }
        Err(message) if error.as_ref() == Some(message) => None,
        Err(message) => {
            *error = Some(message.clone());
            serde_json::to_vec(&json!({ "error": message })).ok()
        }
    }
}
