//! A viewer under test, and requests to it byte by byte.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use proctor_e2e::session::{MARK, survivors};
use proctor_e2e::suite::SuiteFixture;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};

/// How long anything may take on a busy machine.
pub const PATIENCE: Duration = Duration::from_mins(2);

const RULES: &str = r"
  - when: {results: 0}
    reply: {calls: [{tool: echo, arguments: {text: hi}}]}
  - reply: {text: all done}
";

pub struct Viewer {
    child: Child,
    pub port: u16,
    pub token: String,
    mark: String,
}

/// The answer to a request.
#[derive(Debug)]
pub struct Reply {
    pub status: u16,
    pub head: String,
    pub body: Vec<u8>,
}

impl Reply {
    /// The message of an error.
    pub fn error(&self) -> String {
        let body: Value = serde_json::from_slice(&self.body).unwrap_or_default();
        body["error"].as_str().unwrap_or_default().to_owned()
    }

    pub fn json(&self) -> Value {
        assert_eq!(self.status, 200, "{}", self.error());
        serde_json::from_slice(&self.body).unwrap()
    }
}

impl Viewer {
    /// Starts `proctor view` in a folder.
    pub fn start(folder: &Path, words: &[&str]) -> Self {
        Self::start_with(folder, words, |_| {})
    }

    pub fn start_with(folder: &Path, words: &[&str], set_up: impl Fn(&mut Command)) -> Self {
        let mark = format!("view-{}-{:?}", std::process::id(), Instant::now());
        let mut command = Command::new(proctor_e2e::proctor());
        command
            .arg("view")
            .args(words)
            .current_dir(folder)
            .env(MARK, &mark)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::null());
        set_up(&mut command);
        let mut child = command.spawn().unwrap();
        let mut line = String::new();
        let mut stdout = BufReader::new(child.stdout.take().unwrap());
        stdout.read_line(&mut line).unwrap();
        let address = line.trim().strip_prefix("http://127.0.0.1:").unwrap();
        let (port, token) = address.split_once("/#token=").unwrap();
        assert_eq!(token.len(), 64, "{line}");
        Self {
            child,
            port: port.parse().unwrap(),
            token: token.to_owned(),
            mark,
        }
    }

    pub fn id(&self) -> u32 {
        self.child.id()
    }

    pub fn connect(&self) -> TcpStream {
        let stream = TcpStream::connect(("127.0.0.1", self.port)).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        stream
    }

    /// The head of a request with the token.
    pub fn request(&self, method: &str, path: &str) -> String {
        let (port, token) = (self.port, &self.token);
        format!(
            "{method} {path} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nAuthorization: Bearer {token}\r\n\
             Connection: close\r\n\r\n"
        )
    }

    /// Sends bytes as they are, and reads to the end.
    pub fn send(&self, request: &str) -> Reply {
        let mut stream = self.connect();
        stream.write_all(request.as_bytes()).unwrap();
        let mut all = Vec::new();
        // A refused connection may be reset after the response.
        let _ = stream.read_to_end(&mut all);
        parsed(&all)
    }

    pub fn get(&self, path: &str) -> Reply {
        self.send(&self.request("GET", path))
    }

    pub fn json(&self, path: &str) -> Value {
        self.get(path).json()
    }

    /// The lines of a stream, as they come.
    pub fn lines(&self, path: &str) -> impl Iterator<Item = Value> + use<> {
        let mut stream = self.connect();
        let request = self.request("GET", path);
        stream.write_all(request.as_bytes()).unwrap();
        let mut lines = BufReader::new(stream).lines();
        // The stream has begun before the caller changes the run.
        let status = lines.next().unwrap().unwrap();
        assert!(status.starts_with("HTTP/1.1 200"), "{status}");
        // Each line is a chunk of its own, between the lines of the chunked encoding.
        lines.map_while(Result::ok).filter_map(|line| {
            let is_json = line.starts_with('{');
            is_json.then(|| serde_json::from_str(&line).unwrap())
        })
    }

    /// Ends the viewer as Ctrl-C does. Returns its exit code.
    pub fn stop(mut self) -> Option<i32> {
        let pid = Pid::from_child(&self.child);
        kill_process(pid, Signal::INT).unwrap();
        let deadline = Instant::now() + PATIENCE;
        let code = loop {
            if let Some(status) = self.child.try_wait().unwrap() {
                break status.code();
            }
            assert!(Instant::now() < deadline, "the viewer does not end");
            std::thread::sleep(Duration::from_millis(10));
        };
        assert_eq!(survivors(&self.mark), Vec::<String>::new());
        code
    }
}

impl Drop for Viewer {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn parsed(all: &[u8]) -> Reply {
    let text = String::from_utf8_lossy(all);
    let end = text.find("\r\n\r\n").unwrap_or(text.len());
    let head = text[..end].to_lowercase();
    let status = head.split(' ').nth(1).and_then(|word| word.parse().ok());
    let mut body = all.get(end + 4..).unwrap_or_default().to_vec();
    if head.contains("transfer-encoding: chunked") {
        body = joined(&body);
    }
    Reply {
        status: status.unwrap_or(0),
        head,
        body,
    }
}

/// The content of a chunked body.
fn joined(mut body: &[u8]) -> Vec<u8> {
    let mut all = Vec::new();
    while let Some(end) = body.windows(2).position(|two| two == b"\r\n") {
        let size = String::from_utf8_lossy(&body[..end]);
        let size = usize::from_str_radix(size.trim(), 16).unwrap();
        let from = end + 2;
        all.extend_from_slice(&body[from..from + size]);
        body = body.get(from + size + 2..).unwrap_or_default();
    }
    all
}

/// A suite with a case that passes, and one that fails.
pub fn suite() -> SuiteFixture {
    let suite = SuiteFixture::new(RULES, &[]);
    suite.task(
        "good",
        &json!({"verify": [{"script": {"inline": "test -d ."}}]}),
    );
    suite.task(
        "bad",
        &json!({"verify": [{"script": {"inline": "exit 1"}}]}),
    );
    suite
}

/// A suite with a case whose trials run until the file `go` exists, one after the other.
pub fn waiting_suite() -> SuiteFixture {
    let suite = SuiteFixture::new(RULES, &[]);
    let go = suite.path("go");
    let wait = format!("until test -e {}; do sleep 0.05; done", go.display());
    suite.task(
        "a-good",
        &json!({"verify": [{"script": {"inline": "test -d ."}}]}),
    );
    suite.task("b-wait", &json!({"verify": [{"script": {"inline": wait}}]}));
    suite
}

pub fn proctor(suite: &SuiteFixture, words: &[&str]) -> Command {
    let mut command = Command::new(proctor_e2e::proctor());
    command
        .args(words)
        .current_dir(suite.folder())
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    command
}

/// Runs the suite, and returns the folder of the run.
pub fn run(suite: &SuiteFixture, name: &str) -> PathBuf {
    let folder = format!("runs/{name}");
    let words = ["check", "eval.yaml", "-n", "2", "--record", &folder];
    let status = proctor(suite, &words).status().unwrap();
    assert!(status.code().is_some_and(|code| code <= 1), "{status}");
    suite.path(&folder)
}

/// What `proctor result show` says about a run, or its error.
pub fn shown(suite: &SuiteFixture, run: &str) -> Result<Value, String> {
    let output = proctor(suite, &["result", "show", run, "-o", "json"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .output()
        .unwrap();
    if output.status.success() {
        Ok(serde_json::from_slice(&output.stdout).unwrap())
    } else {
        Err(String::from_utf8_lossy(&output.stderr).into_owned())
    }
}

/// Waits until a condition holds.
pub fn until(what: &str, mut holds: impl FnMut() -> bool) {
    let deadline = Instant::now() + PATIENCE;
    while !holds() {
        assert!(Instant::now() < deadline, "{what}");
        std::thread::sleep(Duration::from_millis(50));
    }
}
