//! A bridge in a process of its own: to be measured, and killed.

use std::io::{BufRead, BufReader, Lines};
use std::process::{Child, ChildStdout, Command, Stdio};

use proctor_wire::proxy::Admission;

use super::http::Http;
use super::stage::{Stage, fixture};

pub struct Host {
    pub child: Child,
    /// Kept open, since it is written to once more.
    _stdout: Lines<BufReader<ChildStdout>>,
    pub http: Http,
}

impl Host {
    pub fn start(args: &[&str]) -> Self {
        let args = serde_json::to_string(args).expect("texts are JSON");
        let itself = std::env::current_exe().expect("a running test has a path");
        let mut child = Command::new(itself)
            .args(["--ignored", "--exact", "bridge::host::host", "--nocapture"])
            .env("BRIDGED", args)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("the test starts again");
        let stdout = child.stdout.take().expect("stdout is piped");
        let mut lines = BufReader::new(stdout).lines();
        let url = lines.find_map(|line| {
            let line = line.expect("it writes lines");
            line.find("http://").map(|at| line[at..].to_owned())
        });
        let http = Http::at(&url.expect("it tells its URL"), &[]);
        Self {
            child,
            _stdout: lines,
            http,
        }
    }

    /// How many bytes it has read, wherever from.
    pub fn read(&self) -> u64 {
        let path = format!("/proc/{}/io", self.child.id());
        let io = std::fs::read_to_string(path).expect("it runs");
        let read = io.lines().find_map(|line| line.strip_prefix("rchar: "));
        let read = read.expect("Linux tells");
        read.parse().expect("it is a number")
    }

    /// The most memory that it ever took.
    pub fn peak_kib(&self) -> u64 {
        let path = format!("/proc/{}/status", self.child.id());
        let status = std::fs::read_to_string(path).expect("it runs");
        let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
        let peak = peak.expect("Linux tells").trim().trim_end_matches(" kB");
        peak.parse().expect("it is a number")
    }
}

impl Drop for Host {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[tokio::test]
#[ignore = "it is run by other tests, in a process of its own"]
async fn host() {
    let args: Vec<String> = serde_json::from_str(&std::env::var("BRIDGED").unwrap()).unwrap();
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    let stage = Stage::new(&fixture(&args), Admission::Open).await;
    let mut stdout = std::io::stdout();
    let url = format!("{}\n", stage.bridge.url());
    std::io::Write::write_all(&mut stdout, url.as_bytes()).unwrap();
    let waiting = tokio::task::spawn_blocking(|| {
        let _ = std::io::stdin().read_line(&mut String::new());
    });
    waiting.await.unwrap();
    stage.end().await;
}
