//! Resolves MCP servers from an MCP config or from the environment.
//!
//! Its main type is [`Server`].

mod texts;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use proctor_record::json;
use proctor_record::problem::{Code, Problem, Problems, WithSpan};
use serde::Serialize;

pub(super) use self::texts::TextScope;
use super::Isolation;
use super::auth::{self, Auth};
use super::files::FileOrigin;
use super::mcp_file::{McpFile, ServerFile, TransportWord};
use super::protocol::ProtocolPin;
use super::replies::{ClientReplies, WrittenReplies};
use super::step::values::FillError;
use super::trial_values::{TRIAL_DIR, TrialValues};
use super::variables::Environment;
use crate::decode::Context;

/// An MCP server under test.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Server {
    /// The name that checks and steps use.
    pub name: String,
    #[serde(flatten)]
    pub transport: Transport,
    /// The tools that an agent may use without permission.
    pub allowed: AllowedTools,
    /// Where the token comes from that Proctor sends to the server.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub auth: Option<Auth>,
    /// How Proctor's client speaks to it.
    #[serde(flatten)]
    pub client: ClientSettings,
    /// The command or URL as the file has it, without values from the environment.
    #[serde(skip)]
    pub written: String,
}

/// How Proctor's client speaks to a server. It has no effect on external agents.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct ClientSettings {
    /// The protocol to use; by default the newest that the server supports.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub protocol: Option<ProtocolPin>,
    /// The replies to the server's own requests.
    #[serde(flatten)]
    pub replies: ClientReplies,
}

/// The transport of a server, with its settings.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "type", rename_all = "lowercase")]
pub enum Transport {
    /// A process that speaks MCP on its stdin and stdout.
    Stdio {
        command: String,
        args: Vec<String>,
        env: BTreeMap<String, String>,
        /// The folder of the MCP config.
        folder: PathBuf,
        /// The folder it runs in, relative to that of the MCP config, which is the default.
        #[serde(skip_serializing_if = "Option::is_none")]
        cwd: Option<String>,
    },
    Http {
        url: String,
        headers: BTreeMap<String, String>,
    },
    /// HTTP+SSE, the transport of older servers.
    Sse {
        url: String,
        headers: BTreeMap<String, String>,
    },
}

impl Transport {
    /// The transport in a trial: with its templates filled in, with its `cwd` as its folder, and
    /// with the variable that names the trial's folder. A server that all trials share has none.
    pub fn in_trial(&self, trial: Option<&TrialValues>) -> Result<Self, FillError> {
        let fill = |text: &String| trial.map_or_else(|| Ok(text.clone()), |trial| trial.fill(text));
        let fill_all = |texts: &BTreeMap<String, String>| {
            let filled = texts
                .iter()
                .map(|(name, text)| Ok((name.clone(), fill(text)?)));
            filled.collect::<Result<BTreeMap<_, _>, _>>()
        };
        Ok(match self {
            Self::Stdio {
                command,
                args,
                env,
                folder,
                cwd,
            } => {
                let mut env = fill_all(env)?;
                if let Some(trial) = trial {
                    env.entry(TRIAL_DIR.to_owned())
                        .or_insert_with(|| trial.dir.clone());
                }
                Self::Stdio {
                    command: fill(command)?,
                    args: args.iter().map(fill).collect::<Result<_, _>>()?,
                    env,
                    folder: match cwd {
                        Some(cwd) => folder.join(fill(cwd)?),
                        None => folder.clone(),
                    },
                    cwd: None,
                }
            }
            Self::Http { url, headers } => Self::Http {
                url: fill(url)?,
                headers: fill_all(headers)?,
            },
            Self::Sse { url, headers } => Self::Sse {
                url: fill(url)?,
                headers: fill_all(headers)?,
            },
        })
    }
}

/// The tools that an agent may use without permission.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum AllowedTools {
    All,
    Only(Vec<String>),
}

/// The servers of an MCP config, and the names of disabled ones.
#[derive(Debug, Default)]
pub struct Servers {
    /// Those that take part.
    pub enabled: Vec<Server>,
    /// The names of those that do not.
    pub disabled: Vec<String>,
}

/// Resolves an MCP config.
pub fn resolve(
    file: &McpFile,
    env: &Environment,
    isolation: Isolation,
    cx: &Context<'_>,
) -> Servers {
    let scope = TextScope {
        env,
        isolation,
        has_templates: true,
        cx,
    };
    let mut servers = Servers::default();
    let Some(table) = file.servers.get() else {
        return servers;
    };
    if table.0.is_empty() {
        let problem = Problem::error(Code::Missing, "no server is declared");
        cx.report(table.span, problem);
    }
    for (name, written) in table.iter() {
        if written.disabled == Some(true) {
            servers.disabled.push(name.value.clone());
        } else if let Some(server) = resolve_server(name, written, &scope) {
            servers.enabled.push(server);
        }
    }
    servers
}

fn resolve_server(
    name: &WithSpan<String>,
    file: &WithSpan<ServerFile>,
    scope: &TextScope<'_>,
) -> Option<Server> {
    let cx = scope.cx;
    auth::refuse_conflicts(&file.auth, file.url.is_some(), &file.headers.0, cx);
    let transport = match (&file.command, &file.url) {
        (Some(command), None) => {
            refuse_other_transport(file, &[TransportWord::Stdio], "command", cx);
            warn_of_unused(file, "command", cx);
            scope.check_templates(&command.value, command.span);
            if command.value.contains("${") {
                let message = "variables are not expanded in `command`";
                let problem = Problem::warning(Code::Value, message);
                cx.report(
                    command.span,
                    problem.hint("use variables in `args`, `env`, `url` or `headers`"),
                );
            }
            Transport::Stdio {
                command: command.value.clone(),
                args: file
                    .args
                    .iter()
                    .map(|arg| scope.expand(&arg.value.0, arg.span))
                    .collect(),
                env: scope.expand_table(&file.env),
                folder: working_folder(cx.source.folder()),
                cwd: file
                    .cwd
                    .as_ref()
                    .map(|cwd| scope.expand(&cwd.value, cwd.span)),
            }
        }
        (None, Some(url)) => {
            refuse_other_transport(file, &[TransportWord::Http, TransportWord::Sse], "url", cx);
            warn_of_unused(file, "url", cx);
            let expanded = scope.expand(&url.value, url.span);
            if !expanded.is_empty() && !is_http(&expanded) && !url.value.starts_with("${") {
                let message = format!("invalid URL `{}`", url.value);
                let problem = Problem::error(Code::Value, message);
                cx.report(
                    url.span,
                    problem.hint("write a URL that starts with `http://` or `https://`"),
                );
            }
            let headers = scope.expand_table(&file.headers);
            let url = expanded;
            if file.kind.as_ref().map(|k| k.value) == Some(TransportWord::Sse) {
                Transport::Sse { url, headers }
            } else {
                Transport::Http { url, headers }
            }
        }
        // Reported when the file was decoded.
        _ => return None,
    };
    Some(Server {
        name: name.value.clone(),
        allowed: allowed_tools(file),
        auth: auth::resolve(&file.auth, &transport, *scope),
        transport,
        client: client_settings(file, scope),
        written: written(file),
    })
}

fn client_settings(file: &ServerFile, scope: &TextScope<'_>) -> ClientSettings {
    let replies = WrittenReplies {
        elicitation: file.elicitation.as_deref(),
        sampling: file.sampling.as_deref(),
        roots: file.roots.as_deref(),
    };
    ClientSettings {
        protocol: file.protocol.as_ref().map(|pin| pin.value),
        replies: replies.resolve(&FileOrigin::Own, scope),
    }
}

/// The working folder of a server: an empty path means Proctor's own working folder.
pub(super) fn working_folder(folder: &Path) -> PathBuf {
    if folder.as_os_str().is_empty() {
        PathBuf::from(".")
    } else {
        folder.to_path_buf()
    }
}

fn written(file: &ServerFile) -> String {
    let target = file.command.as_ref().or(file.url.as_ref());
    let words = target.map(|t| t.value.as_str()).into_iter();
    let args = file.args.iter().map(|arg| arg.value.0.as_str());
    command_line(words.chain(args))
}

/// A command line for a shell, quoted where needed. Different lists of words give different lines.
pub fn command_line<'a>(words: impl IntoIterator<Item = &'a str>) -> String {
    let quoted = |word: &str| {
        let is_plain = |c: char| !c.is_whitespace() && !"'\"\\".contains(c);
        if !word.is_empty() && word.chars().all(is_plain) {
            word.to_owned()
        } else {
            format!("'{}'", word.replace('\'', r"'\''"))
        }
    };
    words.into_iter().map(quoted).collect::<Vec<_>>().join(" ")
}

fn allowed_tools(file: &ServerFile) -> AllowedTools {
    match (&file.always_allow, file.enable_all_tools) {
        (_, Some(true)) | (None, None) => AllowedTools::All,
        (Some(tools), _) => AllowedTools::Only(tools.iter().map(|t| t.0.clone()).collect()),
        (None, Some(false)) => AllowedTools::Only(Vec::new()),
    }
}

fn refuse_other_transport(
    file: &ServerFile,
    fitting: &[TransportWord],
    key: &str,
    cx: &Context<'_>,
) {
    if let Some(kind) = &file.kind
        && !fitting.contains(&kind.value)
    {
        let message = format!(
            "a server of type `{}` can't have `{key}`",
            kind.value.word()
        );
        let words: Vec<&str> = fitting.iter().map(|t| t.word()).collect();
        let problem = Problem::error(Code::Conflict, message);
        cx.report(
            kind.span,
            problem.hint(format!(
                "use `{key}` with type {}",
                proctor_record::hint::listed(words)
            )),
        );
    }
}

/// Warns of keys that have no effect for this type of server.
fn warn_of_unused(file: &ServerFile, key: &str, cx: &Context<'_>) {
    let unused = if key == "command" {
        file.headers
            .0
            .first()
            .map(|(name, _)| ("headers", name.span))
    } else if let Some(arg) = file.args.first() {
        Some(("args", arg.span))
    } else if let Some(cwd) = &file.cwd {
        Some(("cwd", cwd.span))
    } else {
        file.env.0.first().map(|(name, _)| ("env", name.span))
    };
    if let Some((unused, span)) = unused {
        let message = format!("`{unused}` has no effect for a server with a `{key}`");
        cx.report(span, Problem::warning(Code::Conflict, message));
    }
}

fn is_http(url: &str) -> bool {
    ["http://", "https://"].iter().any(|scheme| {
        url.strip_prefix(scheme)
            .is_some_and(|rest| !rest.is_empty())
    })
}

/// The server that the environment names, if it names one: `MCP_COMMAND`, else `MCP_URL`, else
/// `MCP_HOST` and `MCP_PORT`, either of which is optional.
pub fn from_environment(
    env: &Environment,
    folder: &Path,
    problems: &mut Problems,
) -> Option<Server> {
    let get = |name: &str| env.get(name).map(String::as_str).filter(|v| !v.is_empty());
    let url = match (get("MCP_URL"), get("MCP_HOST"), get("MCP_PORT")) {
        (Some(url), ..) => Some(url.to_owned()),
        (None, None, None) => None,
        (None, host, port) => {
            let port = port.map_or(String::new(), |port| format!(":{port}"));
            let path = get("MCP_PATH").unwrap_or("/mcp");
            let slash = if path.starts_with('/') { "" } else { "/" };
            let host = host.unwrap_or("localhost");
            Some(format!("http://{host}{port}{slash}{path}"))
        }
    };
    let transport = if let Some(command) = get("MCP_COMMAND") {
        Transport::Stdio {
            command: command.to_owned(),
            args: argument_list(get("MCP_ARGS").unwrap_or(""), problems),
            env: json_map(env, "MCP_ENV", problems),
            folder: working_folder(folder),
            cwd: None,
        }
    } else {
        Transport::Http {
            url: url?,
            headers: json_map(env, "MCP_HEADERS", problems),
        }
    };
    let allowed = match get("MCP_ENABLE_ALL_TOOLS") {
        None | Some("true" | "1") => AllowedTools::All,
        Some("false" | "0") => AllowedTools::Only(Vec::new()),
        Some(other) => {
            let message =
                format!("`MCP_ENABLE_ALL_TOOLS` must be `true` or `false`, not `{other}`");
            problems.push(Problem::error(Code::Value, message));
            AllowedTools::All
        }
    };
    Some(Server {
        name: get("MCP_SERVER_NAME").unwrap_or("default").to_owned(),
        transport,
        allowed,
        auth: None,
        client: ClientSettings::default(),
        written: "from the environment".to_owned(),
    })
}

fn json_map(env: &Environment, name: &str, problems: &mut Problems) -> BTreeMap<String, String> {
    let Some(text) = env.get(name).filter(|t| !t.is_empty()) else {
        return BTreeMap::new();
    };
    json::from_str(text).unwrap_or_else(|error| {
        let message = format!("`{name}` must be a JSON object of strings: {error}");
        problems.push(Problem::error(Code::Value, message));
        BTreeMap::new()
    })
}

/// A JSON array, or a list with commas.
fn argument_list(text: &str, problems: &mut Problems) -> Vec<String> {
    if text.trim_start().starts_with('[') {
        return json::from_str(text).unwrap_or_else(|error| {
            let message = format!("`MCP_ARGS` must be a JSON array of strings: {error}");
            problems.push(Problem::error(Code::Value, message));
            Vec::new()
        });
    }
    let parts = text.split(',').map(str::trim).filter(|s| !s.is_empty());
    parts.map(str::to_owned).collect()
}

#[cfg(test)]
mod tests;
