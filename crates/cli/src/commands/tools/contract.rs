//! `proctor tools --lock` and `--against`.

use std::path::Path;
use std::sync::Arc;

use anyhow::bail;
use proctor_core::contract::{SurfaceContent, SurfaceContract, SurfaceLock};
use proctor_record::hint::listed;
use proctor_report::contract as report;

use super::super::session::CommandOutcome;
use super::super::survey::survey;
use super::super::target::Target;
use crate::args::{ToolsArgs, ToolsFormat};
use crate::exit::Exit;
use crate::output;

/// Writes what the servers offer to a file.
pub(super) fn lock(args: &ToolsArgs, path: &Path) -> anyhow::Result<Exit> {
    // Before a server is started: an unwritable path is an error at once.
    let target = Target::open(path)?;
    survey(&args.server, "tools", |offered, _| {
        let inconclusive = |reason| Ok(CommandOutcome::because(Exit::Inconclusive, reason));
        let contents = match offered.contents() {
            Ok(contents) => contents,
            Err(reason) => return inconclusive(reason),
        };
        for (server, content) in &contents {
            if content.is_empty() {
                let reason = format!("the server `{server}` has no tools, resources or prompts");
                return inconclusive(reason);
            }
            if let Some(reason) = content.unknown_list() {
                return inconclusive(format!("the server `{server}` {reason}"));
            }
        }
        let text = SurfaceLock::render(&contents);
        target.write(|out| Ok(out.write_all(text.as_bytes())?))?;
        let count = |of: fn(&SurfaceContent) -> usize| contents.values().map(of).sum::<usize>();
        output::result(&format!(
            "wrote `{}`: {}, {}, {}, {}\n",
            path.display(),
            super::super::counted(contents.len(), "server"),
            super::super::counted(count(|content| content.tools.len()), "tool"),
            super::super::counted(
                count(|content| content.resources.len() + content.resource_templates.len()),
                "resource"
            ),
            super::super::counted(count(|content| content.prompts.len()), "prompt"),
        ))?;
        Ok(CommandOutcome::ok())
    })
}

/// Compares the servers with a lock.
pub(super) fn against(args: &ToolsArgs, path: &Path) -> anyhow::Result<Exit> {
    let contract = SurfaceContract {
        path: path.to_owned(),
        lock: Arc::new(SurfaceLock::load(path)?),
        allow: args.allow.clone(),
        max_schema_tokens: args.max_schema_tokens,
    };
    // A server that the lock does not have would be compared with nothing.
    if let Some(server) = &args.server.server
        && !contract.lock.servers.contains_key(server)
    {
        let known = listed(contract.lock.servers.keys().map(String::as_str));
        bail!("the surface lock has no server `{server}`; it has {known}");
    }
    survey(&args.server, "tools", |offered, is_whole| {
        let contents = match offered.contents() {
            Ok(contents) => contents,
            Err(reason) => return Ok(CommandOutcome::because(Exit::Inconclusive, reason)),
        };
        if let Some(reason) = contract.lock.mismatch(&contents) {
            return Ok(CommandOutcome::because(Exit::Usage, reason));
        }
        let judged = match contract.judge(&contents, is_whole) {
            Ok(judged) => judged,
            Err(reason) => return Ok(CommandOutcome::because(Exit::Inconclusive, reason)),
        };
        let lock = path.display().to_string();
        match args.output {
            ToolsFormat::Text => output::report(&report::text(&judged))?,
            ToolsFormat::Json => output::json(&report::document(&judged, &lock))?,
            ToolsFormat::Markdown => output::result(&report::markdown(&judged))?,
            ToolsFormat::Github => output::ci_result(&report::github(&judged, &lock))?,
        }
        Ok(if judged.is_kept() {
            CommandOutcome::ok()
        } else {
            CommandOutcome::because(Exit::Failed, judged.sentence())
        })
    })
}
