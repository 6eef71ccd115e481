//! `proctor check --watch`: runs again after a change, and ends in order.

use std::io::Read;
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use proctor_e2e::session::{MARK, survivors};
use proctor_e2e::suite::SuiteFixture;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::json;

const RULES: &str = r"
  - when: {prompt: good, results: 0}
    reply: {calls: [{tool: echo, arguments: {text: hi}}]}
  - reply: {text: done}
";

/// A watching process, whose output is read while it runs.
struct WatchSession {
    child: Child,
    mark: String,
    stdout: Collected,
    stderr: Collected,
}

/// What a stream has said so far, and the thread that reads it.
struct Collected {
    text: Arc<Mutex<String>>,
    reading: JoinHandle<()>,
}

impl WatchSession {
    fn start(suite: &SuiteFixture) -> Self {
        let mark = format!("{}-{}", std::process::id(), suite.folder().display());
        let mut child = Command::new(proctor_e2e::proctor())
            .args(["check", "eval.yaml", "--watch", "--pass-env", MARK])
            .current_dir(suite.folder())
            .env(MARK, &mark)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        Self {
            stdout: collect(child.stdout.take().unwrap()),
            stderr: collect(child.stderr.take().unwrap()),
            child,
            mark,
        }
    }

    /// Waits until stderr has said this so often.
    fn wait_for(&self, text: &str, times: usize) {
        let deadline = Instant::now() + Duration::from_mins(3);
        loop {
            let said = self.stderr.text.lock().unwrap().clone();
            if said.matches(text).count() >= times {
                return;
            }
            assert!(Instant::now() < deadline, "`{text}` {times}×:\n{said}");
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// Writes files while it can't look at them, so that it sees all of them at once.
    fn unseen(&self, write: impl FnOnce()) {
        let pid = Pid::from_child(&self.child);
        kill_process(pid, Signal::STOP).unwrap();
        write();
        kill_process(pid, Signal::CONT).unwrap();
    }

    /// Interrupts it, and returns the exit code, stdout and stderr.
    fn interrupt(mut self) -> (Option<i32>, String, String) {
        kill_process(Pid::from_child(&self.child), Signal::INT).unwrap();
        let deadline = Instant::now() + Duration::from_mins(2);
        let status = loop {
            if let Some(status) = self.child.try_wait().unwrap() {
                break status;
            }
            if Instant::now() > deadline {
                let _ = self.child.kill();
                panic!("it does not end: {}", self.stderr.text.lock().unwrap());
            }
            std::thread::sleep(Duration::from_millis(20));
        };
        let left = survivors(&self.mark);
        assert!(left.is_empty(), "processes are left: {left:?}");
        (status.code(), self.stdout.whole(), self.stderr.whole())
    }
}

impl Collected {
    /// Waits for the end of the stream.
    fn whole(self) -> String {
        self.reading.join().unwrap();
        std::mem::take(&mut self.text.lock().unwrap())
    }
}

fn collect(mut stream: impl Read + Send + 'static) -> Collected {
    let text: Arc<Mutex<String>> = Arc::default();
    let to = text.clone();
    let reading = std::thread::spawn(move || {
        let mut bytes = [0; 4096];
        while let Ok(count @ 1..) = stream.read(&mut bytes) {
            let part = String::from_utf8_lossy(&bytes[..count]).into_owned();
            to.lock().unwrap().push_str(&part);
        }
    });
    Collected { text, reading }
}

fn suite() -> SuiteFixture {
    let suite = SuiteFixture::new(RULES, &[]);
    let assertions = json!({"toolsUsed": [{"server": "fixture", "tool": "echo"}]});
    suite.eval(&json!({}), &json!({"assertions": assertions}));
    suite.task("bad", &json!({}));
    suite
}

#[test]
fn a_change_of_a_file_runs_the_suite_again_until_it_is_interrupted() {
    let suite = suite();
    let watching = WatchSession::start(&suite);
    watching.wait_for("exit code 1; watching", 1);
    // Several writes at once are one change.
    let assertions = json!({"maxToolCalls": 1});
    watching.unseen(|| {
        suite.eval(&json!({}), &json!({}));
        suite.task("good", &json!({}));
        suite.eval(&json!({}), &json!({"assertions": assertions}));
    });
    watching.wait_for("exit code 0; watching", 1);
    // A mistake is shown, and watching goes on.
    suite.write("eval.yaml", "kind: Eval\nconfig: [");
    watching.wait_for("exit code 2; watching", 1);
    suite.eval(&json!({}), &json!({"assertions": assertions}));
    watching.wait_for("exit code 0; watching", 2);
    let (code, stdout, stderr) = watching.interrupt();
    assert_eq!(code, Some(130), "{stderr}");
    assert_eq!(stdout.matches("Gate      met").count(), 2, "{stdout}");
    assert_eq!(stdout.matches("Gate      missed").count(), 1, "{stdout}");
    assert!(
        stderr.contains("changed: `eval.yaml`, `tasks/good.yaml`\n"),
        "{stderr}"
    );
}

#[test]
fn an_interrupted_run_ends_the_watching_too() {
    let suite = suite();
    // The second run hangs in its setup, which a signal of the first run's handler must not kill.
    let watching = WatchSession::start(&suite);
    watching.wait_for("exit code 1; watching", 1);
    suite.task(
        "bad",
        &json!({"setup": [{"script": {"inline": "touch started; sleep 60"}}],
                "cleanup": [{"script": {"inline": "touch cleaned"}}]}),
    );
    let deadline = Instant::now() + Duration::from_mins(2);
    while !suite.path("tasks/started").exists() {
        assert!(Instant::now() < deadline, "the setup does not start");
        std::thread::sleep(Duration::from_millis(20));
    }
    let (code, stdout, stderr) = watching.interrupt();
    assert_eq!(code, Some(130), "{stderr}");
    assert!(suite.path("tasks/cleaned").exists(), "{stdout}{stderr}");
}
