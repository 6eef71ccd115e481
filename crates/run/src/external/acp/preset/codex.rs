//! Codex's ACP adapter, which includes its own Codex.
//!
//! The servers are in its configuration and not in the session, because only there can they be
//! `required`: otherwise it silently starts without slow servers. Allowed tools are approved there.
//! For all others it must ask Proctor; in its default mode it would ask a model.

use proctor_core::suite::server::AllowedTools;
use serde_json::Value;

use super::Preset;
use crate::external::acp::LaunchPlan;
use crate::external::acp::dialect::Dialect;
use crate::external::acp::failures::{Outage, whole_usage};
use crate::external::acp::policy::named;
use crate::external::cli::aliases;
use crate::external::{AgentServer, Assignment, AssignmentError, ServerRoute};
use proctor_core::builtin_agent::BuiltinAgent;
use proctor_models::WireFormat;

pub(crate) static PRESET: Preset = Preset {
    agent: BuiltinAgent::CodexAcp,
    version: &["--version"],
    formats: &[WireFormat::Responses],
    skills: None,
    dialect: Dialect {
        tool_name: |_, _| None,
        tool_of: named,
        matches_titles: false,
        arguments,
        usage: |result| whole_usage(&result["usage"]),
        failed_turn: |_, _| None,
        turn_limit: None,
        passes_on_provider_errors: false,
        note_outage,
        key_login: Some("api-key"),
    },
    commands: Some("Codex"),
    stops_at_max_turns: false,
    reads_only_configuration: true,
    leaves: true,
    args: &[],
    env: &[],
    configure,
};

/// It puts the server and the tool beside the arguments.
fn arguments(mut input: Value) -> Value {
    if input["arguments"].is_object() {
        input["arguments"].take()
    } else {
        input
    }
}

/// It retries an unreachable model forever, and where it gives up, the error is its answer.
fn note_outage(outage: &mut Outage, update: &Value) {
    let codex = update.pointer("/_meta/codex").unwrap_or(&Value::Null);
    let error = &codex["error"];
    if let Some(message) = error["message"].as_str() {
        outage.waits += u32::from(message.contains("waiting for network"));
        let more = error["additionalDetails"].as_str();
        outage.last = Some(match more {
            Some(more) => format!("{message}: {more}"),
            None => message.to_owned(),
        });
    }
    match codex["threadStatus"]["type"].as_str() {
        Some("systemError") => outage.is_fatal = true,
        // It recovered.
        Some("active") => outage.is_fatal = false,
        _ => {}
    }
}

/// The variable that holds the key of an endpoint.
const KEY: &str = "PROCTOR_MODEL_KEY";

/// Settings that turn off its own tools as far as possible, and all requests to its vendor.
const SETTINGS: &str = r#"approval_policy = "on-request"
sandbox_mode = "read-only"
web_search = "disabled"
check_for_update_on_startup = false
"#;

const TABLES: &str = r"
[analytics]
enabled = false

[tools]
view_image = false

[features]
shell_tool = false
unified_exec = false
multi_agent = false
goals = false
apps = false
plugins = false
";

fn configure(assignment: &Assignment, plan: &mut LaunchPlan) -> Result<(), AssignmentError> {
    let home = assignment.home.join(".codex");
    plan.set("CODEX_HOME", &home.to_string_lossy());
    let mut config = String::new();
    if let Some(model) = &assignment.access.model {
        config.push_str(&format!("model = {}\n", quoted(model)));
    }
    if assignment.access.endpoint.is_some() {
        config.push_str("model_provider = \"proctor\"\n");
    }
    config.push_str(SETTINGS);
    config.push_str(TABLES);
    if let Some(endpoint) = &assignment.access.endpoint {
        plan.set(KEY, &endpoint.key);
        config.push_str(&format!(
            "\n[model_providers.proctor]\nname = \"proctor\"\nbase_url = {}\nenv_key = \"{KEY}\"\n\
             wire_api = \"responses\"\nrequest_max_retries = 1\nstream_max_retries = 1\n",
            quoted(&endpoint.base),
        ));
    }
    for (server, alias) in assignment.servers.iter().zip(aliases(&assignment.servers)) {
        config.push_str(&table(server, &alias)?);
    }
    plan.launch.files.push((home.join("config.toml"), config));
    plan.opening.servers.clear();
    plan.opening.mode = Some("read-only");
    Ok(())
}

/// The configuration of one server.
fn table(server: &AgentServer, alias: &str) -> Result<String, AssignmentError> {
    let alias = quoted(alias);
    let mut table = format!("\n[mcp_servers.{alias}]\nrequired = true\n");
    match &server.way {
        ServerRoute::Stdio { program, args } => {
            let args: Vec<String> = args.iter().map(|arg| quoted(arg)).collect();
            let program = quoted(&program.to_string_lossy());
            table.push_str(&format!(
                "command = {program}\nargs = [{}]\n",
                args.join(", ")
            ));
        }
        ServerRoute::Http { url, headers } => {
            let pair =
                |(name, value): &(String, String)| format!("{} = {}", quoted(name), quoted(value));
            let headers: Vec<String> = headers.iter().map(pair).collect();
            let url = quoted(url);
            table.push_str(&format!(
                "url = {url}\nhttp_headers = {{ {} }}\n",
                headers.join(", ")
            ));
        }
        ServerRoute::Sse { .. } => {
            return Err(AssignmentError::Sse {
                agent: "Codex",
                server: server.name.clone(),
            });
        }
    }
    let (other, allowed): (_, &[String]) = match &server.allowed {
        AllowedTools::All => ("approve", &[]),
        AllowedTools::Only(tools) => ("prompt", tools),
    };
    table.push_str(&format!("default_tools_approval_mode = \"{other}\"\n"));
    for tool in allowed {
        let tool = quoted(tool);
        table.push_str(&format!(
            "\n[mcp_servers.{alias}.tools.{tool}]\napproval_mode = \"approve\"\n"
        ));
    }
    Ok(table)
}

/// A TOML string. TOML escapes as JSON does, plus one more character.
fn quoted(text: &str) -> String {
    Value::from(text).to_string().replace('\u{7f}', "\\u007f")
}
