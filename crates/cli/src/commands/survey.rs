//! What several servers offer, for commands without trials.
//!
//! Main functions: [`survey`] and [`survey_suite`]. A server that does not return a list ends the command as
//! inconclusive.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::path::Path;

use anyhow::bail;
use proctor_core::contract::SurfaceContent;
use proctor_core::suite::{Inputs, LoadedFile, Server, Suite, Workspace, load_any};
use proctor_record::event::Surface;
use proctor_record::json;
use proctor_record::problem::{Code, Problems};
use proctor_record::redact::Redactor;
use proctor_wire::client::ListLimits;

use super::session::{CommandOutcome, find_servers, with_servers};
use super::{drawn, environment, tally};
use crate::args::ServerArgs;
use crate::exit::{Exit, ReportedExit};
use crate::output;

/// What servers offer, each with its name in the config, without secrets.
pub(super) struct OfferedServers(pub(super) Vec<(String, Surface)>);

impl OfferedServers {
    /// The canonical form of each server. The error says why a server has none.
    pub(super) fn contents(&self) -> Result<BTreeMap<String, SurfaceContent>, String> {
        let content = |(name, surface): &(String, Surface)| {
            let content = SurfaceContent::of(surface);
            let content = content.map_err(|error| format!("the server `{name}`: {error}"))?;
            Ok((name.clone(), content))
        };
        self.0.iter().map(content).collect()
    }
}

/// Asks the servers of the flags what they offer. `run` also learns whether they are all servers of the config.
pub(super) fn survey<F>(args: &ServerArgs, name: &str, run: F) -> anyhow::Result<Exit>
where
    F: FnOnce(OfferedServers, bool) -> anyhow::Result<CommandOutcome>,
{
    let servers = find_servers(args)?;
    let is_whole = args.server.is_none();
    ask(args, &servers, None, name, |offered| run(offered, is_whole))
}

/// Asks the servers of a suite what they offer.
pub(super) fn survey_suite<F>(
    file: &Path,
    args: &ServerArgs,
    name: &str,
    run: F,
) -> anyhow::Result<Exit>
where
    F: FnOnce(OfferedServers, &Suite) -> anyhow::Result<CommandOutcome>,
{
    let suite = suite(file)?;
    // A server may need its workspace to start.
    let mut workspaces = suite
        .cases
        .iter()
        .filter_map(|case| case.workspace.as_deref());
    let workspace = workspaces.next();
    ask(args, &suite.servers, workspace, name, |offered| {
        run(offered, &suite)
    })
}

fn ask<F>(
    args: &ServerArgs,
    servers: &[Server],
    workspace: Option<&Workspace>,
    name: &str,
    run: F,
) -> anyhow::Result<Exit>
where
    F: FnOnce(OfferedServers) -> anyhow::Result<CommandOutcome>,
{
    if servers.is_empty() {
        bail!("there is no server to ask");
    }
    let collected = RefCell::new(Vec::new());
    with_servers(
        args,
        servers,
        workspace,
        name,
        async |server, client, redactor| match client.surface(&ListLimits::default()).await {
            Ok(surface) => {
                let entry = (server.name.clone(), redacted(&surface, redactor)?);
                collected.borrow_mut().push(entry);
                Ok(CommandOutcome::ok())
            }
            Err(error) => Ok(CommandOutcome::because(
                Exit::Inconclusive,
                format!("the server `{}`: {error}", server.name),
            )),
        },
        |_| run(OfferedServers(collected.take())),
    )
}

/// The surface without secrets: it goes into files and reports.
fn redacted(surface: &Surface, redactor: &Redactor) -> anyhow::Result<Surface> {
    let text = serde_json::to_string(surface)?;
    Ok(json::from_str(&redactor.text(&text))?)
}

/// The suite of a file. If it has errors, shows them and fails with [`ReportedExit`].
fn suite(file: &Path) -> anyhow::Result<Suite> {
    let env = environment();
    let inputs = Inputs {
        env: &env,
        source_roots: &BTreeMap::new(),
        runs: None,
        mcp_config: None,
        judge_given: false,
    };
    let mut problems = Problems::default();
    let loaded = load_any(file, &inputs, &mut problems);
    problems.promote(Code::UnsetVariable);
    output::message(&drawn(&problems))?;
    if problems.has_errors() {
        output::message(&format!("{}: {}\n", file.display(), tally(&problems)))?;
        return Err(ReportedExit(Exit::Usage).into());
    }
    match loaded {
        Some(LoadedFile::Suite(suite)) => Ok(*suite),
        _ => bail!("`{}` is not an eval file", file.display()),
    }
}
