//! Suites for tests: a folder with an eval file, tasks, a scripted model, and a server.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use proctor_record::event::Body;
use serde_json::{Value, json};

use crate::session::{Session, SessionOutcome};

/// The rules of a model that calls `echo` if the prompt contains `good`.
pub const ECHO_IF_GOOD: &str = r"
  - when: {prompt: good, results: 0}
    reply: {calls: [{tool: echo, arguments: {text: hi}}]}
  - reply: {text: done}
";

/// A suite in its own folder. JSON is valid YAML, so texts with many quotes are written as JSON.
pub struct SuiteFixture {
    folder: tempfile::TempDir,
}

impl SuiteFixture {
    /// Creates a suite on the fixture server with these arguments, with `rules` for its scripted
    /// model.
    pub fn new(rules: &str, server: &[&str]) -> Self {
        let command = crate::fixture();
        Self::on(
            rules,
            &json!({"fixture": {"command": command, "args": server}}),
        )
    }

    /// Creates a suite whose check requires a call of `echo`. The agent makes it in cases with `good` in their
    /// names, so the case `good` passes and the case `bad` fails.
    pub fn good_and_bad() -> Self {
        let suite = Self::new(ECHO_IF_GOOD, &[]);
        let used = json!({"toolsUsed": [{"server": "fixture", "tool": "echo"}]});
        suite.eval(&json!({}), &json!({"assertions": used}));
        suite.task("good", &json!({}));
        suite.task("bad", &json!({}));
        suite
    }

    /// Creates a suite on the servers of an MCP config.
    pub fn on(rules: &str, servers: &Value) -> Self {
        let suite = Self {
            folder: tempfile::tempdir().expect("a folder can be made"),
        };
        suite.write("model.yaml", &format!("kind: Script\nrules:\n{rules}"));
        suite.write("mcp.json", &json!({"mcpServers": servers}).to_string());
        suite.eval(&json!({}), &json!({}));
        suite
    }

    /// Writes the eval file: `config` is added to its configuration, `set` to its only task set.
    pub fn eval(&self, config: &Value, set: &Value) {
        let mut all = json!({
            "agent": {"type": "builtin.llm-agent", "model": "scripted:model.yaml"},
            "mcpConfigFile": "mcp.json",
            "taskSets": [{"glob": "tasks/*.yaml"}],
        });
        merge(&mut all, config);
        merge(&mut all["taskSets"][0], set);
        let eval = json!({"kind": "Eval", "metadata": {"name": "suite"}, "config": all});
        self.write("eval.yaml", &eval.to_string());
    }

    /// Writes a task whose prompt is its own name. `spec` is added to its specification.
    pub fn task(&self, name: &str, spec: &Value) {
        let mut all = json!({"prompt": {"inline": name}});
        merge(&mut all, spec);
        let task = json!({
            "kind": "Task",
            "apiVersion": "mcpchecker/v1alpha2",
            "metadata": {"name": name},
            "spec": all,
        });
        self.write(&format!("tasks/{name}.yaml"), &task.to_string());
    }

    /// Writes a file of the suite.
    pub fn write(&self, name: &str, text: &str) {
        let path = self.path(name);
        if let Some(folder) = path.parent() {
            std::fs::create_dir_all(folder).expect("a folder can be made");
        }
        std::fs::write(path, text).expect("a file can be written");
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// Runs the program in the folder of the suite.
    pub fn proctor(&self, words: &[&str]) -> Output {
        Command::new(crate::proctor())
            .args(words)
            .env("LC_ALL", "C.UTF-8")
            .current_dir(self.folder())
            .output()
            .expect("proctor can be run")
    }

    /// Runs Proctor in the folder of the suite, on a machine that no engine of jobs knows, with a cache of its own.
    pub fn on_machine(&self, words: &[&str], variables: &[(&str, &str)]) -> Output {
        let mut command = Command::new(crate::proctor());
        command.args(words).current_dir(self.folder());
        for name in [
            "CI_NODE_INDEX",
            "CI_NODE_TOTAL",
            "CI_PIPELINE_ID",
            "GITHUB_RUN_ID",
            "PROCTOR_RUN_ID",
        ] {
            command.env_remove(name);
        }
        command.env("XDG_CACHE_HOME", self.path("cache"));
        command.envs(variables.iter().copied());
        command.output().expect("proctor can be run")
    }

    /// Like [`SuiteFixture::on_machine`]. Returns stdout and stderr, and panics if the exit code is another one.
    #[track_caller]
    pub fn expect(&self, words: &[&str], exit: i32) -> (String, String) {
        let output = self.on_machine(words, &[]);
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        let (stdout, stderr) = (text(&output.stdout), text(&output.stderr));
        assert_eq!(
            output.status.code(),
            Some(exit),
            "{words:?}: {stdout}{stderr}"
        );
        (stdout, stderr)
    }

    /// Returns a session of `proctor check` on the suite, with these arguments.
    pub fn check(&self, words: &[&str]) -> Session {
        let eval = self.path("eval.yaml").display().to_string();
        let mut all = vec!["check", &eval];
        all.extend(words);
        Session::new(&all)
    }
}

/// A command for scripts that waits until all that they wrote to stdout has been read.
pub const UNTIL_READ: &str = r#"python3 -c '
import fcntl, struct, termios, time
while struct.unpack("i", fcntl.ioctl(1, termios.FIONREAD, b"    "))[0]:
    time.sleep(0.01)
'"#;

/// Runs a suite with a short time limit, and with a longer one if a busy machine needs it to reach what the test is
/// about. Returns the limit and the outcome.
pub fn with_enough_time(
    run: impl Fn(&str) -> SessionOutcome,
    is_reached: impl Fn(&SessionOutcome) -> bool,
) -> (&'static str, SessionOutcome) {
    for limit in ["300ms", "3s"] {
        let seen = run(limit);
        if is_reached(&seen) {
            return (limit, seen);
        }
    }
    ("30s", run("30s"))
}

/// Whether an agent or a step has called a tool.
pub fn has_called(seen: &SessionOutcome) -> bool {
    seen.frames().any(|frame| match &frame.body {
        Body::Text(text) => text.contains("tools/call"),
        _ => false,
    })
}

fn merge(into: &mut Value, more: &Value) {
    for (key, value) in more.as_object().into_iter().flatten() {
        into[key] = value.clone();
    }
}
