//! Claude's ACP adapter, which includes its own Claude Code.
//!
//! Its tools are never deferred, and it waits for slow servers: otherwise their tools would be
//! missing from the first model request. Its own tools are off.

use serde_json::json;

use super::Preset;
use crate::external::acp::LaunchPlan;
use crate::external::acp::calls::AcpCall;
use crate::external::acp::dialect::Dialect;
use crate::external::acp::failures::whole_usage;
use crate::external::acp::policy::fold;
use crate::external::cli::never_a_command;
use crate::external::{Assignment, AssignmentError};
use proctor_core::builtin_agent::BuiltinAgent;
use proctor_models::WireFormat;

pub(crate) static PRESET: Preset = Preset {
    agent: BuiltinAgent::ClaudeAcp,
    version: &["--version"],
    formats: &[WireFormat::Messages],
    skills: Some((".claude/skills", "Skill")),
    dialect: Dialect {
        tool_name: |_, update| update["_meta"]["claudeCode"]["toolName"].as_str(),
        tool_of,
        matches_titles: false,
        arguments: |input| input,
        usage: |result| whole_usage(&result["usage"]),
        failed_turn: |_, _| None,
        turn_limit: Some("Reached maximum number of turns"),
        passes_on_provider_errors: false,
        note_outage: |_, _| {},
        key_login: None,
    },
    commands: None,
    stops_at_max_turns: true,
    reads_only_configuration: false,
    leaves: true,
    args: &[],
    env: &[
        ("CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", "1"),
        // Without a limit, an outage takes minutes.
        ("CLAUDE_CODE_MAX_RETRIES", "2"),
        // Otherwise `@/etc/passwd` in a prompt would be read and sent to the model.
        ("CLAUDE_CODE_DISABLE_FILE_MENTIONS", "1"),
        ("ENABLE_TOOL_SEARCH", "false"),
        ("MCP_CONNECTION_NONBLOCKING", "0"),
        ("DISABLE_AUTOUPDATER", "1"),
    ],
    configure,
};

/// The tool in `mcp__ev__echo`.
fn tool_of(call: &AcpCall, server: &str) -> Option<String> {
    let name = fold(call.name());
    name.strip_prefix(&format!("mcp__{server}__"))
        .map(str::to_owned)
}

#[expect(
    clippy::unnecessary_wraps,
    reason = "other agents can be unfit for an assignment"
)]
fn configure(assignment: &Assignment, plan: &mut LaunchPlan) -> Result<(), AssignmentError> {
    if let Some(endpoint) = &assignment.access.endpoint {
        plan.set("ANTHROPIC_BASE_URL", &endpoint.base);
        plan.set("ANTHROPIC_API_KEY", &endpoint.key);
    }
    if let Some(model) = &assignment.access.model {
        plan.set("ANTHROPIC_MODEL", model);
    }
    // Skills are found through the settings of the folder.
    let (tools, sources) = match assignment.skills {
        Some(_) => (json!(["Skill", "Read"]), json!(["project"])),
        None => (json!([]), json!([])),
    };
    let mut options = json!({"tools": tools, "settingSources": sources});
    if let Some(turns) = assignment.max_turns {
        options["maxTurns"] = turns.into();
    }
    plan.opening.prompt = never_a_command(&assignment.prompt);
    plan.opening.meta = Some(json!({"claudeCode": {"options": options}}));
    Ok(())
}
