//! `proctor check` on many trials, beside a bare loop that makes the same calls on the same server, and writes and syncs
//! the same messages; and beside mcp-assert, if `MCP_ASSERT` names its program.
//!
//! Every figure is taken in a process of its own, which is this program again: what the system then
//! says of children is what that one run took. Runs take turns, from few trials to many.
#![expect(clippy::print_stdout, reason = "the figures are the result")]

use std::fs::{self, File};
use std::io::{BufRead, BufReader, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::Instant;

use nix::sys::resource::{Usage, UsageWho, getrusage};
use nix::sys::time::TimeValLike;
use proctor_e2e::suite::SuiteFixture;
use proctor_e2e::{fixture, proctor};
use rustix::process::{Pid, WaitId, WaitIdOptions, waitid};
use serde_json::json;

/// How many tasks a suite has. More trials are more runs of each, so that the suite stays the same.
const TASKS: usize = 100;

/// How often everything is run, in turns; `PROCTOR_BENCH_ROUNDS` says otherwise. The best counts: what else the machine
/// does only adds.
const ROUNDS: usize = 3;

/// How many script steps each trial of the suite with steps has, and the script.
const STEPS: usize = 3;
const SCRIPT: &str = "#!/bin/sh\nexit 0\n";

/// How many trials show the cost of a step, and how many starts that of `--version`.
const FEW: usize = 300;

/// How many trials Proctor runs at once.
const JOBS: [&str; 2] = ["1", "2"];

/// What all trials do: call, call again, answer.
const RULES: &str = r"
  - when: {results: 0}
    reply: {calls: [{tool: echo, arguments: {text: one}}]}
  - when: {results: 1}
    reply: {calls: [{tool: echo, arguments: {text: two}}]}
  - reply: {text: done}
";

/// The era is told, so that nobody asks for it.
const SERVER: [&str; 2] = ["--era", "handshake"];

/// In what Linux counts a process's CPU time, in microseconds.
const TICK: u64 = 10_000;

const INITIALIZE: &str = r#"{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"bare","version":"0"}}}"#;
const INITIALIZED: &str = r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#;
const LIST: &str = r#"{"jsonrpc":"2.0","id":1,"method":"tools/list"}"#;
const CALLS: [&str; 2] = [
    r#"{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"echo","arguments":{"text":"one"}}}"#,
    r#"{"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":"echo","arguments":{"text":"two"}}}"#,
];

fn main() {
    // Cargo adds a word of its own.
    let words: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    match words[..] {
        ["bare", servers, folder, trials] => {
            bare(servers == "shared", Path::new(folder), number(trials)).print();
        }
        ["check", eval, record, jobs, trials] => {
            check([eval, record, jobs], number(trials)).print();
        }
        ["peer", program, suite, trials] => peer(program, suite, number(trials)).print(),
        ["scripts", script, runs] => scripts(script, number(runs)).print(),
        ["version", runs] => version(number(runs)).print(),
        _ => {
            compare();
            steps();
        }
    }
}

fn number(text: &str) -> usize {
    text.parse().expect("a number")
}

/// What one run took, in microseconds, and the most memory, in KiB.
struct Figures {
    wall: i64,
    /// Of the loop, or of Proctor without what it started.
    own: i64,
    /// Of what it started: servers, and in Proctor's case their guards.
    children: i64,
    peak: i64,
}

impl Figures {
    fn print(&self) {
        let Self {
            wall,
            own,
            children,
            peak,
        } = self;
        println!("{wall} {own} {children} {peak}");
    }

    /// The least time of each sort, and the most memory.
    fn best(all: &[Self]) -> Option<Self> {
        let least = |of: fn(&Self) -> i64| all.iter().map(of).min();
        Some(Self {
            wall: least(|figures| figures.wall)?,
            own: least(|figures| figures.own)?,
            children: least(|figures| figures.children)?,
            peak: all.iter().map(|f| f.peak).max()?,
        })
    }

    /// Takes them in a process of its own.
    fn of(words: &[&str]) -> Self {
        let this = std::env::current_exe().expect("a running program has a path");
        let out = Command::new(this)
            .args(words)
            .stderr(Stdio::inherit())
            .output()
            .expect("this program starts again");
        assert!(out.status.success(), "{words:?} failed");
        let text = String::from_utf8(out.stdout).expect("figures are text");
        let all: Vec<i64> = text
            .split_whitespace()
            .map(|word| word.parse().expect("a figure is a number"))
            .collect();
        let [wall, own, children, peak] = all[..] else {
            panic!("no figures: {text}");
        };
        Self {
            wall,
            own,
            children,
            peak,
        }
    }
}

fn compare() {
    let most = std::env::var("PROCTOR_BENCH_TRIALS").map_or(10_000, |text| number(&text));
    println!(
        "{:<7} {:<10} {:>4} {:>7} {:>9} {:>12} {:>12} {:>12} {:>12} {:>8}",
        "server",
        "by",
        "jobs",
        "trials",
        "trials/s",
        "wall",
        "all CPU",
        "own CPU",
        "others' CPU",
        "peak MB"
    );
    let peer = std::env::var("MCP_ASSERT").ok();
    // Kept to the end: some file systems make files slowly just after many were removed.
    let records = tempfile::tempdir().expect("a folder can be made");
    for (servers, most) in [("shared", most), ("fresh", (most / 10).max(TASKS))] {
        let suite = suite(servers);
        let eval = suite.path("eval.yaml").display().to_string();
        let sizes = [most / 100, most / 10, most];
        for trials in sizes.into_iter().filter(|trials| *trials >= TASKS) {
            let trials = trials.to_string();
            let mut taken = [const { Vec::new() }; 4];
            let path = |name: &str| records.path().join(name).display().to_string();
            for round in 0..rounds() {
                let folder = path(&format!("{servers}-bare-{trials}-{round}"));
                taken[0].push(Figures::of(&["bare", servers, &folder, &trials]));
                for (jobs, figures) in JOBS.iter().zip(&mut taken[1..]) {
                    let record = path(&format!("{servers}-{jobs}-{trials}-{round}"));
                    figures.push(Figures::of(&["check", &eval, &record, jobs, &trials]));
                }
                // It starts a server for each trial.
                if let (Some(program), "fresh") = (&peer, servers) {
                    let suite = peer_suite(&suite.path("."));
                    taken[3].push(Figures::of(&["peer", program, &suite, &trials]));
                }
            }
            let [bare, one, two, peer] = taken.map(|figures| Figures::best(&figures));
            let bare = bare.expect("a round");
            row([servers, "bare loop", "1", &trials], &bare, None);
            for (jobs, ours) in JOBS.iter().zip([one, two].into_iter().flatten()) {
                row([servers, "Proctor", jobs, &trials], &ours, Some(&bare));
            }
            if let Some(peer) = peer {
                row([servers, "mcp-assert", "1", &trials], &peer, Some(&bare));
            }
        }
    }
    println!("wall and CPU: microseconds a trial, (times the bare loop's)");
}

fn rounds() -> usize {
    std::env::var("PROCTOR_BENCH_ROUNDS").map_or(ROUNDS, |text| number(&text))
}

/// What a script step adds to a trial, beside the script alone, and what a start takes.
fn steps() {
    let (without, with) = (suite("shared"), suite("shared"));
    let script = json!({"script": {"inline": SCRIPT}});
    for task in 0..TASKS {
        let steps = vec![script.clone(); STEPS];
        with.task(&format!("task-{task}"), &json!({"setup": steps}));
    }
    let file = without.path("script.sh");
    fs::write(&file, SCRIPT).expect("a file can be written");
    fs::set_permissions(&file, fs::Permissions::from_mode(0o755)).expect("a mode can be set");
    let (file, few) = (file.display().to_string(), FEW.to_string());
    let records = tempfile::tempdir().expect("a folder can be made");
    let mut taken = [const { Vec::new() }; 4];
    for round in 0..rounds() {
        for (number, suite) in [&without, &with].into_iter().enumerate() {
            let eval = suite.path("eval.yaml").display().to_string();
            let record = records.path().join(format!("{number}-{round}"));
            let record = record.display().to_string();
            taken[number].push(Figures::of(&["check", &eval, &record, "1", &few]));
        }
        taken[2].push(Figures::of(&["scripts", &file, &few]));
        taken[3].push(Figures::of(&["version", &few]));
    }
    let best = taken.map(|figures| Figures::best(&figures).expect("a round"));
    let count = f64::from(u32::try_from(FEW).expect("a small number"));
    let each = |of: fn(&Figures) -> i64| {
        let [without, with, script, version] = best.each_ref().map(|figures| {
            f64::from(u32::try_from(of(figures)).expect("less than an hour")) / count
        });
        let step = (with - without) / f64::from(u32::try_from(STEPS).expect("a small number"));
        (step, script, version)
    };
    for (name, (step, script, version)) in [
        ("wall", each(|figures| figures.wall)),
        ("all CPU", each(|figures| figures.own + figures.children)),
    ] {
        println!(
            "script step, {name}: {step:.0} µs, the script alone {script:.0} µs, added {:.0} µs",
            step - script
        );
        println!("`proctor --version`, {name}: {version:.0} µs");
    }
}

/// Runs a script many times.
fn scripts(script: &str, runs: usize) -> Figures {
    many(runs, || Command::new(script))
}

/// Starts `proctor --version` many times.
fn version(runs: usize) -> Figures {
    many(runs, || {
        let mut command = Command::new(proctor());
        command.arg("--version");
        command
    })
}

/// Runs programs, one after another.
fn many(runs: usize, command: impl Fn() -> Command) -> Figures {
    let started = Instant::now();
    for _ in 0..runs {
        let out = command().stdin(Stdio::null()).output();
        assert!(out.expect("the program starts").status.success());
    }
    Figures {
        wall: micros(started),
        own: 0,
        children: cpu(&usage(UsageWho::RUSAGE_CHILDREN)),
        peak: usage(UsageWho::RUSAGE_CHILDREN).max_rss(),
    }
}

fn row([servers, by, jobs, trials]: [&str; 4], figures: &Figures, bare: Option<&Figures>) {
    let count = f64::from(u32::try_from(number(trials)).expect("a small number"));
    let float = |figure: i64| f64::from(u32::try_from(figure).expect("less than an hour"));
    let each = |of: fn(&Figures) -> i64| {
        let mine = float(of(figures));
        let times = bare.map_or(String::new(), |bare| {
            format!(" ({:.1})", mine / float(of(bare)).max(1.0))
        });
        format!("{:.0}{times}", mine / count)
    };
    println!(
        "{servers:<7} {by:<10} {jobs:>4} {trials:>7} {:>9.0} {:>12} {:>12} {:>12} {:>12} {:>8.1}",
        count / float(figures.wall) * 1e6,
        each(|figures| figures.wall),
        each(|figures| figures.own + figures.children),
        each(|figures| figures.own),
        each(|figures| figures.children),
        float(figures.peak) / 1024.0,
    );
}

fn suite(servers: &str) -> SuiteFixture {
    let suite = SuiteFixture::new(RULES, &SERVER);
    let config = match servers {
        "shared" => json!({"isolation": "run"}),
        _ => json!({}),
    };
    let assertions = json!({
        "toolsUsed": [{"server": "fixture", "toolPattern": "ech.", "arguments": {"text": {"$match": "^t"}}}],
        "minToolCalls": 2,
        "maxToolCalls": 2,
    });
    suite.eval(&config, &json!({"assertions": assertions}));
    for task in 0..TASKS {
        suite.task(&format!("task-{task}"), &json!({}));
    }
    suite
}

/// The same two calls and checks for mcp-assert, below the folder of a suite.
fn peer_suite(folder: &Path) -> String {
    let suite = folder.join("mcp-assert");
    fs::create_dir_all(&suite).expect("a folder can be made");
    let server = json!({"command": fixture(), "args": SERVER});
    let call = |text: &str| json!({"tool": "echo", "args": {"text": text}});
    let assertion = json!({
        "name": "two calls",
        "server": server,
        "setup": [call("one")],
        "assert": {"tool": "echo", "args": {"text": "two"}, "expect": {"contains": ["two"]}},
    });
    // JSON is YAML too.
    fs::write(suite.join("calls.yaml"), assertion.to_string()).expect("a file can be written");
    suite.display().to_string()
}

/// Runs mcp-assert to its end.
fn peer(program: &str, suite: &str, trials: usize) -> Figures {
    run(Command::new(program)
        .args(["run", "--suite", suite, "--trials"])
        .arg(trials.to_string()))
}

/// Runs `proctor check` to its end.
fn check([eval, record, jobs]: [&str; 3], trials: usize) -> Figures {
    run(Command::new(proctor())
        .args(["check", eval, "--record", record, "--jobs", jobs])
        .args(["--runs", &(trials / TASKS).to_string()]))
}

/// Runs a program to its end, and asks the system what that took.
fn run(command: &mut Command) -> Figures {
    let started = Instant::now();
    let mut child = command
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .expect("the program starts");
    let pid = Pid::from_child(&child);
    waitid(
        WaitId::Pid(pid),
        WaitIdOptions::EXITED | WaitIdOptions::NOWAIT,
    )
    .expect("a child can be waited for");
    let wall = micros(started);
    // It has ended, but nobody has asked how: what it took by itself can still be read.
    let own = own_cpu(pid);
    let status = child.wait().expect("a child can be waited for");
    assert!(status.success(), "{command:?} ended with {status}");
    let all = usage(UsageWho::RUSAGE_CHILDREN);
    Figures {
        wall,
        own,
        children: (cpu(&all) - own).max(0),
        peak: all.max_rss(),
    }
}

/// The CPU time of a process without its children, in microseconds.
fn own_cpu(pid: Pid) -> i64 {
    let path = format!("/proc/{}/stat", pid.as_raw_pid());
    let stat = fs::read_to_string(path).expect("a process that was not waited for can be read");
    // The second field is a name, in brackets, that may hold anything.
    let (_, fields) = stat.rsplit_once(')').expect("a name in brackets");
    let ticks: u64 = fields
        .split_whitespace()
        .skip(11)
        .take(2)
        .map(|field| field.parse::<u64>().expect("a number"))
        .sum();
    i64::try_from(ticks * TICK).expect("less than an age")
}

fn usage(of: UsageWho) -> Usage {
    getrusage(of).expect("usage can be read")
}

fn cpu(usage: &Usage) -> i64 {
    (usage.user_time() + usage.system_time()).num_microseconds()
}

fn micros(since: Instant) -> i64 {
    i64::try_from(since.elapsed().as_micros()).expect("less than an age")
}

/// Makes the calls of that many trials, and leaves a file with the messages of each.
fn bare(is_shared: bool, folder: &Path, trials: usize) -> Figures {
    let started = Instant::now();
    fs::create_dir_all(folder).expect("a folder can be made");
    let mut shared = is_shared.then(Bare::start);
    for number in 0..trials {
        if let Some(server) = &mut shared {
            server.trial(folder, number);
        } else {
            let mut server = Bare::start();
            server.trial(folder, number);
            server.end();
        }
    }
    if let Some(server) = shared {
        server.end();
    }
    let wall = micros(started);
    let own = usage(UsageWho::RUSAGE_SELF);
    Figures {
        wall,
        own: cpu(&own),
        children: cpu(&usage(UsageWho::RUSAGE_CHILDREN)),
        peak: own.max_rss(),
    }
}

struct Bare {
    child: Child,
    stdin: ChildStdin,
    stdout: BufReader<ChildStdout>,
    /// The messages of the trial.
    messages: String,
}

impl Bare {
    fn start() -> Self {
        let mut child = Command::new(fixture())
            .args(SERVER)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("the fixture starts");
        let mut bare = Self {
            stdin: child.stdin.take().expect("stdin is piped"),
            stdout: BufReader::new(child.stdout.take().expect("stdout is piped")),
            child,
            messages: String::new(),
        };
        bare.ask(INITIALIZE);
        bare.tell(INITIALIZED);
        bare
    }

    fn trial(&mut self, folder: &Path, number: usize) {
        let part = folder.join(format!("{number}.part"));
        let mut file = File::create_new(&part).expect("a file can be made");
        self.ask(LIST);
        for call in CALLS {
            self.ask(call);
        }
        file.write_all(self.messages.as_bytes())
            .and_then(|()| file.sync_data())
            .and_then(|()| fs::rename(&part, folder.join(format!("{number}.jsonl"))))
            .and_then(|()| File::open(folder)?.sync_all())
            .expect("the messages can be stored");
        self.messages.clear();
    }

    fn tell(&mut self, message: &str) {
        let from = self.messages.len();
        self.messages.push_str(message);
        self.messages.push('\n');
        self.stdin
            .write_all(&self.messages.as_bytes()[from..])
            .expect("the fixture reads");
    }

    fn ask(&mut self, message: &str) {
        self.tell(message);
        let from = self.messages.len();
        self.stdout
            .read_line(&mut self.messages)
            .expect("the fixture answers");
        let line = &self.messages[from..];
        assert!(line.contains("result"), "{line}");
    }

    fn end(mut self) {
        drop(self.stdin);
        let status = self.child.wait().expect("a child can be waited for");
        assert!(status.success(), "the fixture ended with {status}");
    }
}
