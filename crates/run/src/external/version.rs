//! Asks an agent's program for its version, once.

use std::path::Path;
use std::time::Duration;

use proctor_core::suite::Environment;
use tokio::io::AsyncReadExt;

use super::{Adapter, External};
use crate::process::{GRACE, Spawn};

/// How long an answer may take: nothing waits for one for long.
const PATIENCE: Duration = Duration::from_secs(15);

/// The longest version.
const LONGEST: usize = 200;

impl External {
    /// The version that the agent gives itself, if it gives one.
    pub(crate) async fn version(
        &self,
        env: &Environment,
        folder: &Path,
        guard: &Path,
    ) -> Option<&str> {
        let asking = self.version.get_or_init(async || {
            let (program, args) = self.question()?;
            let spawn = Spawn {
                program: program.into(),
                args: args.iter().map(Into::into).collect(),
                env: env.clone(),
                folder: folder.to_owned(),
                guard: guard.to_owned(),
                grace: GRACE,
            };
            tokio::time::timeout(PATIENCE, ask(spawn)).await.ok()?
        });
        asking.await.as_deref()
    }

    /// The command that prints it.
    fn question(&self) -> Option<(String, Vec<String>)> {
        let words = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect();
        match self.adapter()? {
            Adapter::Cli(cli) => Some((cli.program().to_owned(), words(&["--version"]))),
            Adapter::Acp(acp) => Some((acp.program().to_owned(), words(acp.version()?))),
            Adapter::Commands(commands) => {
                let command = commands.version.as_deref()?;
                Some(("sh".to_owned(), words(&["-c", command])))
            }
        }
    }
}

/// The first line that a program prints.
async fn ask(spawn: Spawn) -> Option<String> {
    let mut process = spawn.start().ok()?;
    process.stdin = None;
    let mut stdout = process.stdout.take()?;
    let mut printed = Vec::new();
    let mut limited = (&mut stdout).take(LONGEST as u64 * 4);
    limited.read_to_end(&mut printed).await.ok()?;
    let printed = String::from_utf8_lossy(&printed);
    let line = printed
        .lines()
        .map(str::trim)
        .find(|line| !line.is_empty())?;
    Some(line[..line.floor_char_boundary(LONGEST)].to_owned())
}
