//! The provider that a tapped agent has: a script behind `proctor model serve`, and a gate before it
//! that keeps what comes in.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;

use rustix::process::{Pid, Signal, kill_process};

/// What the provider wants to see.
pub(crate) const KEY: &str = "sk-canary-0123456789abcdefghijklmnopqrstuvwxyz";

/// The headers in which keys are sent, in the order of [`KEY`]'s forms.
const HEADERS: [&str; 3] = ["authorization", "x-api-key", "x-goog-api-key"];

/// A script that is served; the server is killed when it is dropped.
pub(crate) struct ServedScript {
    child: Child,
    gate: Gate,
}

/// What a provider gave in all.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct ProviderTotals {
    pub(crate) questions: u64,
    pub(crate) sides: u64,
    pub(crate) input: u64,
    pub(crate) output: u64,
}

impl ServedScript {
    /// Serves these rules.
    pub(crate) fn start(folder: &Path, rules: &str) -> Self {
        let script = folder.join("provider.yaml");
        std::fs::write(&script, format!("kind: Script\nrules:\n{rules}")).expect("it is written");
        let mut child = Command::new(proctor_e2e::proctor())
            .args(["model", "serve", "--verbose"])
            .arg(&script)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("it starts");
        let mut line = String::new();
        let stdout = child.stdout.take().expect("it is piped");
        let mut stdout = BufReader::new(stdout);
        stdout.read_line(&mut line).expect("it says where it is");
        let (_, address) = line.trim().rsplit_once("http://").expect("an address");
        let gate = Gate::before(address.to_owned(), None);
        Self { child, gate }
    }

    /// The same, but its first question is put off for so many seconds.
    pub(crate) fn busy(folder: &Path, rules: &str, seconds: u32) -> Self {
        let mut served = Self::start(folder, rules);
        let address = served.url().trim_start_matches("http://").to_owned();
        let body = r#"{"type":"error","error":{"type":"rate_limit_error","message":"slow down"}}"#;
        let length = body.len();
        let first = format!(
            "HTTP/1.1 429 Too Many Requests\r\ncontent-type: application/json\r\nretry-after: {seconds}\r\nconnection: close\r\ncontent-length: {length}\r\n\r\n{body}"
        );
        served.gate = Gate::before(address, Some(first));
        served
    }

    /// Where it is: `http://127.0.0.1:PORT`.
    pub(crate) fn url(&self) -> &str {
        &self.gate.url
    }

    /// The keys that came, each with its header; one a question at most.
    pub(crate) fn keys(&self) -> Vec<(String, String)> {
        let heard = lock(&self.gate.heard);
        let heard = String::from_utf8_lossy(&heard);
        let lines = heard.lines().filter_map(|line| line.split_once(": "));
        let lines = lines.map(|(name, value)| (name.to_ascii_lowercase(), value.to_owned()));
        lines
            .filter(|(name, _)| HEADERS.contains(&name.as_str()))
            .collect()
    }

    /// Ends it with Ctrl-C, and gives what it says it gave.
    pub(crate) fn end(mut self) -> ProviderTotals {
        kill_process(Pid::from_child(&self.child), Signal::INT).expect("it can be ended");
        let stderr = self.child.stderr.take().expect("it is piped");
        let said = std::io::read_to_string(stderr).expect("it can be read");
        let last = said.lines().last().unwrap_or_default();
        let numbers: Vec<u64> = last
            .split(|c: char| !c.is_ascii_digit())
            .filter_map(|digits| digits.parse().ok())
            .collect();
        let [questions, sides, unanswered, input, output] = numbers[..] else {
            panic!("it says nothing of what it gave: {said}");
        };
        assert_eq!(unanswered, 0, "{said}");
        ProviderTotals {
            questions,
            sides,
            input,
            output,
        }
    }
}

impl Drop for ServedScript {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Passes all on, and keeps what came in.
struct Gate {
    url: String,
    heard: Arc<Mutex<Vec<u8>>>,
}

impl Gate {
    fn before(address: String, mut first: Option<String>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("loopback has a free port");
        let own = listener.local_addr().expect("it has an address");
        let heard: Arc<Mutex<Vec<u8>>> = Arc::default();
        let keeping = heard.clone();
        // It ends with the test's process.
        thread::spawn(move || {
            for mut client in listener.incoming().flatten() {
                if let Some(answer) = first.take() {
                    // All of a short question; the rest of a long one need not be read.
                    let _ = client.read(&mut vec![0; 64 * 1024]);
                    let _ = client.write_all(answer.as_bytes());
                    let _ = client.shutdown(Shutdown::Write);
                    thread::spawn(move || std::io::copy(&mut client, &mut std::io::sink()));
                    continue;
                }
                let Ok(server) = TcpStream::connect(&address) else {
                    continue;
                };
                let (heard, back) = (keeping.clone(), (copy(&server), copy(&client)));
                let forth = (copy(&client), copy(&server));
                thread::spawn(move || pass(forth, &heard));
                thread::spawn(move || pass(back, &Mutex::default()));
            }
        });
        Self {
            url: format!("http://{own}"),
            heard,
        }
    }
}

fn copy(stream: &TcpStream) -> TcpStream {
    stream.try_clone().expect("a socket can be shared")
}

fn pass((mut from, mut to): (TcpStream, TcpStream), heard: &Mutex<Vec<u8>>) {
    let mut part = [0; 16 * 1024];
    while let Ok(length @ 1..) = from.read(&mut part) {
        lock(heard).extend_from_slice(&part[..length]);
        if to.write_all(&part[..length]).is_err() {
            break;
        }
    }
    let _ = to.shutdown(Shutdown::Write);
}

/// A provider that accepts connections and never says anything. It ends with the test's process.
pub(crate) fn mute() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").expect("loopback has a free port");
    let address = listener.local_addr().expect("it has an address");
    thread::spawn(move || {
        let mut kept = Vec::new();
        for stream in listener.incoming().flatten() {
            kept.push(stream);
        }
    });
    format!("http://{address}")
}

/// A provider that refuses every question in the same words. It ends with the test's process.
pub(crate) fn refusing(status: &'static str, headers: &'static str, body: String) -> String {
    saying(status, "application/json", headers, body)
}

/// A provider that answers every question with a page, as one behind a login does.
pub(crate) fn paging() -> String {
    let page = "<!DOCTYPE html><html><body><h1>Welcome</h1></body></html>";
    saying("200 OK", "text/html", "", page.to_owned())
}

fn saying(status: &'static str, kind: &'static str, headers: &'static str, body: String) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").expect("loopback has a free port");
    let address = listener.local_addr().expect("it has an address");
    thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let body = body.clone();
            thread::spawn(move || say(stream, status, kind, headers, &body));
        }
    });
    format!("http://{address}")
}

fn say(
    stream: TcpStream,
    status: &str,
    kind: &str,
    headers: &str,
    body: &str,
) -> std::io::Result<()> {
    let mut reader = BufReader::new(stream);
    loop {
        let mut head = String::new();
        while !head.ends_with("\r\n\r\n") {
            if reader.read_line(&mut head)? == 0 {
                return Ok(());
            }
        }
        let lower = head.to_ascii_lowercase();
        let length = lower
            .lines()
            .find_map(|l| l.strip_prefix("content-length: "));
        let length = length.and_then(|length| length.trim().parse().ok());
        let mut question = vec![0; length.unwrap_or(0)];
        reader.read_exact(&mut question)?;
        let length = body.len();
        let said = format!(
            "HTTP/1.1 {status}\r\ncontent-type: {kind}\r\ncontent-length: {length}\r\n{headers}\r\n{body}"
        );
        reader.get_mut().write_all(said.as_bytes())?;
    }
}

fn lock<T>(what: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    what.lock().unwrap_or_else(PoisonError::into_inner)
}
