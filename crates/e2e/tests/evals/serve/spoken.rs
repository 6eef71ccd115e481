//! A server on stdin and stdout, spoken to line by line.

use std::io::{BufRead, BufReader, Read, Write};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};

/// Nothing here takes that long, unless it hangs.
const BOUND: Duration = Duration::from_mins(5);

/// Longer lines come in pieces.
const PIECE: u64 = 16 << 20;

pub struct SpokenSession {
    child: Child,
    stdin: Option<ChildStdin>,
    lines: Receiver<Vec<u8>>,
    stderr: Arc<Mutex<String>>,
    reading: JoinHandle<()>,
}

/// What came of it.
#[derive(Debug)]
pub struct ServeOutcome {
    pub code: Option<i32>,
    pub stderr: String,
    /// What was said since.
    pub rest: Vec<u8>,
}

impl SpokenSession {
    pub fn start(command: &[String]) -> Self {
        Self::start_with(command, &[])
    }

    pub fn start_with(command: &[String], env: &[(&str, &str)]) -> Self {
        let mut child = Command::new(&command[0])
            .args(&command[1..])
            .envs(env.iter().copied())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let (to, lines) = channel();
        let mut stdout = BufReader::new(child.stdout.take().unwrap());
        std::thread::spawn(move || {
            loop {
                let mut line = Vec::new();
                match (&mut stdout).take(PIECE).read_until(b'\n', &mut line) {
                    Ok(1..) if to.send(line).is_ok() => {}
                    _ => return,
                }
            }
        });
        let stderr = Arc::new(Mutex::new(String::new()));
        let (mut from, told) = (child.stderr.take().unwrap(), stderr.clone());
        let reading = std::thread::spawn(move || {
            let mut chunk = [0; 4096];
            while let Ok(read @ 1..) = from.read(&mut chunk) {
                let text = String::from_utf8_lossy(&chunk[..read]);
                told.lock().unwrap().push_str(&text);
            }
        });
        Self {
            stdin: child.stdin.take(),
            child,
            lines,
            stderr,
            reading,
        }
    }

    pub fn send(&mut self, bytes: &[u8]) {
        let stdin = self.stdin.as_mut().unwrap();
        stdin.write_all(bytes).unwrap();
        stdin.flush().unwrap();
    }

    /// The next line, with its end.
    pub fn line(&mut self) -> Vec<u8> {
        match self.lines.recv_timeout(BOUND) {
            Ok(line) => line,
            Err(why) => panic!("no line: {why}; {}", self.stderr.lock().unwrap()),
        }
    }

    /// Lines up to the answer to a request. What the server asks on the way is answered.
    pub fn until(&mut self, id: &Value) -> Vec<Vec<u8>> {
        let mut lines = Vec::new();
        loop {
            let line = self.line();
            let text = String::from_utf8_lossy(strip(&line)).into_owned();
            let message: Value = serde_json::from_str(&text).unwrap_or_default();
            lines.push(line);
            if message.get("method").is_none() && message.get("id") == Some(id) {
                return lines;
            }
            if let (Some(asked), Some(_)) = (message.get("id"), message.get("method")) {
                let result = json!({"role": "assistant", "model": "m", "action": "accept",
                    "content": {"type": "text", "text": "answered"}, "roots": []});
                let answer = json!({"jsonrpc": "2.0", "id": asked, "result": result});
                self.send(format!("{answer}\n").as_bytes());
            }
        }
    }

    /// Sends a request, and waits for its answer.
    pub fn ask(&mut self, method: &str, params: &Value) -> Value {
        let id = json!("ours");
        let request = json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params});
        self.send(format!("{request}\n").as_bytes());
        let line = self.until(&id).pop().unwrap();
        serde_json::from_slice(strip(&line)).unwrap()
    }

    /// The whole handshake.
    pub fn initialize(&mut self) -> Value {
        let params = json!({"protocolVersion": "2025-11-25", "capabilities": {"sampling": {}},
            "clientInfo": {"name": "test", "version": "1"}});
        let answer = self.ask("initialize", &params);
        self.send(b"{\"jsonrpc\":\"2.0\",\"method\":\"notifications/initialized\"}\n");
        answer
    }

    /// Waits until stderr has a text.
    pub fn wait_for(&self, text: &str) {
        let deadline = Instant::now() + BOUND;
        while !self.stderr.lock().unwrap().contains(text) {
            let said = self.stderr.lock().unwrap().clone();
            assert!(Instant::now() < deadline, "`{text}` was not said: {said}");
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    /// The most memory that it held, in KiB.
    pub fn peak_kib(&self) -> u64 {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.child.id())).unwrap();
        let line = status.lines().find(|line| line.starts_with("VmHWM:"));
        let number = line.and_then(|line| line.split_whitespace().nth(1));
        number.unwrap().parse().unwrap()
    }

    pub fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.child), signal).unwrap();
    }

    /// Reads and forgets what is said, up to a number of bytes; gives how many there were.
    pub fn skip(&mut self, wanted: usize) -> usize {
        let mut skipped = 0;
        while skipped < wanted {
            match self.lines.recv_timeout(BOUND) {
                Ok(line) => skipped += line.len(),
                Err(RecvTimeoutError::Disconnected) => break,
                Err(RecvTimeoutError::Timeout) => panic!("nothing more after {skipped}"),
            }
        }
        skipped
    }

    /// Asks it to end, and waits.
    pub fn terminate(self) -> ServeOutcome {
        self.signal(Signal::TERM);
        self.end()
    }

    /// Closes stdin, and waits for the end.
    pub fn finish(mut self) -> ServeOutcome {
        self.stdin = None;
        self.end()
    }

    /// Waits for the end.
    pub fn end(mut self) -> ServeOutcome {
        let deadline = Instant::now() + BOUND;
        let status = loop {
            if let Some(status) = self.child.try_wait().unwrap() {
                break status;
            }
            if Instant::now() > deadline {
                let _ = self.child.kill();
                panic!("it did not end: {}", self.stderr.lock().unwrap());
            }
            std::thread::sleep(Duration::from_millis(5));
        };
        let mut rest = Vec::new();
        while let Ok(line) = self.lines.recv_timeout(BOUND) {
            rest.extend(line);
        }
        self.reading.join().unwrap();
        let stderr = self.stderr.lock().unwrap().clone();
        ServeOutcome {
            code: status.code(),
            stderr,
            rest,
        }
    }
}

/// A line without what some servers write before their first.
pub fn strip(line: &[u8]) -> &[u8] {
    line.strip_prefix(b"\xef\xbb\xbf").unwrap_or(line)
}
