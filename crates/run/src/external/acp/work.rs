//! Has an agent do its assignment: starts its program and speaks to it until it is done.

use std::time::Duration;

use super::client::{AcpClient, LineOutcome};
use super::policy::Policy;
use super::{Acp, Assignment};
use crate::external::{AgentReport, Post, RunningAgent, WorkError};
use proctor_wire::transport::lines::LineWriter;

/// How many messages may wait to be written. An agent that asks more without reading is not answered.
pub(super) const QUEUE: usize = 1024;

/// How long an agent may take to end when its stdin is closed.
const PATIENCE: Duration = Duration::from_secs(3);

/// How long what it writes then is read.
const LAST_WORDS: Duration = Duration::from_secs(15);

/// Has an agent do its assignment. There is no time limit; when the future is dropped, the agent is told
/// to stop, and ended.
pub(crate) async fn work(
    acp: Acp<'_>,
    assignment: &Assignment,
    post: &Post<'_>,
) -> Result<AgentReport, WorkError> {
    let plan = acp.prepare(assignment)?;
    let dialect = acp.dialect();
    let skill_tool = acp.skills().map(|(_, tool)| tool);
    let policy = Policy::new(dialect, assignment, skill_tool);
    let RunningAgent {
        stdin,
        mut stdout,
        process,
    } = RunningAgent::start(&plan.launch, post)?;
    let (client, first) = AcpClient::new(dialect, plan.opening, policy);
    let mut session = AcpSession {
        client,
        writer: LineWriter::start(stdin, QUEUE, None, || {}),
    };
    session.send(first);
    while !session.client.is_done() {
        let Some(line) = stdout.next().await else {
            break;
        };
        let LineOutcome { send, claims } = session.client.line(&line);
        for claim in claims {
            post.claimed(claim);
        }
        for message in send {
            session.send(message);
        }
    }
    session.writer.close();
    let leaves = acp.preset().is_none_or(|preset| preset.leaves);
    let patience = if leaves { PATIENCE } else { Duration::ZERO };
    let stderr = process.stderr();
    let last_words = async { while stdout.next().await.is_some() {} };
    // Only what even the guard could not end holds the stream for so long.
    let last_words = tokio::time::timeout(LAST_WORDS, last_words);
    let (ended, _) = tokio::join!(process.stop(patience), last_words);
    let stderr = stderr.redacted(post.recorder.redactor());
    let (told, rest) = session.client.end(ended, &stderr);
    for claim in rest {
        post.claimed(claim);
    }
    post.ended(ended, &told, &stderr);
    Ok(told)
}

/// A client and the way to its agent. Whoever drops it tells the agent to stop.
struct AcpSession {
    client: AcpClient,
    writer: LineWriter<()>,
}

impl AcpSession {
    fn send(&self, message: Vec<u8>) {
        // An agent that has gone is noticed by the reader.
        self.writer.send_soon((), message);
    }
}

impl Drop for AcpSession {
    fn drop(&mut self) {
        if let Some(cancel) = self.client.cancel() {
            self.send(cancel);
        }
    }
}
