//! The launch of each agent: its command line, its environment, its files.

mod output;

use std::collections::BTreeMap;
use std::path::PathBuf;

use proctor_core::suite::server::AllowedTools;

use super::*;
use crate::external::{ModelAccess, ModelUrl, ServerRoute};

fn offered(name: &str, way: ServerRoute, allowed: AllowedTools) -> AgentServer {
    AgentServer {
        name: name.to_owned(),
        way,
        allowed,
        tools: Vec::new(),
    }
}

fn stdio() -> ServerRoute {
    ServerRoute::Stdio {
        program: PathBuf::from("/bin/proctor"),
        args: vec!["__relay".to_owned(), "/tmp/a \"b\"/s".to_owned()],
    }
}

fn http() -> ServerRoute {
    ServerRoute::Http {
        url: "http://127.0.0.1:1/mcp".to_owned(),
        headers: vec![("proctor-token".to_owned(), "t0ken".to_owned())],
    }
}

fn assignment(servers: Vec<AgentServer>) -> Assignment {
    Assignment {
        prompt: "-p \"$(date)\"".to_owned(),
        servers,
        access: ModelAccess {
            model: Some("m-1".to_owned()),
            provider: None,
            endpoint: Some(ModelUrl {
                base: "http://127.0.0.1:9/base".to_owned(),
                key: "k3y".to_owned(),
                format: WireFormat::Responses,
            }),
        },
        folder: PathBuf::from("/w"),
        skills: None,
        home: PathBuf::from("/h"),
        environment: BTreeMap::from([("PATH".to_owned(), "/bin".to_owned())]),
        max_turns: Some(7),
    }
}

fn usual() -> Assignment {
    let only = AllowedTools::Only(vec!["get-sum".to_owned(), "a.b".to_owned()]);
    assignment(vec![
        offered("my server", stdio(), only),
        offered("web", http(), AllowedTools::All),
    ])
}

/// The launch, without the folder of its secrets.
fn prepared(cli: Cli, assignment: &Assignment) -> Launch {
    let launch = cli.prepare(assignment).unwrap();
    for arg in &launch.args {
        for secret in ["t0ken", "k3y", "$(date)"] {
            assert!(!arg.contains(secret), "`{secret}` is in {arg}");
        }
    }
    assert_eq!(launch.stdin.as_ref(), Some(&assignment.prompt));
    assert_eq!(launch.env["PATH"], "/bin");
    launch
}

#[test]
fn claude_code_gets_servers_and_permissions_in_files() {
    let launch = prepared(Cli::ClaudeCode, &usual());
    assert_eq!(
        launch.args.join(" "),
        "-p --output-format stream-json --verbose --mcp-config /h/mcp.json --strict-mcp-config \
         --settings /h/settings.json --tools  --disable-slash-commands --model m-1 --max-turns 7"
    );
    let files: Vec<&str> = launch.files.iter().map(|(_, text)| text.as_str()).collect();
    assert_eq!(
        files,
        [
            r#"{"mcpServers":{"my_server":{"type":"stdio","command":"/bin/proctor","args":["__relay","/tmp/a \"b\"/s"],"env":{}},"web":{"type":"http","url":"http://127.0.0.1:1/mcp","headers":{"proctor-token":"t0ken"}}}}"#,
            r#"{"permissions":{"allow":["mcp__my_server__get-sum","mcp__my_server__a_b","mcp__web"],"defaultMode":"dontAsk"}}"#,
        ]
    );
    for (name, value) in [
        ("ANTHROPIC_BASE_URL", "http://127.0.0.1:9/base"),
        ("ANTHROPIC_API_KEY", "k3y"),
        ("ENABLE_TOOL_SEARCH", "false"),
        ("MCP_CONNECTION_NONBLOCKING", "0"),
        ("CLAUDE_CODE_MAX_RETRIES", "2"),
    ] {
        assert_eq!(
            launch.env.get(name).map(String::as_str),
            Some(value),
            "{name}"
        );
    }
    let skilled = Assignment {
        skills: Some(".claude/skills".to_owned()),
        ..usual()
    };
    let launch = prepared(Cli::ClaudeCode, &skilled);
    assert!(launch.args.join(" ").contains("--tools Skill,Read --model"));
    assert!(
        launch.files[1]
            .1
            .contains(r#""Skill","Read(./.claude/skills/**)""#)
    );
}

#[test]
fn codex_gets_everything_in_its_configuration() {
    let launch = prepared(Cli::Codex, &usual());
    assert_eq!(
        launch.args.join(" "),
        "exec --json --skip-git-repo-check --ephemeral -"
    );
    assert_eq!(launch.env["PROCTOR_MODEL_KEY"], "k3y");
    let (path, text) = &launch.files[0];
    assert_eq!(path, &PathBuf::from("/h/.codex/config.toml"));
    let expected = r#"model = "m-1"
model_provider = "proctor"
approval_policy = "never"
sandbox_mode = "read-only"
web_search = "disabled"
[features]
shell_tool = false
unified_exec = false
multi_agent = false
goals = false
apps = false
plugins = false
hooks = false
[model_providers.proctor]
name = "proctor"
base_url = "http://127.0.0.1:9/base"
env_key = "PROCTOR_MODEL_KEY"
wire_api = "responses"
request_max_retries = 2
stream_max_retries = 2
[mcp_servers.my_server]
command = "/bin/proctor"
args = ["__relay", "/tmp/a \"b\"/s"]
required = true
startup_timeout_sec = 60
default_tools_approval_mode = "prompt"
[mcp_servers.my_server.tools."get-sum"]
approval_mode = "approve"
[mcp_servers.my_server.tools."a.b"]
approval_mode = "approve"
[mcp_servers.web]
url = "http://127.0.0.1:1/mcp"
http_headers = { "proctor-token" = "t0ken" }
required = true
startup_timeout_sec = 60
default_tools_approval_mode = "approve"
"#;
    assert_eq!(text, expected);
    let sse = ServerRoute::Sse {
        url: String::new(),
        headers: Vec::new(),
    };
    let older = assignment(vec![offered("old", sse, AllowedTools::All)]);
    let error = Cli::Codex.prepare(&older).unwrap_err();
    assert!(error.to_string().contains("`old`"), "{error}");
}

#[test]
fn copilot_gets_the_tools_of_its_servers_and_no_others() {
    let launch = prepared(Cli::Copilot, &usual());
    assert_eq!(
        launch.args.join(" "),
        "--output-format=json --disable-builtin-mcps --no-ask-user --no-custom-instructions \
         --no-auto-update --no-remote --no-color --disable-client-telemetry \
         --additional-mcp-config=@/h/mcp.json --usage-output-file=/h/usage.json \
         --available-tools=my_server --allow-tool=my_server(get-sum) --allow-tool=my_server(a.b) \
         --available-tools=web --allow-tool=web"
    );
    assert_eq!(launch.env["COPILOT_PROVIDER_API_KEY"], "k3y");
    assert_eq!(launch.env["COPILOT_MODEL"], "m-1");
    assert!(
        launch.files[0]
            .1
            .contains(r#""my_server":{"type":"local","command":"/bin/proctor""#)
    );
}

#[test]
fn aliases_are_unique() {
    let names = |names: &[&str]| {
        let servers = names.iter();
        let servers: Vec<AgentServer> = servers
            .map(|name| offered(name, stdio(), AllowedTools::All))
            .collect();
        aliases(&servers)
    };
    assert_eq!(
        names(&["a b", "a.b", "a_b", "é", "", "-x"]),
        ["a_b", "a_b_2", "a_b_3", "server", "server_2", "-x"]
    );
    // Claude Code reads `mcp__k8s__prod___echo` as a tool of `k8s`, and denies it.
    assert_eq!(
        names(&["k8s (prod)", "my__srv", "_a_"]),
        ["k8s_prod", "my_srv", "a"]
    );
    let long = "n".repeat(100);
    assert_eq!(names(&[&long, &long])[1], format!("{}_2", "n".repeat(32)));
}

#[test]
fn a_server_name_does_not_enable_copilots_own_tools() {
    let servers = vec![offered("bash", stdio(), AllowedTools::All)];
    let launch = prepared(Cli::Copilot, &assignment(servers));
    let args = launch.args.join(" ");
    assert!(
        args.contains("--available-tools=bash-server --allow-tool=bash-server"),
        "{args}"
    );
    assert!(launch.files[0].1.contains(r#"{"bash-server":{"#));
}

#[test]
fn a_prompt_is_never_an_agent_command() {
    let asked = |prompt: &str| Assignment {
        prompt: prompt.to_owned(),
        ..usual()
    };
    for (prompt, word) in [
        ("/help", Some("/help")),
        (" \n/compact now", Some("/compact")),
        ("/tmp/x is full", None),
        ("/ is full", None),
        ("what is /help", None),
        ("", None),
    ] {
        assert_eq!(command(prompt), word, "{prompt}");
        let refused = Cli::Copilot.prepare(&asked(prompt)).err();
        let expected = word.map(|word| AssignmentError::Command {
            agent: "Copilot",
            word: word.to_owned(),
        });
        assert_eq!(refused, expected, "{prompt}");
    }
    let launch = Cli::ClaudeCode.prepare(&asked("/help")).unwrap();
    assert_eq!(launch.stdin.as_deref(), Some("\n/help"));
    assert_eq!(launch.env["CLAUDE_CODE_DISABLE_FILE_MENTIONS"], "1");
}

#[test]
fn a_custom_model_url_gets_no_other_key() {
    for cli in [Cli::ClaudeCode, Cli::Codex, Cli::Copilot] {
        let mut given = usual();
        for name in cli.agent().variables() {
            given
                .environment
                .insert((*name).to_owned(), "mine".to_owned());
        }
        let launch = prepared(cli, &given);
        let keys = |(name, value): (&String, &String)| {
            let is_key = name.contains("_KEY") || name.contains("_TOKEN");
            (is_key && value == "mine").then(|| name.clone())
        };
        let left: Vec<String> = launch.env.iter().filter_map(keys).collect();
        assert!(left.is_empty(), "{cli:?}: {left:?}");
    }
}
