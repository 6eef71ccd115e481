//! Agents from files, as people write them on the official SDKs: they read nothing but the `url` of a server, call
//! without listing, connect when they need a server, and need a variable of their user's.

use std::path::Path;

use proctor_e2e::Fixture;
use proctor_e2e::session::SessionOutcome;
use proctor_e2e::suite::SuiteFixture;
use proctor_record::event::{Blame, Direction, Outcome};
use serde_json::{Value, json};

use crate::cli::{answer, cache, expect, fixture, run};

/// In which language an agent is written.
#[derive(Debug, Clone, Copy)]
enum Language {
    Python,
    TypeScript,
}

/// How Proctor speaks to it.
#[derive(Debug, Clone, Copy)]
enum Kind {
    Commands,
    /// As above, by its servers' addresses on the command line.
    Address,
    Acp,
}

const LANGUAGES: [Language; 2] = [Language::Python, Language::TypeScript];
const KINDS: [Kind; 2] = [Kind::Commands, Kind::Acp];

/// A suite whose agent is one of the clients, on these servers.
struct Bench {
    suite: SuiteFixture,
    agent: Value,
}

impl Bench {
    fn new(language: Language, kind: Kind, servers: &Value) -> Self {
        let suite = SuiteFixture::on("  - reply: {text: nobody asks}\n", servers);
        let (runner, name) = match language {
            Language::Python => (cache().join("evals/python/bin/python"), "agent.py"),
            Language::TypeScript => ("node".into(), "agent.mjs"),
        };
        let modules = suite.path("node_modules");
        std::os::unix::fs::symlink(cache().join("clients/node_modules"), modules).unwrap();
        let source = Path::new(env!("CARGO_MANIFEST_DIR"))
            .join("clients")
            .join(name);
        std::fs::copy(source, suite.path(name)).unwrap();
        let (runner, script) = (runner.display(), suite.path(name).display().to_string());
        let mut agent = json!({"kind": "Agent", "metadata": {"name": "custom"}});
        match kind {
            Kind::Acp => agent["acp"] = json!({"cmd": runner.to_string(), "args": [script, "acp"]}),
            Kind::Commands => {
                agent["commands"] = json!({
                    "argTemplateMcpServer": "{{ .File }}",
                    "runPrompt": format!("{runner} {script} {{{{ .McpServerFileArgs }}}} \"{{{{ .Prompt }}}}\""),
                });
            }
            Kind::Address => {
                agent["commands"] = json!({
                    "argTemplateMcpServer": "{{ .URL }}",
                    "runPrompt": format!(
                        "printf '{{\"mcpServers\":{{\"ev\":{{\"url\":\"%s\"}}}}}}' {{{{ .McpServerFileArgs }}}} >f; \
                         chmod 600 f; {runner} {script} f \"{{{{ .Prompt }}}}\""
                    ),
                });
            }
        }
        Self { suite, agent }
    }

    /// Asks for a server to be used, and checks that `echo` was called.
    fn used(self, prompt: &str) -> Self {
        self.asks(
            prompt,
            &json!({"toolsUsed": [{"server": "ev", "tool": "echo"}]}),
        )
    }

    fn asks(self, prompt: &str, assertions: &Value) -> Self {
        let agent = json!({"type": "file", "path": "agent.yaml"});
        let set = json!({"assertions": assertions});
        self.suite.eval(&json!({"agent": agent}), &set);
        let prompt = json!({"prompt": {"inline": prompt}});
        self.suite.task("task", &prompt);
        self
    }

    fn says(mut self, key: &str, value: Value) -> Self {
        self.agent[key] = value;
        self
    }

    /// Runs it. The user has a number, and a greeting of another name.
    fn run(&self, words: &[&str]) -> SessionOutcome {
        self.suite.write("agent.yaml", &self.agent.to_string());
        let session = self.suite.check(words);
        let session = session
            .env("NUMBER_OF_USER", "31415926535")
            .env("TIME_OF_DAY", "evening");
        let session = session.env("AGENT_GREETING", "from outside");
        run(session, &std::env::var("PATH").unwrap())
    }
}

fn sent(seen: &SessionOutcome) -> String {
    let messages = seen.messages(Direction::ToServer);
    String::from_utf8_lossy(&messages.join(&b'\n')).into_owned()
}

fn all(check: impl Fn(Language, Kind) + Send + Sync + Copy) {
    for language in LANGUAGES {
        for kind in KINDS {
            check(language, kind);
        }
    }
}

#[test]
fn an_agent_that_reads_only_the_url_and_lists_nothing_passes() {
    let server = Fixture::http(&[]);
    let servers = json!({"ev": {"type": "http", "url": server.url()}});
    all(|language, kind| {
        let seen = Bench::new(language, kind, &servers).used("use ev").run(&[]);
        expect(&seen, Outcome::Passed, None, "");
        let sent = sent(&seen);
        assert!(
            !sent.contains("tools/list"),
            "{language:?} {kind:?}: {sent}"
        );
    });
}

#[test]
fn a_server_on_stdio_is_reached_by_an_address_alone() {
    for language in LANGUAGES {
        let bench = Bench::new(language, Kind::Address, &json!({"ev": fixture(&[])}));
        expect(&bench.used("use ev").run(&[]), Outcome::Passed, None, "");
    }
}

#[test]
fn one_of_several_servers_is_enough() {
    let (one, two) = (Fixture::http(&[]), Fixture::http(&[]));
    let servers = json!({"ev": {"type": "http", "url": one.url()}, "other": {"type": "http", "url": two.url()}});
    all(|language, kind| {
        let bench = Bench::new(language, kind, &servers).used("use ev");
        expect(&bench.run(&[]), Outcome::Passed, None, "");
    });
}

#[test]
fn no_server_is_enough_only_if_the_file_says_so_and_the_checks_still_decide() {
    let server = Fixture::http(&[]);
    let servers = json!({"ev": {"type": "http", "url": server.url()}});
    let unused = json!({"toolsNotUsed": [{"server": "ev", "tool": "sleep"}]});
    all(|language, kind| {
        let none = Bench::new(language, kind, &servers).asks("nothing", &unused);
        let reason = "set `connects: onUse` in its agent file";
        expect(&none.run(&[]), Outcome::Errored, Some(Blame::Agent), reason);
        let none = none.says("connects", json!("onUse"));
        expect(&none.run(&[]), Outcome::Passed, None, "");
        let seen = none.used("nothing").run(&[]);
        expect(&seen, Outcome::Failed, Some(Blame::Agent), "toolsUsed");
    });
}

#[test]
fn the_file_of_an_agent_adds_to_its_environment_and_its_secrets_are_not_recorded() {
    let server = Fixture::http(&[]);
    let servers = json!({"ev": {"type": "http", "url": server.url()}});
    let env = json!({"AGENT_GREETING": "good {env.TIME_OF_DAY}", "AGENT_TOKEN": "tk-{env.NUMBER_OF_USER}"});
    all(|language, kind| {
        let bench = Bench::new(language, kind, &servers).used("greet ev");
        let seen = bench.says("env", env.clone()).run(&[]);
        expect(&seen, Outcome::Passed, None, "");
        let said = answer(&seen).unwrap_or_default();
        assert!(said.starts_with("echo said good evening, token "), "{said}");
        assert!(
            said.contains("AGENT_TOKEN"),
            "it is redacted by its name: {said}"
        );
        assert!(!said.contains("31415926535"), "{said}");
    });
}

#[test]
fn an_agent_that_lacks_a_variable_is_told_how_to_get_it() {
    let server = Fixture::http(&[]);
    let servers = json!({"ev": {"type": "http", "url": server.url()}});
    all(|language, kind| {
        let bench = Bench::new(language, kind, &servers).used("greet ev");
        let seen = bench.run(&[]);
        for reason in [
            "AGENT_GREETING",
            "its environment variables: `",
            "`HOME`, ",
            "`PATH`",
            "`env:` in the agent file",
            "`--pass-env NAME`",
        ] {
            expect(&seen, Outcome::Errored, Some(Blame::Agent), reason);
        }
        let passed = bench.run(&["--pass-env", "AGENT_GREETING"]);
        expect(&passed, Outcome::Passed, None, "");
        let said = answer(&passed).unwrap_or_default();
        assert!(said.starts_with("echo said from outside"), "{said}");
    });
}

#[test]
fn a_variable_of_the_user_that_is_not_set_is_known_before_anything_starts() {
    let server = Fixture::http(&[]);
    let servers = json!({"ev": {"type": "http", "url": server.url()}});
    let env = json!({"AGENT_GREETING": "{env.NOBODY_SET_THIS}"});
    for kind in KINDS {
        let bench = Bench::new(Language::TypeScript, kind, &servers).used("greet ev");
        let seen = bench.says("env", env.clone()).run(&[]);
        assert_eq!(seen.code, Some(2), "{}", seen.stderr);
        assert!(
            seen.stderr.contains("`NOBODY_SET_THIS`, which is not set"),
            "{}",
            seen.stderr
        );
        assert!(!seen.record.exists());
    }
}

#[test]
fn an_agent_that_leaves_out_a_part_of_the_address_is_told_so() {
    const AGENT: &str = r#"
import json, sys, urllib.error, urllib.parse, urllib.request
url = json.load(open(sys.argv[1]))["mcpServers"]["ev"]["url"]
try:
    urllib.request.urlopen(urllib.parse.urljoin(url, "/mcp"), b"{}")
except urllib.error.HTTPError as error:
    print("the server says", error.code)
"#;
    let server = Fixture::http(&[]);
    let servers = json!({"ev": {"type": "http", "url": server.url()}});
    let mut bench = Bench::new(Language::Python, Kind::Commands, &servers).used("use ev");
    bench.suite.write("agent.py", AGENT);
    for connects in [None, Some("onUse")] {
        if let Some(word) = connects {
            bench = bench.says("connects", json!(word));
        }
        let seen = bench.run(&[]);
        assert_ne!(seen.code, Some(0), "{}", seen.stdout);
        if connects.is_none() {
            let reason = "Proctor refused its requests to `ev`: wrong token in the path";
            expect(&seen, Outcome::Errored, Some(Blame::Agent), reason);
        }
    }
}

#[test]
fn a_run_is_not_resumed_with_another_agent_file() {
    let server = Fixture::http(&[]);
    let servers = json!({"ev": {"type": "http", "url": server.url()}});
    let bench = Bench::new(Language::TypeScript, Kind::Commands, &servers).used("greet ev");
    let bench = bench.says("env", json!({"AGENT_GREETING": "hello"}));
    let first = bench.run(&[]);
    expect(&first, Outcome::Passed, None, "");
    let bench = bench.says("env", json!({"AGENT_GREETING": "hi"}));
    bench.suite.write("agent.yaml", &bench.agent.to_string());
    let record = first.record.display().to_string();
    let again = std::process::Command::new(proctor_e2e::proctor())
        .args(["check", "--resume", &record])
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&again.stderr).into_owned();
    assert_ne!(again.status.code(), Some(0), "{said}");
    assert!(said.contains("changed since the run started"), "{said}");
}
