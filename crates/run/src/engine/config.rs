//! The configuration of a run for its record, with agents, servers and task sets as result files
//! show them.

use std::time::Duration;

use proctor_core::contract::SurfaceContract;
use proctor_core::plan::PlanOptions;
use proctor_core::suite::agent::AgentKind;
use proctor_core::suite::server::{Transport, command_line};
use proctor_core::suite::{Agent, JudgeConfig, JudgeModel, Server, Suite, TaskSource};
use proctor_record::duration;
use proctor_record::event::{
    AgentConfig, RunConfig, ServerConfig, SourceConfig, SurfaceConfig, TimeoutConfig,
};

/// The configuration of a run of this suite with `workers` parallel trials.
pub(super) fn config(suite: &Suite, options: &PlanOptions, workers: u32) -> RunConfig {
    let folder = std::env::current_dir().unwrap_or_default();
    let flags = &options.limits;
    let shown = |time: Option<Duration>| time.map(duration::render);
    let defaults = &suite.default_limits;
    RunConfig {
        folder: folder.display().to_string(),
        agents: suite.agents.iter().map(agent).collect(),
        judge: suite.judge.as_ref().map(judge),
        servers: suite.servers.iter().map(server).collect(),
        task_sets: suite.task_sets.clone(),
        sources: suite.sources.iter().map(source).collect(),
        surface: suite.surface.as_ref().map(surface),
        skills: suite
            .skills
            .iter()
            .map(|path| path.display().to_string())
            .collect(),
        timeouts: TimeoutConfig {
            default_task: shown(flags.default_timeout.or(defaults.timeout)),
            task: shown(flags.timeout),
            default_cleanup: shown(flags.default_cleanup_timeout.or(defaults.cleanup_timeout)),
            cleanup: shown(flags.cleanup_timeout),
        },
        workers,
    }
}

fn source(source: &TaskSource) -> SourceConfig {
    SourceConfig {
        name: source.name.clone(),
        repo: source.repo.clone(),
        reference: source.reference.clone(),
        commit: source.pin().map(|pin| pin.commit.clone()),
    }
}

fn surface(contract: &SurfaceContract) -> SurfaceConfig {
    SurfaceConfig {
        lock: contract.path.display().to_string(),
        allow: contract.allow.clone(),
        max_schema_tokens: contract.max_schema_tokens,
    }
}

fn agent(agent: &Agent) -> AgentConfig {
    let (builtin, model, command) = match &agent.kind {
        AgentKind::Builtin { builtin, model, .. } => (Some(*builtin), model.as_ref(), None),
        AgentKind::Acp { cmd, args } => {
            let words = std::iter::once(cmd).chain(args).map(String::as_str);
            (None, None, Some(command_line(words)))
        }
        AgentKind::Commands(commands) => (None, None, Some(commands.run_prompt.clone())),
        AgentKind::Nobody => (None, None, None),
    };
    let kind = match (&agent.path, builtin) {
        (Some(_), _) => "file".to_owned(),
        (None, Some(builtin)) => builtin.type_name(),
        (None, None) => String::new(),
    };
    AgentConfig {
        kind,
        name: agent.name.clone(),
        model: model.map(ToString::to_string),
        path: agent.path.as_ref().map(|path| path.display().to_string()),
        command,
    }
}

fn judge(judge: &JudgeConfig) -> AgentConfig {
    match &judge.model {
        JudgeModel::Agent(model) => agent(model),
        JudgeModel::Environment { .. } => AgentConfig {
            name: super::planning::judge_name(judge),
            ..AgentConfig::default()
        },
    }
}

fn server(server: &Server) -> ServerConfig {
    let (kind, url, command) = match &server.transport {
        // Arguments can contain credentials; the program can't.
        Transport::Stdio { command, .. } => ("stdio", None, Some(command.clone())),
        Transport::Http { url, .. } => ("http", Some(as_written(server, url)), None),
        Transport::Sse { url, .. } => ("sse", Some(as_written(server, url)), None),
    };
    ServerConfig {
        name: server.name.clone(),
        kind: kind.to_owned(),
        url: url.map(|url| without_credentials(&url)),
        command,
    }
}

/// The URL as written in the file, so that the values of environment variables stay out of the
/// record.
fn as_written(server: &Server, expanded: &str) -> String {
    if server.written.contains("${") {
        server.written.clone()
    } else {
        expanded.to_owned()
    }
}

/// A URL without user, query and fragment.
fn without_credentials(url: &str) -> String {
    let url = url.split(['?', '#']).next().unwrap_or(url);
    let Some((scheme, rest)) = url.split_once("://") else {
        return url.to_owned();
    };
    let (authority, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
    let host = authority.rsplit('@').next().unwrap_or(authority);
    format!("{scheme}://{host}{path}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_url_is_recorded_without_credentials() {
        let check = |url: &str, expected: &str| assert_eq!(without_credentials(url), expected);
        check("http://h:1/mcp", "http://h:1/mcp");
        check("https://u:p@h/mcp?key=k#f", "https://h/mcp");
        check("https://u:p@q@h?x=@y", "https://h");
        check("${URL}", "${URL}");
        check("http://h/a@b", "http://h/a@b");
    }
}
