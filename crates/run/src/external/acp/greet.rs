//! Greets an agent and lets it go: what answers `initialize` can be started and speaks the protocol.

use std::path::Path;
use std::time::Duration;

use proctor_core::redact::Redactor;
use proctor_core::suite::Environment;
use serde_json::Value;
use tokio::io::AsyncWriteExt;

use super::client::Client;
use super::policy::Policy;
use super::{Access, Acp, Assignment};
use proctor_contain::process::{GRACE, Spawn};
use proctor_wire::transport::frames::{Line, Lines};

/// The longest line that is read.
const LONGEST: usize = 1 << 20;

/// How long an agent may take to end when its stdin is closed.
const PATIENCE: Duration = Duration::from_millis(500);

/// Starts an agent, greets it and ends it: the version that it gives itself, or why it does not work.
pub(crate) async fn greet(
    acp: Acp<'_>,
    env: &Environment,
    folder: &Path,
    guard: &Path,
) -> Result<Option<String>, String> {
    let assignment = Assignment {
        prompt: String::new(),
        servers: Vec::new(),
        access: Access::default(),
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
    let (mut client, mut first) = Client::new(acp.dialect(), plan.opening, policy);
    let spawn = Spawn {
        program: plan.launch.program.into(),
        args: plan.launch.args.iter().map(Into::into).collect(),
        env: plan.launch.env,
        folder: folder.to_owned(),
        guard: guard.to_owned(),
        grace: GRACE,
    };
    let mut process = spawn.start().map_err(|error| error.to_string())?;
    let (Some(mut stdin), Some(stdout)) = (process.stdin.take(), process.stdout.take()) else {
        return Err("its pipes could not be opened".to_owned());
    };
    first.push(b'\n');
    // One that does not read has ended, or does not answer.
    let _ = stdin.write_all(&first).await;
    let version = answer(&mut client, &mut Lines::new(stdout, LONGEST)).await;
    drop(stdin);
    let stderr = process.stderr();
    let ended = process.stop(PATIENCE).await;
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

/// Reads up to the answer, and takes the version from it; `None` if there is no answer that will do.
async fn answer(
    client: &mut Client,
    lines: &mut Lines<tokio::process::ChildStdout>,
) -> Option<Option<String>> {
    while let Ok(Some(line)) = lines.next().await {
        let Line::Whole(line) = line else { continue };
        client.line(&line);
        if client.is_greeted() {
            let answer: Value = serde_json::from_slice(&line).unwrap_or_default();
            let version = answer["result"]["agentInfo"]["version"].as_str();
            return Some(version.map(str::to_owned));
        }
        if client.is_done() {
            break;
        }
    }
    None
}
