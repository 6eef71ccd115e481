//! Checks an agent by `initialize`: one that answers can be started and speaks the protocol.

use std::path::Path;
use std::time::Duration;

use proctor_core::suite::Environment;
use proctor_record::redact::Redactor;

use super::client::AcpClient;
use super::policy::Policy;
use super::work::QUEUE;
use super::{Acp, Assignment, ModelAccess};
use proctor_contain::process::{GRACE, Spawn};
use proctor_wire::transport::frames::{LineReader, StreamLine};
use proctor_wire::transport::lines::LineWriter;

/// The maximum length of a line.
const LONGEST: usize = 1 << 20;

/// The grace period for an agent after its stdin is closed.
const EXIT_WAIT: Duration = Duration::from_millis(500);

/// Starts an agent, sends `initialize`, ends the agent, and returns its version or why it is
/// broken.
pub(crate) async fn greet(
    acp: Acp<'_>,
    env: &Environment,
    folder: &Path,
    guard: &Path,
) -> Result<Option<String>, String> {
    let assignment = Assignment {
        prompt: String::new(),
        servers: Vec::new(),
        access: ModelAccess::default(),
        folder: folder.to_owned(),
        skills: None,
        home: folder.to_owned(),
        environment: env.clone(),
        max_turns: None,
    };
    let plan = acp
        .prepare(&assignment)
        .map_err(|unfit| unfit.to_string())?;
    let policy = Policy::new(acp.dialect(), &assignment, None);
    let (mut client, first) = AcpClient::new(acp.dialect(), plan.opening, policy);
    let spawn = Spawn {
        program: plan.launch.program.into(),
        args: plan.launch.args.iter().map(Into::into).collect(),
        env: plan.launch.env,
        folder: folder.to_owned(),
        guard: guard.to_owned(),
        grace: GRACE,
    };
    let mut process = spawn.start().map_err(|error| error.to_string())?;
    let (Some(stdin), Some(stdout)) = (process.stdin.take(), process.stdout.take()) else {
        return Err("can't open its pipes".to_owned());
    };
    let writer = LineWriter::start(stdin, QUEUE, None, || {});
    writer.send_soon((), first);
    let version = answer(&mut client, &mut LineReader::new(stdout, LONGEST)).await;
    writer.close();
    let stderr = process.stderr();
    let ended = process.stop(EXIT_WAIT).await;
    match (
        version,
        client
            .end(ended, &stderr.text(&Redactor::from_environment(env)))
            .0
            .error,
    ) {
        (Some(version), _) => Ok(version),
        (None, error) => Err(error.unwrap_or_else(|| format!("it {ended}"))),
    }
}

/// Reads up to the answer, and returns the version in it; `None` without a usable answer.
async fn answer(
    client: &mut AcpClient,
    lines: &mut LineReader<tokio::net::unix::pipe::Receiver>,
) -> Option<Option<String>> {
    while let Ok(Some(line)) = lines.next().await {
        let StreamLine::Whole(line) = line else {
            continue;
        };
        client.line(&line);
        if client.is_greeted() {
            return Some(client.agent_version.take());
        }
        if client.is_done() {
            break;
        }
    }
    None
}
