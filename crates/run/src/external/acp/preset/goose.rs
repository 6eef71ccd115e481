//! The goose agent.
//!
//! In its mode `approve` it asks permission for every call. Its own extensions are on unless each
//! is turned off. It returns a model outage as its answer: see `failed_turn`.

use serde_json::{Map, Value, json};

use super::{ANY_MODEL, Preset, provider};
use crate::external::acp::LaunchPlan;
use crate::external::acp::calls::AcpCall;
use crate::external::acp::dialect::Dialect;
use crate::external::acp::failures::AgentFailure;
use crate::external::acp::policy::fold;
use crate::external::{Assignment, AssignmentError};
use proctor_core::builtin_agent::BuiltinAgent;
use proctor_models::WireFormat;

pub(crate) static PRESET: Preset = Preset {
    agent: BuiltinAgent::Goose,
    version: &["--version"],
    formats: &[WireFormat::Chat, WireFormat::Messages],
    skills: Some((".goose/skills", "load_skill")),
    dialect: Dialect {
        tool_name: |_, update| update["_meta"]["goose"]["toolCall"]["toolName"].as_str(),
        tool_of,
        matches_titles: false,
        arguments: |input| input,
        // It reports only the last request.
        usage: |_| None,
        failed_turn,
        turn_limit: None,
        passes_on_provider_errors: false,
        note_outage: |_, _| {},
        key_login: None,
    },
    commands: Some("goose"),
    stops_at_max_turns: false,
    reads_only_configuration: false,
    leaves: true,
    args: &["acp"],
    env: &[
        ("GOOSE_DISABLE_KEYRING", "1"),
        ("GOOSE_DISABLE_SESSION_NAMING", "true"),
        ("GOOSE_MODE", "approve"),
        // It retries a few times either way; without this it takes eight seconds to give up.
        ("GOOSE_PROVIDER_SKIP_BACKOFF", "true"),
        ("GOOSE_TELEMETRY_OFF", "1"),
        ("GOOSE_TELEMETRY_ENABLED", "false"),
    ],
    configure,
};

/// The tool in `ev__echo`. The title is `ev: echo`.
fn tool_of(call: &AcpCall, server: &str) -> Option<String> {
    let name = fold(call.name());
    name.strip_prefix(&format!("{server}__")).map(str::to_owned)
}

/// It returns an outage as its answer. It counts tokens itself if a model does not, so zero tokens
/// mean that no model answered.
fn failed_turn(result: &Value, answer: Option<&str>) -> Option<AgentFailure> {
    const ERRORS: [&str; 3] = [
        "Ran into this error",
        "Network error: ",
        "The model returned an empty response.",
    ];
    const LIMIT: &str = "I've reached the maximum number of actions";
    let answer = answer.unwrap_or("its model did not answer");
    if answer.starts_with(LIMIT) {
        return Some(AgentFailure::OutOfTurns);
    }
    let took_none = result["usage"]["totalTokens"].as_u64().unwrap_or(0) == 0;
    let is_error = ERRORS.iter().any(|error| answer.starts_with(error));
    (took_none || is_error).then(|| AgentFailure::Model(answer.to_owned()))
}

/// The key variables, and the providers that they are for.
const KEYS: [(&str, &str); 4] = [
    ("ANTHROPIC_API_KEY", "anthropic"),
    ("OPENAI_API_KEY", "openai"),
    ("GOOGLE_API_KEY", "google"),
    ("GEMINI_API_KEY", "google"),
];

const EXTENSIONS: [&str; 14] = [
    "analyze",
    "apps",
    "autovisualiser",
    "chatrecall",
    "code_execution",
    "computercontroller",
    "developer",
    "extensionmanager",
    "memory",
    "orchestrator",
    "summon",
    "todo",
    "tom",
    "tutorial",
];

fn configure(assignment: &Assignment, plan: &mut LaunchPlan) -> Result<(), AssignmentError> {
    let mut off: Vec<&str> = EXTENSIONS.to_vec();
    if assignment.skills.is_none() {
        off.push("skills");
    }
    let mut extensions = Map::new();
    for name in off {
        let extension = json!({"enabled": false, "type": "platform", "name": name,
            "description": "", "bundled": true});
        extensions.insert(name.to_owned(), extension);
    }
    // JSON is valid YAML.
    let config = json!({"GOOSE_TELEMETRY_ENABLED": false, "extensions": extensions});
    let file = assignment.home.join(".config/goose/config.yaml");
    plan.launch.files.push((file, config.to_string()));
    if let Some(turns) = assignment.max_turns {
        plan.set("GOOSE_MAX_TURNS", &turns.to_string());
    }
    model(assignment, plan)
}

fn model(assignment: &Assignment, plan: &mut LaunchPlan) -> Result<(), AssignmentError> {
    let model = assignment.access.model.as_deref();
    let Some(endpoint) = &assignment.access.endpoint else {
        let is_said =
            plan.launch.env.contains_key("GOOSE_PROVIDER") && assignment.access.provider.is_none();
        if let (false, Some(provider)) = (is_said, provider(assignment, &KEYS)) {
            plan.set("GOOSE_PROVIDER", provider);
        }
        if let Some(model) = model {
            plan.set("GOOSE_MODEL", model);
        }
        let has_model = plan.launch.env.contains_key("GOOSE_MODEL");
        return has_model
            .then_some(())
            .ok_or(AssignmentError::NoModel("goose"));
    };
    plan.set("GOOSE_MODEL", model.unwrap_or(ANY_MODEL));
    if endpoint.format == WireFormat::Messages {
        plan.set("GOOSE_PROVIDER", "anthropic");
        plan.set("ANTHROPIC_HOST", &endpoint.base);
        plan.set("ANTHROPIC_API_KEY", &endpoint.key);
        return Ok(());
    }
    let (host, before) = split(&endpoint.base);
    plan.set("GOOSE_PROVIDER", "openai");
    plan.set("OPENAI_HOST", host);
    plan.set("OPENAI_BASE_PATH", &format!("{before}chat/completions"));
    plan.set("OPENAI_API_KEY", &endpoint.key);
    Ok(())
}

/// The host of a URL, and the path before the API's own path, such as `v1/`.
fn split(base: &str) -> (&str, String) {
    let scheme = base.find("://").map_or(0, |at| at + 3);
    match base[scheme..].find('/') {
        Some(at) => {
            let (host, path) = base.split_at(scheme + at);
            (host, format!("{}/", path.trim_matches('/')))
        }
        None => (base, String::new()),
    }
}
