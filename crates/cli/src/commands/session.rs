//! One connection to one server, for commands without trials.
//!
//! Its main function is [`with_client`]: whatever happens, it stops the server and ends the record.

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::{Context, bail};
use proctor_core::suite::auth::Auth;
use proctor_core::suite::protocol::ProtocolPin;
use proctor_core::suite::server::{AllowedTools, ClientSettings, Transport, command_line};
use proctor_core::suite::{Inputs, LoadedFile, Server, Workspace, load_any};
use proctor_record::event::{Actor, Outcome, TrialEnded};
use proctor_record::hint::listed;
use proctor_record::problem::Problems;
use proctor_record::redact::Redactor;
use proctor_run::engine::recording::SessionRecording;
use proctor_run::trial_folder::TrialFolder;
use proctor_wire::client::{Client, ConnectOptions};
use proctor_wire::recorder::Recorder;

use super::stops::StopSignals;
use super::{drawn, engine, environment, tally};
use crate::args::ServerArgs;
use crate::exit::{Exit, ReportedExit};
use crate::output;
use crate::threads;

/// The maximum length of a reason, in bytes: the end of a server's stderr, and a bit more.
const REASON: usize = 80 << 10;

/// The exit code of a command, with its error message.
pub(super) struct CommandOutcome {
    pub(super) exit: Exit,
    pub(super) reason: Option<String>,
}

impl CommandOutcome {
    pub(super) fn ok() -> Self {
        Self {
            exit: Exit::Ok,
            reason: None,
        }
    }

    pub(super) fn because(exit: Exit, reason: impl Into<String>) -> Self {
        Self {
            exit,
            reason: Some(reason.into()),
        }
    }
}

/// Connects, runs a command with the connection, and closes everything again.
pub(super) fn with_client<F>(args: &ServerArgs, name: &str, run: F) -> anyhow::Result<Exit>
where
    F: AsyncFnOnce(&Client, &Redactor) -> anyhow::Result<CommandOutcome>,
{
    let server = speaking(find_server(args)?, args.protocol);
    let mut run = Some(run);
    with_servers(
        args,
        std::slice::from_ref(&server),
        None,
        name,
        async |_, client, redactor| match run.take() {
            Some(run) => run(client, redactor).await,
            None => Ok(CommandOutcome::ok()),
        },
        |_| Ok(CommandOutcome::ok()),
    )
}

/// Connects to one server after the other in a folder with the content of a workspace, runs `each` with every
/// connection, then `last`. The first outcome other than success ends the command.
pub(super) fn with_servers<F, L>(
    args: &ServerArgs,
    servers: &[Server],
    workspace: Option<&Workspace>,
    name: &str,
    mut each: F,
    last: L,
) -> anyhow::Result<Exit>
where
    F: AsyncFnMut(&Server, &Client, &Redactor) -> anyhow::Result<CommandOutcome>,
    L: FnOnce(&Redactor) -> anyhow::Result<CommandOutcome>,
{
    // The record and the output use the same redactor.
    let engine = engine()?;
    let redactor = engine.redactor(servers);
    let runtime = threads::one_worker()?;
    // Before the first byte is written: a file size limit must be an error, not end the process.
    let mut stops = {
        let _inside = runtime.enter();
        StopSignals::listen().context("can't listen for signals")?
    };
    let record = match &args.record {
        Some(folder) => Some(SessionRecording::at(&engine, folder, name, &redactor)?),
        None => None,
    };
    let recorder = record
        .as_ref()
        .map_or_else(Recorder::nothing, |r| r.recorder.clone())
        .redacting(&redactor);
    let folder = TrialFolder::new(name);
    let options = engine.connect_options(
        Actor::Person,
        recorder,
        &args.pass_env,
        args.timeouts.timeouts(),
        &folder,
    );
    let done = runtime.block_on(async {
        if let Err(error) = folder.prepare(workspace).await {
            let reason = error.to_string();
            return Ok(CommandOutcome::because(Exit::Inconclusive, reason));
        }
        for server in servers {
            let done = talk(server, &options, args.strict, &mut stops, async |client| {
                each(server, client, &redactor).await
            });
            let done = done.await?;
            if done.exit != Exit::Ok {
                return Ok(done);
            }
        }
        last(&redactor)
    });
    // Guards end the processes; the runtime waits for them while it shuts down.
    runtime.shutdown_timeout(std::time::Duration::from_secs(5));
    conclude(done, record, &redactor)
}

/// Ends the record, prints the error, and gives the exit code.
fn conclude(
    done: anyhow::Result<CommandOutcome>,
    record: Option<SessionRecording>,
    redactor: &Redactor,
) -> anyhow::Result<Exit> {
    let (done, error) = match done {
        Ok(done) => (done, None),
        // If the result could not be shown, the record still gets an end.
        Err(error) => {
            let done = CommandOutcome::because(Exit::Inconclusive, error.to_string());
            (done, Some(error))
        }
    };
    // The reason comes from the server and may be long.
    let done = CommandOutcome {
        reason: done
            .reason
            .map(|reason| redactor.head(reason.as_bytes(), REASON)),
        ..done
    };
    let kept = record.map_or(Ok(()), |record| record.end(ending(&done), done.exit.code()));
    if let Some(error) = error {
        return Err(error);
    }
    if let Some(reason) = &done.reason {
        let reason = redactor.text(reason);
        output::message(&format!("error: {}\n", output::printable_lines(&reason)))?;
    }
    let Err(error) = kept else {
        return Ok(done.exit);
    };
    let error = anyhow::Error::new(error).context("the record is incomplete");
    output::error(&error, redactor);
    Ok(match done.exit {
        Exit::Interrupted => Exit::Interrupted,
        // Without a complete record, the result is inconclusive.
        _ => Exit::Inconclusive,
    })
}

async fn talk<F>(
    server: &Server,
    options: &ConnectOptions,
    strict: bool,
    stops: &mut StopSignals,
    run: F,
) -> anyhow::Result<CommandOutcome>
where
    F: AsyncFnOnce(&Client) -> anyhow::Result<CommandOutcome>,
{
    let interrupted = || Ok(CommandOutcome::because(Exit::Interrupted, "interrupted"));
    let connected = tokio::select! {
        connected = Client::connect(server, options) => connected,
        () = stops.next() => return interrupted(),
    };
    let client = match connected {
        Ok(client) => client,
        Err(error) => {
            return Ok(CommandOutcome::because(
                Exit::Inconclusive,
                error.to_string(),
            ));
        }
    };
    let done = tokio::select! {
        done = run(&client) => done,
        () = stops.next() => interrupted(),
    };
    let findings = client.findings();
    tokio::select! {
        () = client.close() => {}
        // The guard ends the server.
        () = stops.next() => return interrupted(),
    }
    match (done, findings.first()) {
        (Ok(done), Some((_, detail, _))) if strict && done.exit == Exit::Ok => {
            let reason = format!("the server breaks the protocol: {detail}");
            Ok(CommandOutcome::because(Exit::Failed, reason))
        }
        // A response that can't be read is none.
        (Ok(done), Some((_, detail, _))) if done.exit == Exit::Inconclusive => {
            let reason = done.reason.unwrap_or_default();
            let reason = format!("{reason}; the server broke the protocol: {detail}");
            Ok(CommandOutcome::because(Exit::Inconclusive, reason))
        }
        (done, _) => done,
    }
}

/// The servers that the flags name: with `--config` and without `--server`, all of them.
pub(super) fn find_servers(args: &ServerArgs) -> anyhow::Result<Vec<Server>> {
    let servers = match (&args.config, &args.server) {
        (Some(config), None) => from_config(config)?,
        _ => vec![find_server(args)?],
    };
    let servers = servers.into_iter();
    Ok(servers
        .map(|server| speaking(server, args.protocol))
        .collect())
}

/// The server with the protocol that `--protocol` pins, if it is given.
pub(super) fn speaking(mut server: Server, protocol: Option<ProtocolPin>) -> Server {
    server.client.protocol = protocol.or(server.client.protocol);
    server
}

/// The server that the flags name.
fn find_server(args: &ServerArgs) -> anyhow::Result<Server> {
    if let Some(url) = &args.url {
        return Ok(at_url(url, &args.headers));
    }
    if let Some(server) = of_command(&args.command)? {
        return Ok(server);
    }
    let Some(config) = &args.config else {
        bail!("no server given; add `-- COMMAND…`, `--url URL` or `--config FILE`");
    };
    let servers = from_config(config)?;
    let found = match (&args.server, &servers[..]) {
        (Some(name), _) => named(&servers, name, config)?,
        (None, [only]) => only.clone(),
        (None, _) => bail!(
            "the config has several servers; choose one with `--server`: {}",
            listed(servers.iter().map(|s| s.name.as_str()))
        ),
    };
    Ok(found)
}

/// A server with a URL. It gets the token of a stored login, unless the headers have one.
pub(super) fn at_url(url: &str, headers: &[(String, String)]) -> Server {
    let has_token = (headers.iter()).any(|(name, _)| name.eq_ignore_ascii_case("authorization"));
    Server {
        name: "server".to_owned(),
        transport: Transport::Http {
            url: url.to_owned(),
            headers: headers.iter().cloned().collect(),
        },
        allowed: AllowedTools::All,
        auth: (!has_token).then_some(Auth::Login { is_required: false }),
        client: ClientSettings::default(),
        written: url.to_owned(),
    }
}

/// A server that a command starts, if the command line has one.
pub(super) fn of_command(words: &[String]) -> anyhow::Result<Option<Server>> {
    let Some((command, rest)) = words.split_first() else {
        return Ok(None);
    };
    Ok(Some(Server {
        name: "server".to_owned(),
        transport: Transport::Stdio {
            command: command.clone(),
            args: rest.to_vec(),
            env: BTreeMap::new(),
            folder: std::env::current_dir().context("can't determine the working directory")?,
            cwd: None,
        },
        allowed: AllowedTools::All,
        auth: None,
        client: ClientSettings::default(),
        written: command_line(words.iter().map(String::as_str)),
    }))
}

/// The servers of an MCP config. If it has errors, shows them and fails with [`ReportedExit`].
pub(super) fn from_config(config: &Path) -> anyhow::Result<Vec<Server>> {
    let env = environment();
    let mut problems = Problems::default();
    let inputs = Inputs {
        env: &env,
        source_roots: &BTreeMap::new(),
        runs: None,
        mcp_config: None,
        judge_given: false,
    };
    let loaded = load_any(config, &inputs, &mut problems);
    problems.promote(proctor_record::problem::Code::UnsetVariable);
    output::message(&drawn(&problems))?;
    if problems.has_errors() {
        output::message(&format!("{}: {}\n", config.display(), tally(&problems)))?;
        return Err(ReportedExit(Exit::Usage).into());
    }
    let Some(LoadedFile::Servers(servers)) = loaded else {
        bail!("`{}` is not an MCP config", config.display());
    };
    Ok(servers)
}

pub(super) fn named(servers: &[Server], name: &str, config: &Path) -> anyhow::Result<Server> {
    let found = servers.iter().find(|server| server.name == name);
    found.cloned().with_context(|| {
        let names = listed(servers.iter().map(|s| s.name.as_str()));
        let config = config.display();
        format!("`{config}` has no server `{name}`; it has {names}")
    })
}

/// The end of the command's only trial.
fn ending(done: &CommandOutcome) -> TrialEnded {
    TrialEnded {
        outcome: match done.exit {
            Exit::Ok => Outcome::Passed,
            Exit::Failed => Outcome::Failed,
            Exit::Interrupted => Outcome::Cancelled,
            _ => Outcome::Errored,
        },
        reason: done.reason.clone(),
        blame: None,
    }
}
