//! How long an async worker is kept from its other tasks while a trial handles large things.
//!
//! Each scenario runs in this process, on a runtime with a single worker. A task on that worker wakes up every
//! millisecond and notes the longest delay: whatever runs synchronously on the worker delays it. A thread
//! does the same beside the runtime, which shows what the machine alone adds. Scenarios are repeated, and
//! the shortest of the longest delays counts: a busy machine only adds.
#![expect(clippy::print_stdout, reason = "the figures are the result")]

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use proctor_e2e::suite::SuiteFixture;
use proctor_record::fold::{FoldOptions, fold_trial};
use proctor_record::record::RunReader;
use proctor_run::engine::{CheckOptions, Engine, NonInteractiveHost};
use serde_json::{Value, json};

/// How often each scenario is run; `PROCTOR_BENCH_ROUNDS` says otherwise.
const ROUNDS: usize = 3;

/// How often the delays are measured.
const BEAT: Duration = Duration::from_millis(1);

/// A server with a tool that gives the content of a file, and one that gives a word.
const SERVER: &str = r#"
import json, sys
text = open(sys.argv[1]).read()
tool = lambda name: {"name": name, "description": name, "inputSchema": {"type": "object"}}
for line in sys.stdin:
    asked = json.loads(line)
    if "id" not in asked: continue
    method, result = asked.get("method"), None
    if method == "initialize":
        result = {"protocolVersion": "2025-06-18", "capabilities": {"tools": {}}, "serverInfo": {"name": "s", "version": "1"}}
    elif method == "tools/list":
        result = {"tools": [tool("show"), tool("word")]}
    elif method == "tools/call":
        said = text if asked["params"]["name"] == "show" else "word"
        result = {"content": [{"type": "text", "text": said}]}
    answer = {"jsonrpc": "2.0", "id": asked["id"]}
    answer.update({"result": result} if result else {"error": {"code": -32601, "message": "no"}})
    sys.stdout.write(json.dumps(answer) + "\n")
    sys.stdout.flush()
"#;

/// An agent that makes many calls, over whatever it is offered.
const AGENT: &str = r#"
import http.client, json, subprocess, sys, urllib.parse
server = list(json.load(open(sys.argv[1]))["mcpServers"].values())[0]
if "url" in server:
    url = urllib.parse.urlparse(server["url"])
    line = http.client.HTTPConnection(url.netloc)
    session = None
    def send(message):
        global session
        headers = {"Content-Type": "application/json", "Accept": "application/json, text/event-stream"}
        headers.update(server.get("headers", {}))
        if session: headers["Mcp-Session-Id"] = session
        line.request("POST", url.path, json.dumps(message), headers)
        answer = line.getresponse()
        session = answer.getheader("Mcp-Session-Id") or session
        answer.read()
else:
    relay = subprocess.Popen([server["command"]] + server.get("args", []), stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    def send(message):
        relay.stdin.write(json.dumps(message).encode() + b"\n")
        relay.stdin.flush()
        if "id" in message: relay.stdout.readline()
send({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "a", "version": "1"}}})
send({"jsonrpc": "2.0", "method": "notifications/initialized"})
send({"jsonrpc": "2.0", "id": 1, "method": "tools/list"})
for number in range(int(sys.argv[2])):
    send({"jsonrpc": "2.0", "id": number + 2, "method": "tools/call", "params": {"name": "word", "arguments": {"n": number}}})
print("done")
"#;

/// The model calls `show` this often in one turn, and is done.
fn calls(times: usize, answer: &str) -> String {
    let call = "{tool: show, arguments: {}}";
    let calls = vec![call; times].join(", ");
    format!(
        "  - when: {{results: 0}}\n    reply: {{calls: [{calls}]}}\n  - reply: {{text: '{answer}'}}\n"
    )
}

fn suite(rules: &str, text: &str) -> SuiteFixture {
    let suite = SuiteFixture::on(rules, &json!({}));
    suite.write("text", text);
    suite.write("server.py", SERVER);
    let args = json!([suite.path("server.py"), suite.path("text")]);
    let servers = json!({"mcpServers": {"s": {"command": "python3", "args": args}}});
    suite.write("mcp.json", &servers.to_string());
    suite
}

fn used() -> Value {
    json!({"assertions": {"toolsUsed": [
        {"server": "s", "tool": "show", "result": {"content": {"$contains": {"text": {"$match": "."}}}}},
    ]}})
}

type Scenario = (&'static str, fn() -> SuiteFixture);

fn boundaries() -> SuiteFixture {
    let lines = (0..12_000).map(|n| format!("<<<{n:032x} begin answer>>>\n"));
    let text = lines.collect::<Vec<_>>().concat();
    let suite = suite(&calls(6, "done"), &text);
    suite.eval(&json!({}), &used());
    suite.task("task", &json!({}));
    suite
}

fn judged() -> SuiteFixture {
    let text = "a result that goes on and on. ".repeat(5_000_000 / 30);
    let suite = suite(&calls(1, "{result}"), &text);
    suite.write(
        "judge.yaml",
        "kind: Script\nrules:\n  - reply: {calls: [{tool: verdict, arguments: {reason: fine, evidence: [a result that goes on and on], verdict: pass}}]}\n",
    );
    let judge = json!({"ref": {"type": "builtin.llm-agent", "model": "scripted:judge.yaml"}});
    suite.eval(&json!({"llmJudge": judge}), &used());
    suite.task(
        "task",
        &json!({"verify": [{"llmJudge": {"contains": "a result"}}]}),
    );
    suite
}

fn step() -> SuiteFixture {
    let text = "a line of a long output 12345\n".repeat(20_000_000 / 30);
    let suite = suite("  - reply: {text: done}\n", &text);
    let path = suite.path("text").display().to_string();
    suite.task(
        "task",
        &json!({
            "requires": [{"mcpServer": "s"}],
            "verify": [
                {"s.show": {"expect": {"content": {"match": "a long output"}}}},
                {"script": {"inline": format!("cat {path}")}},
            ],
        }),
    );
    suite
}

fn transcript() -> SuiteFixture {
    let suite = suite("  - reply: {text: done}\n", "");
    suite.write("agent.py", AGENT);
    let run = format!(
        "python3 {} {{{{ .McpServerFileArgs }}}} 50000",
        suite.path("agent.py").display()
    );
    let commands = json!({"argTemplateMcpServer": "{{ .File }}", "runPrompt": run});
    let agent = json!({"kind": "Agent", "metadata": {"name": "many"}, "commands": commands});
    suite.write("agent.yaml", &agent.to_string());
    let checks = json!({
        "minToolCalls": 50_000,
        "noDuplicateCalls": true,
        "toolsUsed": [{"server": "s", "tool": "word", "arguments": {"n": 49_999}}],
        "callOrder": [{"type": "tool", "server": "s", "name": "word"}],
    });
    let agent = json!({"type": "file", "path": "agent.yaml"});
    suite.eval(&json!({"agent": agent}), &json!({"assertions": checks}));
    suite.task("task", &json!({}));
    suite
}

fn main() {
    let rounds = std::env::var("PROCTOR_BENCH_ROUNDS");
    let rounds = rounds.map_or(ROUNDS, |rounds| rounds.parse().expect("a number"));
    println!(
        "{:<44} {:>9} {:>9} {:>12} {:>12}",
        "scenario", "events", "time", "held", "machine"
    );
    let scenarios: [Scenario; 4] = [
        ("6 results of 0.5 MB full of look-alikes", boundaries),
        ("a result and an answer of 5 MB, judged", judged),
        ("steps with outputs of 20 MB", step),
        ("50,000 calls, graded", transcript),
    ];
    for (name, suite) in scenarios {
        let suite = suite();
        let all: Vec<Round> = (0..rounds).map(|round| run(&suite, round)).collect();
        if let Some(best) = all.iter().min_by_key(|round| round.held) {
            println!(
                "{name:<44} {:>9} {:>7.1} s {:>9.1} ms {:>9.1} ms",
                best.events,
                best.time.as_secs_f64(),
                best.held.as_secs_f64() * 1e3,
                best.machine.as_secs_f64() * 1e3,
            );
        }
    }
}

struct Round {
    events: usize,
    time: Duration,
    held: Duration,
    machine: Duration,
}

fn run(suite: &SuiteFixture, round: usize) -> Round {
    let folder = suite.path(&format!("run{round}"));
    let mut options = CheckOptions::file(suite.path("eval.yaml"));
    options.run.folder = Some(folder.clone());
    let engine = Engine::new(std::env::vars().collect(), proctor_e2e::proctor());
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(1)
        .enable_all()
        .build()
        .expect("a runtime");
    let held = Arc::new(Longest::default());
    let machine = Arc::new(Longest::default());
    let noted = held.clone();
    let beating = runtime.spawn(async move {
        loop {
            let before = Instant::now();
            tokio::time::sleep(BEAT).await;
            noted.note(before);
        }
    });
    let is_over = Arc::new(AtomicBool::new(false));
    let (noted, over) = (machine.clone(), is_over.clone());
    let beside = std::thread::spawn(move || {
        while !over.load(Ordering::Relaxed) {
            let before = Instant::now();
            std::thread::sleep(BEAT);
            noted.note(before);
        }
    });
    let started = Instant::now();
    let result = runtime.block_on(engine.check(&options, &NonInteractiveHost));
    let time = started.elapsed();
    beating.abort();
    is_over.store(true, Ordering::Relaxed);
    beside.join().expect("it ends");
    let result = result.expect("the suite runs");
    let failed: Vec<_> = result
        .summary
        .trials()
        .filter_map(|(_, _, trial)| trial.result.as_ref()?.reason.clone())
        .collect();
    assert!(failed.is_empty(), "{failed:?}");
    Round {
        events: events(&folder),
        time,
        held: held.get(),
        machine: machine.get(),
    }
}

/// How many events the trial has; that it can be folded is checked too.
fn events(folder: &Path) -> usize {
    let run = RunReader::open(folder).expect("a run");
    let file = run.trials().expect("trials").remove(0);
    fold_trial(&run, &file, &FoldOptions::default()).expect("it folds");
    run.trial(&file).expect("a trial").count()
}

/// The longest delay so far, in microseconds.
#[derive(Default)]
struct Longest(AtomicU64);

impl Longest {
    fn note(&self, before: Instant) {
        let delay = before.elapsed().saturating_sub(BEAT).as_micros();
        let delay = u64::try_from(delay).unwrap_or(u64::MAX);
        self.0.fetch_max(delay, Ordering::Relaxed);
    }

    fn get(&self) -> Duration {
        Duration::from_micros(self.0.load(Ordering::Relaxed))
    }
}
