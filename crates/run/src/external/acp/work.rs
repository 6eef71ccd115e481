//! Runs an assignment: starts the agent's program and exchanges messages until it is done.

use std::time::Duration;

use super::client::{AcpClient, LineOutcome};
use super::policy::Policy;
use super::{Acp, Assignment};
use crate::external::{AgentReport, Post, RunningAgent, WorkError};
use proctor_wire::transport::lines::LineWriter;

/// The maximum number of queued messages. An agent that sends more requests without reading gets no
/// answers.
pub(super) const QUEUE: usize = 1024;

/// The grace period for an agent after its stdin is closed.
const EXIT_WAIT: Duration = Duration::from_secs(3);

/// The timeout for reading its remaining output.
const READ_TIMEOUT: Duration = Duration::from_secs(15);

/// Runs an assignment without a time limit. If the future is dropped, the agent is told to stop and
/// then ended.
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
    let patience = if leaves { EXIT_WAIT } else { Duration::ZERO };
    let stderr = process.stderr();
    let last_words = async { while stdout.next().await.is_some() {} };
    // Only processes that even the guard could not end hold the stream for so long.
    let last_words = tokio::time::timeout(READ_TIMEOUT, last_words);
    let (ended, _) = tokio::join!(process.stop(patience), last_words);
    let stderr = stderr.redacted(post.recorder.redactor());
    let (report, rest) = session.client.end(ended, &stderr);
    for claim in rest {
        post.claimed(claim);
    }
    post.ended(ended, &report, &stderr);
    Ok(report)
}

/// A client and its channel to the agent. Dropping it tells the agent to stop.
struct AcpSession {
    client: AcpClient,
    writer: LineWriter<()>,
}

impl AcpSession {
    fn send(&self, message: Vec<u8>) {
        // The reader notices that the agent is gone.
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
