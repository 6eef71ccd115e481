//! A server behind a real OAuth server, and the suites on it.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};

use proctor_e2e::Fixture;
use proctor_e2e::session::{Session, SessionOutcome};
use proctor_e2e::suite::SuiteFixture;
use proctor_record::event::{Actor, Blame, Outcome, TrialEnded};
use proctor_record::fold::{FoldOptions, fold_trial};
use proctor_record::record::RunReader;
use serde_json::{Value, json};

use crate::canary::secret::Canary;
use crate::selection::cache;

pub(super) const SECRET: &str = "the-s3cret-of-the-suite";

/// The rules of a model that calls `echo` once.
const ONCE: &str = "  - {when: {results: 0}, reply: {calls: [{tool: echo, arguments: {text: hi}}]}}\n  - reply: {text: done}\n";

/// An agent that looks for the token wherever it can, and sends one of its own.
const SPY: &str = r#"
import glob, json, os, sys, tempfile, urllib.request
where, found = sys.argv[1], sys.argv[2]
def post(message, session=None):
    headers = {"Content-Type": "application/json", "Accept": "application/json, text/event-stream",
               "Authorization": "Bearer of-the-agent-itself"}
    if session: headers["Mcp-Session-Id"] = session
    body = json.dumps(dict(message, jsonrpc="2.0")).encode()
    try:
        answer = urllib.request.urlopen(urllib.request.Request(where, body, headers), timeout=60)
        answer.read()
        return answer.headers.get("Mcp-Session-Id")
    except urllib.error.HTTPError as error:
        with open(found, "a") as out: print(error.headers.get("WWW-Authenticate"), file=out)
def read(path):
    try: return open(path, "rb").read(100_000) if path != found else b""
    except OSError: return b""
def spy():
    paths = glob.glob("/proc/[0-9]*/cmdline") + glob.glob("/proc/[0-9]*/task/*/cmdline") + ["/proc/self/environ"]
    # Its own folder and home, unless that is the user's.
    for folder in {os.getcwd(), os.environ["HOME"]}:
        if not folder.startswith(tempfile.gettempdir()): continue
        for root, _, files in os.walk(folder): paths += [os.path.join(root, name) for name in files]
    with open(found, "ab") as out:
        for path in paths: out.write(read(path) + b"\n")
session = post({"id": 1, "method": "initialize", "params": {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "spy", "version": "1"}}})
post({"method": "notifications/initialized"}, session)
post({"id": 2, "method": "tools/list", "params": {}}, session)
spy()
post({"id": 3, "method": "tools/call", "params": {"name": "echo", "arguments": {"text": "hi"}}}, session)
spy()
print("done")
"#;

pub(super) struct OauthStage {
    child: Child,
    pub(super) url: String,
    pub(super) issuer: String,
    control: String,
    folder: tempfile::TempDir,
    _fixture: Fixture,
}

/// What the OAuth server has seen.
pub(super) struct Seen {
    /// All tokens that it gave out.
    pub(super) tokens: Vec<String>,
    /// The token of each request that was accepted.
    pub(super) accepted: Vec<String>,
    /// The number of requests to the token endpoint.
    pub(super) grants: u64,
    /// The largest number of such requests at a time.
    pub(super) most: u64,
}

impl OauthStage {
    pub(super) fn start() -> Self {
        let fixture = Fixture::http(&[]);
        let folder = tempfile::tempdir().unwrap();
        let modules = folder.path().join("node_modules");
        std::os::unix::fs::symlink(cache().join("oauth/node_modules"), modules).unwrap();
        let source = Path::new(env!("CARGO_MANIFEST_DIR"));
        let script = folder.path().join("oauth.mjs");
        std::fs::copy(source.join("servers/oauth.mjs"), &script).unwrap();
        let mut child = Command::new("node")
            .arg(&script)
            .arg(fixture.url())
            .env("CLIENT_SECRET", SECRET)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let mut line = String::new();
        let stdout = child.stdout.as_mut().unwrap();
        BufReader::new(stdout).read_line(&mut line).unwrap();
        let addresses: Value = serde_json::from_str(&line).unwrap();
        let address = |name: &str| addresses[name].as_str().unwrap().to_owned();
        Self {
            url: address("url"),
            issuer: address("issuer"),
            control: address("control"),
            child,
            folder,
            _fixture: fixture,
        }
    }

    /// Sets what goes wrong from now on.
    pub(super) fn set(&self, faults: &Value) {
        self.control("POST", &faults.to_string());
    }

    pub(super) fn seen(&self) -> Seen {
        let seen = self.control("GET", "");
        let texts = |name: &str| {
            let texts = seen[name].as_array().unwrap().iter();
            texts
                .map(|text| text.as_str().unwrap().to_owned())
                .collect()
        };
        Seen {
            tokens: texts("tokens"),
            accepted: texts("accepted"),
            grants: seen["grants"].as_u64().unwrap(),
            most: seen["most"].as_u64().unwrap(),
        }
    }

    fn control(&self, method: &str, body: &str) -> Value {
        let host = self.control.strip_prefix("http://").unwrap();
        let mut stream = TcpStream::connect(host).unwrap();
        let length = body.len();
        let head =
            format!("{method} / HTTP/1.0\r\nhost: {host}\r\ncontent-length: {length}\r\n\r\n");
        stream.write_all(head.as_bytes()).unwrap();
        stream.write_all(body.as_bytes()).unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        serde_json::from_str(answer.split_once("\r\n\r\n").unwrap().1).unwrap()
    }

    /// A session with the variables that suites use, and the logins of this stage.
    pub(super) fn session(&self, session: Session) -> Session {
        let session = session.env("XDG_STATE_HOME", self.state().to_str().unwrap());
        session.env("SUITE_SECRET", SECRET)
    }

    fn state(&self) -> PathBuf {
        self.folder.path().join("state")
    }

    pub(super) fn logins(&self) -> PathBuf {
        self.state().join("proctor/logins.json")
    }

    /// A command of `proctor` without a record.
    pub(super) fn proctor(&self, words: &[&str]) -> Command {
        let mut command = Command::new(proctor_e2e::proctor());
        command.args(words).env("XDG_STATE_HOME", self.state());
        command
    }

    /// Starts a login, and returns it with the page that the user has to open.
    pub(super) fn log_in(&self, words: &[&str]) -> (Child, String) {
        let words = [&["login", &self.url], words].concat();
        let mut login = self.proctor(&words);
        let login = login.stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut login = login.spawn().unwrap();
        let mut page = String::new();
        let stdout = login.stdout.as_mut().unwrap();
        BufReader::new(stdout).read_line(&mut page).unwrap();
        (login, page.trim().to_owned())
    }

    /// The user at the login page.
    pub(super) fn browse(page: &str, words: &[&str]) -> Output {
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("clients/browser.mjs");
        let mut browser = Command::new("node");
        browser.arg(script).arg(page).args(words).output().unwrap()
    }

    /// The built-in agent on a server with this `auth`.
    pub(super) fn by_loop(&self, auth: &Value) -> SuiteFixture {
        self.by_loop_with(ONCE, auth)
    }

    pub(super) fn by_loop_with(&self, rules: &str, auth: &Value) -> SuiteFixture {
        let server = json!({"type": "http", "url": self.url, "auth": auth});
        let suite = SuiteFixture::on(rules, &json!({"api": server}));
        suite.eval(&json!({}), &json!({"assertions": called_once()}));
        suite.task("call", &json!({}));
        suite
    }

    /// An external agent that looks for the token, and writes what it finds to `found`.
    pub(super) fn by_spy(&self, auth: &Value) -> SuiteFixture {
        let suite = self.by_loop(auth);
        suite.write("spy.py", SPY);
        let path = |name: &str| suite.path(name).display().to_string();
        let run = format!(
            "python3 {} {{{{ .McpServerFileArgs }}}} {}",
            path("spy.py"),
            path("found")
        );
        let commands = json!({"argTemplateMcpServer": "{{ .URL }}", "runPrompt": run});
        let agent = json!({"kind": "Agent", "metadata": {"name": "spy"}, "commands": commands});
        suite.write("agent.yaml", &agent.to_string());
        let agent = json!({"agent": {"type": "file", "path": "agent.yaml"}});
        suite.eval(&agent, &json!({"assertions": called_once()}));
        suite
    }

    /// Checks that no secret is in any byte that a session printed or recorded, packed or not.
    #[track_caller]
    pub(super) fn check_hidden(&self, seen: &SessionOutcome) {
        let tokens = self.seen().tokens;
        assert!(!tokens.is_empty(), "there are tokens to look for");
        let pack = seen.folder.path().join("run.tar.gz");
        let mut export = Command::new(proctor_e2e::proctor());
        let export = export.args(["result", "export"]).arg(&seen.record);
        let export = export.arg("--pack").arg(&pack).output().unwrap();
        assert!(export.status.success(), "the run can be packed");
        let mut packed = Vec::new();
        let pack = std::fs::File::open(pack).unwrap();
        flate2::read::GzDecoder::new(pack)
            .read_to_end(&mut packed)
            .unwrap();
        for secret in tokens.iter().map(String::as_str).chain([SECRET]) {
            let canary = Canary::of(secret.to_owned());
            canary.check(seen);
            canary.look("a pack", &packed);
        }
    }
}

impl Drop for OauthStage {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The client of the suite.
pub(super) fn client() -> Value {
    json!({"clientId": "suite", "clientSecret": "${SUITE_SECRET}"})
}

/// A check that a call that was repeated with another token counts once.
fn called_once() -> Value {
    json!({"toolsUsed": [{"server": "api", "tool": "echo"}], "maxToolCalls": 1})
}

/// The ends of all trials.
pub(super) fn ends(seen: &SessionOutcome) -> Vec<TrialEnded> {
    let run = RunReader::open(&seen.record).unwrap();
    let options = FoldOptions {
        actors: vec![Actor::Agent, Actor::Loop],
        ..FoldOptions::default()
    };
    let trials = run.trials().unwrap();
    let folded = trials.iter().map(|trial| fold_trial(&run, trial, &options));
    folded.map(|trial| trial.unwrap().ended.unwrap()).collect()
}

#[track_caller]
pub(super) fn expect_error(seen: &SessionOutcome, says: &str) {
    let ends = ends(seen);
    let [end] = &ends[..] else {
        panic!("{ends:?}\n{}", seen.stderr);
    };
    assert_eq!(
        (end.outcome, end.blame),
        (Outcome::Errored, Some(Blame::Infra)),
        "{end:?}"
    );
    let reason = end.reason.as_deref().unwrap_or_default();
    assert!(reason.contains(says), "{reason}");
}
