//! The opencode agent.
//!
//! It asks permission for every tool of a server; its own tools are denied, which also hides them
//! from the model. It retries an unreachable model for a minute, which can't be configured.

use serde_json::{Value, json};

use super::{ANY_MODEL, Preset, provider};
use crate::external::acp::LaunchPlan;
use crate::external::acp::calls::AcpCall;
use crate::external::acp::dialect::Dialect;
use crate::external::acp::policy::fold;
use crate::external::acp::titles::is_harmless;
use crate::external::{Assignment, AssignmentError, ModelUrl};
use proctor_core::builtin_agent::BuiltinAgent;
use proctor_models::WireFormat;

pub(crate) static PRESET: Preset = Preset {
    agent: BuiltinAgent::Opencode,
    version: &["--version"],
    formats: &[
        WireFormat::Chat,
        WireFormat::Messages,
        WireFormat::Responses,
        WireFormat::Gemini,
    ],
    skills: Some((".opencode/skills", "skill")),
    dialect: Dialect {
        tool_name: |_, _| None,
        tool_of,
        matches_titles: false,
        arguments: |input| input,
        // It reports only the last request.
        usage: |_| None,
        failed_turn: |_, _| None,
        turn_limit: None,
        passes_on_provider_errors: true,
        note_outage: |_, _| {},
        key_login: None,
    },
    commands: Some("opencode"),
    stops_at_max_turns: false,
    reads_only_configuration: false,
    leaves: true,
    args: &["acp"],
    env: &[
        ("OPENCODE_DISABLE_AUTOUPDATE", "true"),
        ("OPENCODE_DISABLE_LSP_DOWNLOAD", "true"),
        ("OPENCODE_DISABLE_SHARE", "true"),
    ],
    configure,
};

/// The tool in the title `ev_echo`.
fn tool_of(call: &AcpCall, server: &str) -> Option<String> {
    let title = fold(&call.title);
    let tool = title.strip_prefix(&format!("{server}_"))?;
    is_harmless(call).then(|| tool.to_owned())
}

/// The key variables, and the providers that they are for.
const KEYS: [(&str, &str); 5] = [
    ("ANTHROPIC_API_KEY", "anthropic"),
    ("OPENAI_API_KEY", "openai"),
    ("GOOGLE_GENERATIVE_AI_API_KEY", "google"),
    ("GEMINI_API_KEY", "google"),
    ("GOOGLE_API_KEY", "google"),
];

const OWN_TOOLS: [&str; 14] = [
    "bash",
    "edit",
    "write",
    "patch",
    "read",
    "glob",
    "grep",
    "list",
    "lsp",
    "task",
    "todowrite",
    "webfetch",
    "websearch",
    "question",
];

#[expect(
    clippy::unnecessary_wraps,
    reason = "other agents can be unfit for an assignment"
)]
fn configure(assignment: &Assignment, plan: &mut LaunchPlan) -> Result<(), AssignmentError> {
    let mut permission = json!({"*": "ask", "doom_loop": "deny", "external_directory": "deny"});
    for tool in OWN_TOOLS {
        permission[tool] = "deny".into();
    }
    permission["skill"] = match assignment.skills {
        Some(_) => "allow".into(),
        None => "deny".into(),
    };
    let mut config = json!({
        "autoupdate": false,
        "share": "disabled",
        "permission": permission,
    });
    if let Some(turns) = assignment.max_turns {
        config["agent"] = json!({"build": {"steps": turns}});
    }
    if let Some(model) = model(assignment) {
        config["model"] = model.as_str().into();
        config["small_model"] = model.into();
    }
    if let Some(endpoint) = &assignment.access.endpoint {
        config["provider"] = json!({"proctor": at(endpoint, assignment)});
        // Otherwise it would download a list of all models.
        plan.set("OPENCODE_DISABLE_MODELS_FETCH", "true");
        config["enabled_providers"] = json!(["proctor"]);
    }
    let file = assignment.home.join("opencode.json");
    plan.set("OPENCODE_CONFIG", &file.to_string_lossy());
    plan.launch.files.push((file, config.to_string()));
    Ok(())
}

/// The model in opencode's form, after the name of its provider.
fn model(assignment: &Assignment) -> Option<String> {
    let model = assignment.access.model.as_deref();
    if assignment.access.endpoint.is_some() {
        return Some(format!("proctor/{}", model.unwrap_or(ANY_MODEL)));
    }
    let model = model?;
    Some(match provider(assignment, &KEYS) {
        Some(provider) if !model.contains('/') => format!("{provider}/{model}"),
        _ => model.to_owned(),
    })
}

/// A provider with a custom URL.
fn at(endpoint: &ModelUrl, assignment: &Assignment) -> Value {
    let (package, base) = match endpoint.format {
        WireFormat::Chat => ("@ai-sdk/openai-compatible", endpoint.base.clone()),
        WireFormat::Responses => ("@ai-sdk/openai", endpoint.base.clone()),
        WireFormat::Messages => ("@ai-sdk/anthropic", format!("{}/v1", endpoint.base)),
        WireFormat::Gemini => ("@ai-sdk/google", format!("{}/v1beta", endpoint.base)),
    };
    let model = assignment.access.model.as_deref().unwrap_or(ANY_MODEL);
    json!({
        "npm": package,
        "name": "proctor",
        "options": {"baseURL": base, "apiKey": endpoint.key},
        "models": {model: {"name": model, "tool_call": true}},
    })
}
