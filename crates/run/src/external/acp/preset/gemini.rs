//! The Gemini CLI.
//!
//! It restarts itself and does not exit when its stdin is closed: the guard ends both processes. It
//! asks permission for every tool of an untrusted server, as Proctor needs. An allow-list of its
//! own tools would hide those of the servers too, so its own tools are excluded by name.

use serde_json::{Value, json};

use super::Preset;
use crate::external::acp::LaunchPlan;
use crate::external::acp::calls::AcpCall;
use crate::external::acp::dialect::Dialect;
use crate::external::acp::policy::fold;
use crate::external::{Assignment, AssignmentError};
use proctor_core::builtin_agent::BuiltinAgent;
use proctor_models::WireFormat;
use proctor_record::model::Usage;

pub(crate) static PRESET: Preset = Preset {
    agent: BuiltinAgent::Gemini,
    version: &["--version"],
    formats: &[WireFormat::Gemini],
    skills: Some((".gemini/skills", "activate_skill")),
    dialect: Dialect {
        tool_name: |id, _| before(id),
        tool_of,
        matches_titles: false,
        arguments: |input| input,
        usage,
        failed_turn: |_, _| None,
        turn_limit: None,
        passes_on_provider_errors: true,
        note_outage: |_, _| {},
        key_login: Some("gemini-api-key"),
    },
    commands: Some("Gemini CLI"),
    stops_at_max_turns: false,
    reads_only_configuration: false,
    leaves: false,
    args: &["--acp", "--skip-trust"],
    env: &[
        ("GEMINI_CLI_TRUST_WORKSPACE", "true"),
        ("GEMINI_TELEMETRY_ENABLED", "false"),
    ],
    configure,
};

/// The tool in `mcp_ev_echo__call_1`, where the model named the call, or in
/// `mcp_ev_echo__mcp_ev_echo_1794739400199_0`, where it did not. The name may contain `__` too.
fn before(id: &str) -> Option<&str> {
    let repeated = id.match_indices("__").find_map(|(at, mark)| {
        let (name, rest) = (&id[..at], &id[at + mark.len()..]);
        let number = rest.strip_prefix(name)?;
        number.starts_with('_').then_some(name)
    });
    repeated.or_else(|| Some(id.split_once("__")?.0))
}

/// The tool in `echo (ev MCP Server)`. The name of the call may be cut; the title is not.
fn tool_of(call: &AcpCall, server: &str) -> Option<String> {
    let title = fold(&call.title);
    let tool = title.strip_suffix(&format!("__{server}_mcp_server_"))?;
    fold(call.name())
        .starts_with("mcp_")
        .then(|| tool.to_owned())
}

fn usage(result: &Value) -> Option<Usage> {
    let count = &result["_meta"]["quota"]["token_count"];
    Some(Usage {
        input: Some(count["input_tokens"].as_u64()?),
        output: Some(count["output_tokens"].as_u64()?),
        ..Usage::default()
    })
}

/// Its own tools. The one that loads skills is not excluded if there are skills.
const OWN_TOOLS: [&str; 20] = [
    "run_shell_command",
    "list_background_processes",
    "read_background_output",
    "write_file",
    "replace",
    "read_file",
    "read_many_files",
    "list_directory",
    "glob",
    "grep_search",
    "web_fetch",
    "google_web_search",
    "save_memory",
    "write_todos",
    "enter_plan_mode",
    "exit_plan_mode",
    "invoke_agent",
    "ask_user",
    "update_topic",
    "activate_skill",
];

#[expect(
    clippy::unnecessary_wraps,
    reason = "other agents can be unfit for an assignment"
)]
fn configure(assignment: &Assignment, plan: &mut LaunchPlan) -> Result<(), AssignmentError> {
    if let Some(endpoint) = &assignment.access.endpoint {
        plan.set("GOOGLE_GEMINI_BASE_URL", &endpoint.base);
        plan.set("GEMINI_API_KEY", &endpoint.key);
    }
    if let Some(model) = &assignment.access.model {
        plan.args(&["-m", model]);
    }
    let own = OWN_TOOLS.into_iter();
    let off: Vec<&str> = own
        .filter(|tool| *tool != "activate_skill" || assignment.skills.is_none())
        .collect();
    let mut settings = json!({
        "security": {"auth": {"selectedType": "gemini-api-key"}},
        "privacy": {"usageStatisticsEnabled": false},
        "telemetry": {"enabled": false},
        "general": {"maxAttempts": 2, "retryFetchErrors": false, "enableAutoUpdate": false,
            "enableAutoUpdateNotification": false},
        "tools": {"exclude": off},
    });
    if let Some(turns) = assignment.max_turns {
        settings["model"] = json!({"maxSessionTurns": turns});
    }
    let file = assignment.home.join(".gemini/settings.json");
    plan.launch.files.push((file, settings.to_string()));
    Ok(())
}
