//! The seed's examples with their own agents, as they are written: `proctor model serve` stands in for
//! the provider, and a file for the cluster.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use super::*;

/// A script that is served; the server is killed when it is dropped.
struct Provider {
    child: Child,
    url: String,
}

impl Provider {
    fn start(script: &Path) -> Self {
        let mut child = Command::new(proctor_e2e::proctor())
            .args(["model", "serve"])
            .arg(script)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .expect("it starts");
        let mut line = String::new();
        let stdout = child.stdout.take().expect("it is piped");
        BufReader::new(stdout)
            .read_line(&mut line)
            .expect("it says where it is");
        let (_, url) = line.trim().rsplit_once(' ').expect("an address");
        let url = url.to_owned();
        Self { child, url }
    }
}

impl Drop for Provider {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Runs an example, which has so many trials.
fn passes(example: &str, trials: usize) {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let eval = here.join(format!("../../examples/kubernetes/{example}.yaml"));
    let provider = Provider::start(&here.join("tests/check/seeds/careful.yaml"));
    let folder = tempfile::tempdir().unwrap();
    let cluster = folder.path().join("cluster.json");
    let server = json!({"command": proctor_e2e::kubernetes(), "args": [cluster]});
    let config = folder.path().join("mcp.json");
    let servers = json!({"mcpServers": {"kubernetes": server}}).to_string();
    std::fs::write(&config, servers).unwrap();
    std::os::unix::fs::symlink(proctor_e2e::kubernetes(), folder.path().join("kubectl")).unwrap();
    let home = folder.path().join("home");
    std::fs::create_dir(&home).unwrap();
    let words = [
        "check",
        &eval.display().to_string(),
        "--mcp-config-file",
        &config.display().to_string(),
        // What a command is given that is no key has to be named.
        "--pass-env",
        "ENABLE_TOOL_SEARCH",
    ];
    let session = Session::new(&words)
        .env("FIXTURE_CLUSTER", &cluster.display().to_string())
        .env("HOME", &home.display().to_string())
        .env("ENABLE_TOOL_SEARCH", "false")
        .env("ANTHROPIC_BASE_URL", &provider.url)
        .env("ANTHROPIC_API_KEY", "any")
        .env("OPENAI_BASE_URL", &format!("{}/v1", provider.url))
        .env("OPENAI_API_KEY", "any");
    let path = format!("{}:{}", folder.path().display(), path_with("claude-code"));
    let seen = run(session, &path);
    assert_eq!(seen.code, Some(0), "{}\n{}", seen.stdout, seen.stderr);
    let ends = seen.events.iter().filter_map(|event| match &event.event {
        EventKind::TrialEnded(ended) => Some(ended.outcome),
        _ => None,
    });
    assert_eq!(ends.collect::<Vec<_>>(), vec![Outcome::Passed; trials]);
    assert_eq!(std::fs::read_to_string(&cluster).unwrap(), "{}");
}

#[test]
fn the_example_with_claude_code_runs_as_it_is_written() {
    passes("basic-builtin", 1);
}

#[test]
fn the_example_with_the_openai_agent_runs_as_it_is_written() {
    passes("flexible", 1);
}

#[test]
fn the_example_of_safe_operations_runs_as_it_is_written() {
    passes("safe-operations", 8);
}

#[test]
fn the_comprehensive_example_runs_as_it_is_written() {
    passes("comprehensive", 6);
}

#[test]
fn the_example_with_an_agent_file_runs_as_it_is_written() {
    passes("basic-agent-file", 1);
}
