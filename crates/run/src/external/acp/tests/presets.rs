//! The launch and the first messages for each known agent.

use proctor_core::builtin_agent::Protocol;

use super::*;
use crate::external::AssignmentError;
use crate::external::acp::LaunchPlan;

const PRESETS: [&str; 5] = ["claude-acp", "codex-acp", "gemini", "opencode", "goose"];

fn prepare(name: &str, assignment: &Assignment) -> LaunchPlan {
    known(name).prepare(assignment).expect("it is fit")
}

fn file<'a>(plan: &'a LaunchPlan, name: &str) -> &'a str {
    let file = plan
        .launch
        .files
        .iter()
        .find(|(path, _)| path.ends_with(name));
    &file.expect("the file is written").1
}

fn http(name: &str) -> AgentServer {
    AgentServer {
        way: ServerRoute::Http {
            url: "http://127.0.0.1:7/mcp".to_owned(),
            headers: vec![("X-Token".to_owned(), "t\"1".to_owned())],
        },
        ..server(name, AllowedTools::All)
    }
}

#[test]
fn every_agent_has_the_adapter_of_its_protocol() {
    let mut presets = Vec::new();
    for agent in BuiltinAgent::ALL {
        match (agent.protocol(), Adapter::of_builtin(agent)) {
            (Protocol::InProcess, None) => {}
            (Protocol::Cli, Some(Adapter::Cli(cli))) => assert_eq!(cli.agent(), agent),
            (Protocol::Acp, Some(Adapter::Acp(Acp::Preset(preset)))) => {
                assert_eq!(preset.agent, agent);
                assert!(!preset.formats.is_empty());
                presets.push(agent.name());
            }
            other => panic!("{agent}: {other:?}"),
        }
    }
    assert_eq!(presets, PRESETS);
}

#[test]
fn a_prompt_is_never_an_agent_command() {
    let assignment = Assignment {
        prompt: "/compact".to_owned(),
        ..assignment(vec![server("a", AllowedTools::All)])
    };
    for name in PRESETS {
        let prepared = known(name).prepare(&assignment);
        match name {
            "claude-acp" => assert_eq!(prepared.unwrap().opening.prompt, "\n/compact"),
            _ => assert!(
                matches!(prepared, Err(AssignmentError::Command { .. })),
                "{name}"
            ),
        }
    }
}

#[test]
fn servers_are_passed_in_the_form_of_the_protocol() {
    let mut sse = http("c");
    sse.way = ServerRoute::Sse {
        url: "http://127.0.0.1:8/sse".to_owned(),
        headers: Vec::new(),
    };
    let servers = vec![server("a b", AllowedTools::All), http("a_b"), sse];
    let args = ["--x".to_owned()];
    let acp = Acp::Program {
        cmd: "agent",
        args: &args,
    };
    let plan = acp.prepare(&assignment(servers)).expect("it is fit");
    assert_eq!(plan.launch.program, "agent");
    assert_eq!(plan.launch.args, ["--x"]);
    assert_eq!(
        plan.opening.session().to_string(),
        concat!(
            r#"{"cwd":"/w","mcpServers":["#,
            r#"{"name":"a_b","command":"/bin/proctor","args":["__relay","/run/s"],"env":[]},"#,
            r#"{"type":"http","name":"a_b_2","url":"http://127.0.0.1:7/mcp","headers":[{"name":"X-Token","value":"t\"1"}]},"#,
            r#"{"type":"sse","name":"c","url":"http://127.0.0.1:8/sse","headers":[]}]}"#
        )
    );
}

#[test]
fn the_key_of_an_endpoint_is_in_no_argument_and_the_users_own_in_nothing() {
    for name in PRESETS {
        let acp = known(name);
        for format in acp.formats() {
            let mut assignment = assignment(vec![server("ev", AllowedTools::All)]);
            assignment.access = at(*format, "http://127.0.0.1:1/v1");
            for variable in Adapter::Acp(acp).variables() {
                let value = "the-users-own".to_owned();
                assignment.environment.insert((*variable).to_owned(), value);
            }
            let LaunchPlan { launch, opening } = prepare(name, &assignment);
            let all = format!("{launch:?}{opening:?}");
            assert!(all.contains("secret-key"), "{name}");
            assert!(!all.contains("the-users-own"), "{name}");
            assert!(!launch.args.iter().any(|arg| arg.contains("secret-key")));
            assert!(launch.files.iter().all(|(path, _)| path.starts_with("/h")));
            assert!(all.contains("m-1"), "{name}");
        }
    }
}

#[test]
fn claude_has_no_tools_of_its_own_and_defers_none() {
    let mut assignment = assignment(vec![http("ev")]);
    assignment.access = at(WireFormat::Messages, "http://127.0.0.1:1");
    assignment.max_turns = Some(7);
    let plan = prepare("claude-acp", &assignment);
    let env = &plan.launch.env;
    assert_eq!(env["ANTHROPIC_BASE_URL"], "http://127.0.0.1:1");
    assert_eq!(env["ANTHROPIC_API_KEY"], "secret-key");
    assert_eq!(env["ANTHROPIC_MODEL"], "m-1");
    assert_eq!(env["ENABLE_TOOL_SEARCH"], "false");
    assert_eq!(env["MCP_CONNECTION_NONBLOCKING"], "0");
    let meta = &plan.opening.session()["_meta"];
    let expected = r#"{"claudeCode":{"options":{"tools":[],"settingSources":[],"maxTurns":7}}}"#;
    assert_eq!(meta.to_string(), expected);
}

#[test]
fn codex_requires_its_servers_and_approves_what_is_allowed() {
    let servers = vec![server("ev", only(&["get-sum", "a \"b\""])), http("web")];
    let mut assignment = assignment(servers);
    assignment.access = at(WireFormat::Responses, "http://127.0.0.1:1/v1");
    let plan = prepare("codex-acp", &assignment);
    assert!(plan.opening.servers.is_empty());
    assert_eq!(plan.opening.mode, Some("read-only"));
    assert_eq!(plan.launch.env["CODEX_HOME"], "/h/.codex");
    let config = file(&plan, ".codex/config.toml");
    let expected = r#"
[model_providers.proctor]
name = "proctor"
base_url = "http://127.0.0.1:1/v1"
env_key = "PROCTOR_MODEL_KEY"
wire_api = "responses"
request_max_retries = 1
stream_max_retries = 1

[mcp_servers."ev"]
required = true
command = "/bin/proctor"
args = ["__relay", "/run/s"]
default_tools_approval_mode = "prompt"

[mcp_servers."ev".tools."get-sum"]
approval_mode = "approve"

[mcp_servers."ev".tools."a \"b\""]
approval_mode = "approve"

[mcp_servers."web"]
required = true
url = "http://127.0.0.1:7/mcp"
http_headers = { "X-Token" = "t\"1" }
default_tools_approval_mode = "approve"
"#;
    assert!(config.ends_with(expected), "{config}");
    assert!(
        config.starts_with("model = \"m-1\"\nmodel_provider = \"proctor\"\n"),
        "{config}"
    );
}

#[test]
fn codex_does_not_support_http_sse() {
    let mut old = http("old");
    old.way = ServerRoute::Sse {
        url: String::new(),
        headers: Vec::new(),
    };
    let refused = known("codex-acp").prepare(&assignment(vec![old]));
    let server = "old".to_owned();
    assert_eq!(
        refused.err(),
        Some(AssignmentError::Sse {
            agent: "Codex",
            server
        })
    );
}

#[test]
fn gemini_excludes_its_own_tools_and_retries_only_once() {
    let mut assignment = assignment(vec![server("ev", AllowedTools::All)]);
    assignment.access = at(WireFormat::Gemini, "http://127.0.0.1:1");
    assignment.max_turns = Some(7);
    let plan = prepare("gemini", &assignment);
    assert_eq!(plan.launch.args, ["--acp", "--skip-trust", "-m", "m-1"]);
    let settings: Value = serde_json::from_str(file(&plan, "settings.json")).expect("it is JSON");
    assert_eq!(
        settings["security"]["auth"]["selectedType"],
        "gemini-api-key"
    );
    assert_eq!(settings["general"]["maxAttempts"].as_u64(), Some(2));
    assert_eq!(settings["model"]["maxSessionTurns"].as_u64(), Some(7));
    let off = settings["tools"]["exclude"].as_array().expect("a list");
    assert!(off.contains(&"run_shell_command".into()));
    assert_eq!(plan.opening.servers.len(), 1);
}

#[test]
fn opencode_supports_a_custom_url_for_each_api() {
    let check = |format: WireFormat, package: &str, base: &str| {
        let mut assignment = assignment(Vec::new());
        assignment.access = at(format, "http://127.0.0.1:1/x");
        let plan = prepare("opencode", &assignment);
        let config: Value = serde_json::from_str(file(&plan, "opencode.json")).expect("it is JSON");
        assert_eq!(config["model"], "proctor/m-1");
        assert_eq!(config["permission"]["*"], "ask");
        assert_eq!(config["permission"]["bash"], "deny");
        let provider = &config["provider"]["proctor"];
        assert_eq!(provider["npm"], package);
        assert_eq!(provider["options"]["baseURL"], base);
    };
    check(
        WireFormat::Chat,
        "@ai-sdk/openai-compatible",
        "http://127.0.0.1:1/x",
    );
    check(
        WireFormat::Responses,
        "@ai-sdk/openai",
        "http://127.0.0.1:1/x",
    );
    check(
        WireFormat::Messages,
        "@ai-sdk/anthropic",
        "http://127.0.0.1:1/x/v1",
    );
    check(
        WireFormat::Gemini,
        "@ai-sdk/google",
        "http://127.0.0.1:1/x/v1beta",
    );
}

#[test]
fn goose_gets_the_url_of_its_model_in_parts() {
    let check = |format: WireFormat, base: &str, expected: &[(&str, &str)]| {
        let mut assignment = assignment(Vec::new());
        assignment.access = at(format, base);
        let plan = prepare("goose", &assignment);
        for (name, value) in expected {
            assert_eq!(plan.launch.env[*name], *value, "{name}");
        }
    };
    let openai = |host, path| {
        [
            ("GOOSE_PROVIDER", "openai"),
            ("OPENAI_HOST", host),
            ("OPENAI_BASE_PATH", path),
        ]
    };
    check(
        WireFormat::Chat,
        "http://127.0.0.1:1/v1",
        &openai("http://127.0.0.1:1", "v1/chat/completions"),
    );
    check(
        WireFormat::Chat,
        "http://127.0.0.1:1/a/v1",
        &openai("http://127.0.0.1:1", "a/v1/chat/completions"),
    );
    check(
        WireFormat::Chat,
        "http://127.0.0.1:1",
        &openai("http://127.0.0.1:1", "chat/completions"),
    );
    let anthropic = [
        ("GOOSE_PROVIDER", "anthropic"),
        ("ANTHROPIC_HOST", "http://127.0.0.1:1"),
    ];
    check(WireFormat::Messages, "http://127.0.0.1:1", &anthropic);
}

#[test]
fn without_an_endpoint_the_users_key_selects_the_provider() {
    let mut assignment = assignment(Vec::new());
    let refused = known("goose").prepare(&assignment);
    assert_eq!(refused.err(), Some(AssignmentError::NoModel("goose")));
    assignment.access.model = Some("gpt-x".to_owned());
    assignment
        .environment
        .insert("OPENAI_API_KEY".to_owned(), "k".to_owned());
    let goose = prepare("goose", &assignment);
    assert_eq!(goose.launch.env["GOOSE_PROVIDER"], "openai");
    assert_eq!(goose.launch.env["GOOSE_MODEL"], "gpt-x");
    assert_eq!(goose.launch.env["OPENAI_API_KEY"], "k");
    let opencode = prepare("opencode", &assignment);
    assert!(file(&opencode, "opencode.json").contains(r#""model":"openai/gpt-x""#));
    // The suite takes precedence.
    assignment.access.provider = Some(proctor_core::provider::Provider::Anthropic);
    let said = "openai".to_owned();
    assignment
        .environment
        .insert("GOOSE_PROVIDER".to_owned(), said);
    let goose = prepare("goose", &assignment);
    assert_eq!(goose.launch.env["GOOSE_PROVIDER"], "anthropic");
    let opencode = prepare("opencode", &assignment);
    assert!(file(&opencode, "opencode.json").contains(r#""model":"anthropic/gpt-x""#));
    assignment.access.model = Some("local/llama".to_owned());
    let opencode = prepare("opencode", &assignment);
    assert!(file(&opencode, "opencode.json").contains(r#""model":"local/llama""#));
}

#[test]
fn a_text_in_toml_can_hold_anything() {
    let mut assignment = assignment(Vec::new());
    assignment.access.model = Some("a\"\\\n\u{1}\u{7f}ä".to_owned());
    let plan = prepare("codex-acp", &assignment);
    let config = file(&plan, "config.toml");
    assert!(
        config.starts_with("model = \"a\\\"\\\\\\n\\u0001\\u007fä\"\n"),
        "{config}"
    );
}
