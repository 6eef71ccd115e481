//! A run folder with one trial of every sort, written by the real writer.

use std::collections::BTreeMap;
use std::path::Path;

use proctor_core::event::{
    Actor, Blame, Body, CheckEvaluated, ConnectionClosed, ConnectionId, ConnectionOpened,
    Direction, EventKind, Finding, FindingKind, ModelAsked, ModelReplied, Outcome, Phase,
    PlannedAgent, PlannedCase, PlannedLimits, Purpose, RECORD_VERSION, RunEnded, RunPlanned,
    RunStarted, ServerSeen, StepEnded, TrialEnded, TrialStarted, WireKind,
};
use proctor_core::gate::Gate;
use proctor_core::model::{StopReason, Usage};
use proctor_core::record::{RecordError, RunReader, RunWriter, TrialWriter};
use proctor_core::redact::Redactor;
use proctor_core::summary::Summary;
use proctor_core::verdict::Verdict;
use proctor_report::Report;

/// ANSI, bidi, zero width, what ends CDATA, a command to a CI service, what XML does not take.
pub(crate) const HOSTILE: &str =
    "\u{1b}[31mred\u{1b}[0m \u{202e}txt.exe\u{200b} ]]> <b>&amp;\u{0}\u{ffff}\u{7}\n::error::pwned";

/// A run in a folder of its own.
pub(crate) struct Sample {
    _folder: tempfile::TempDir,
    pub(crate) run: RunReader,
    pub(crate) summary: Summary,
    pub(crate) gate: Gate,
}

impl Sample {
    pub(crate) fn new() -> Self {
        Self::written(|folder| write(folder, 0))
    }

    /// The same, with so many more cases that pass and that fail.
    pub(crate) fn with_more(cases: u32) -> Self {
        Self::written(|folder| write(folder, cases))
    }

    /// A run of one case by two agents, of whom one passes it.
    pub(crate) fn of_two_agents() -> Self {
        Self::written(|folder| {
            let mut run = RunWriter::create(folder, Redactor::default(), run_started())?;
            run.append(1, planned(vec![case("one", 1, None)], &["first", "second"]))?;
            for (agent, outcome) in [("first", Outcome::Passed), ("second", Outcome::Failed)] {
                let trial = trial_by(&run, agent, "one", 1, 1)?;
                trial.end(1_200_000, ended(outcome, None, None))?;
            }
            Ok(())
        })
    }

    /// A run that ended before its first trial.
    pub(crate) fn without_trials() -> Self {
        Self::written(|folder| {
            let mut run = RunWriter::create(folder, Redactor::default(), run_started())?;
            run.append(1, planned(vec![case("one", 2, None)], &["scripted"]))?;
            Ok(())
        })
    }

    fn written(write: impl FnOnce(&Path) -> Result<(), RecordError>) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("sample");
        write(&path).expect("a run");
        let run = RunReader::open(&path).expect("a run");
        let summary = Summary::of_run(&run).expect("a summary");
        let gate = Gate::of(&summary);
        Self {
            _folder: folder,
            run,
            summary,
            gate,
        }
    }

    pub(crate) fn report(&self) -> Report<'_> {
        Report {
            // The real one is another every time.
            folder: Path::new(".proctor/runs/sample"),
            ..Report::new(&self.run, &self.summary, &self.gate)
        }
    }
}

fn case(name: &str, runs: u32, pass: Option<(u32, u32)>) -> PlannedCase {
    PlannedCase {
        id: id(name),
        name: name.to_owned(),
        path: "tasks/sample.yaml".to_owned(),
        hash: "c0ffee".to_owned(),
        runs,
        pass,
        difficulty: Some("easy".to_owned()),
        labels: [("area".to_owned(), "files".to_owned())].into(),
        parallel: true,
        verify_steps: Some(0),
        limits: PlannedLimits::default(),
        eval: None,
    }
}

fn id(name: &str) -> String {
    format!("tasks/sample.yaml#{name}")
}

fn long() -> String {
    format!("a very long name 漢字 {}", "and-longer".repeat(60))
}

fn run_started() -> RunStarted {
    RunStarted {
        record: RECORD_VERSION,
        proctor: "0.1.0".to_owned(),
        started: "2026-11-15T05:00:00Z".to_owned(),
        name: "sample".to_owned(),
        command: vec!["proctor".to_owned(), "check".to_owned()],
        context: None,
    }
}

fn write(folder: &Path, more: u32) -> Result<(), RecordError> {
    let mut run = RunWriter::create(folder, Redactor::default(), run_started())?;
    let mut cases = vec![
        case("read a file", 2, None),
        case("list a folder", 5, Some((4, 5))),
        case(HOSTILE, 1, None),
        case(&long(), 1, None),
        case("slow", 1, None),
        case("broken setup", 1, None),
        case("undecided", 1, None),
        case("server dies", 1, None),
        case("stopped", 1, None),
    ];
    cases.extend((0..more).map(|n| case(&format!("good {n}"), 1, None)));
    cases.extend((0..more).map(|n| case(&format!("bad {n}"), 1, None)));
    run.append(1, planned(cases, &["scripted"]))?;
    run.append(2, seen())?;
    read_a_file(&run)?;
    list_a_folder(&run)?;
    hostile(&run)?;
    rest(&run)?;
    for n in 0..more {
        trial(&run, &format!("good {n}"), 1, 1)?
            .end(2_000_000, ended(Outcome::Passed, None, None))?;
        let end = ended(Outcome::Failed, Some("no"), Some(Blame::Agent));
        trial(&run, &format!("bad {n}"), 1, 1)?.end(2_000_000, end)?;
    }
    let reason = Some("Ctrl-C".to_owned());
    run.end(
        9_000_000,
        RunEnded {
            exit: 1,
            reason,
            ..RunEnded::default()
        },
    )
}

fn planned(cases: Vec<PlannedCase>, agents: &[&str]) -> EventKind {
    EventKind::RunPlanned(RunPlanned {
        suite: "/suites/sample.yaml".to_owned(),
        mcp_config: None,
        cases,
        agents: agents
            .iter()
            .map(|name| PlannedAgent {
                name: (*name).to_owned(),
                model: Some("scripted:answers.yaml".to_owned()),
            })
            .collect(),
        judge: Some("openai:gpt".to_owned()),
        shared_servers: false,
        surroundings: None,
        server_settings: BTreeMap::new(),
        agent_settings: BTreeMap::new(),
        kind: proctor_core::event::RunKind::Suite,
        not_run: Vec::new(),
        asked: proctor_core::event::PlannedOptions::default(),
        config: None,
        warnings: Vec::new(),
    })
}

fn seen() -> EventKind {
    EventKind::ServerSeen(ServerSeen {
        server: "fs".to_owned(),
        name: Some("filesystem".to_owned()),
        version: Some("1.2.0".to_owned()),
        protocol: "2025-11-25".to_owned(),
        tools: 11,
        resources: 0,
        prompts: 0,
        tools_digest: None,
        tool_list: None,
        surface: None,
    })
}

/// One trial passes; in the other a call fails and so does a script.
fn read_a_file(run: &RunWriter) -> Result<(), RecordError> {
    let passing = trial(run, "read a file", 1, 1)?;
    passing.end(1_500_000, ended(Outcome::Passed, None, None))?;
    let mut trial = trial(run, "read a file", 2, 1)?;
    let add = &mut |what| trial.append(1_100_000, what);
    add(EventKind::PhaseStarted {
        phase: Phase::Drive,
    })?;
    add(EventKind::Prompted {
        text: text("Read /etc/motd."),
    })?;
    add(opened())?;
    add(asked(1, Purpose::Agent))?;
    add(replied(1, Some(1200), Some(0.0123)))?;
    call(&mut trial, 1, "read_file", r#"{"path":"/etc/motd"}"#, true)?;
    call(&mut trial, 2, "list", "{}", false)?;
    let add = &mut |what| trial.append(1_200_000, what);
    add(EventKind::AgentAnswered {
        text: text("\nI could not read it.\nSorry."),
    })?;
    add(EventKind::PhaseStarted {
        phase: Phase::Grade,
    })?;
    let reason = "expected at least 1 call of `fs.read_file` that succeeds, and there were 0";
    add(graded("toolsUsed", Verdict::fail(reason), vec![7], &[]))?;
    let output =
        "checking\n\nfirst\nsecond\nthird\nfourth\nfifth\nexpected `hello`, found nothing\n";
    add(step(
        Phase::Grade,
        "verify_0",
        "script",
        Verdict::fail("exit code 1"),
        output,
    ))?;
    add(graded(
        "verify_0",
        Verdict::fail("exit code 1"),
        vec![],
        &[],
    ))?;
    add(step(
        Phase::Grade,
        "verify_1",
        "llmJudge",
        Verdict::fail("it has no greeting"),
        "",
    ))?;
    let notes = ["quote: \"I could not read it.\"", "votes: 2 fail, 1 pass"];
    add(graded(
        "verify_1",
        Verdict::fail("it has no greeting"),
        vec![],
        &notes,
    ))?;
    add(asked(2, Purpose::Judge))?;
    add(replied(2, None, None))?;
    let reason = format!("`toolsUsed`: {reason}");
    trial
        .end(
            1_400_000,
            ended(Outcome::Failed, Some(&reason), Some(Blame::Server)),
        )
        .map(drop)
}

/// Four pass after a second attempt, one does not: the rule is kept.
fn list_a_folder(run: &RunWriter) -> Result<(), RecordError> {
    let end = ended(
        Outcome::Errored,
        Some("429 from the model"),
        Some(Blame::Infra),
    );
    trial(run, "list a folder", 1, 1)?.end(1_200_000, end)?;
    trial(run, "list a folder", 1, 2)?.end(1_300_000, ended(Outcome::Passed, None, None))?;
    for repeat in 2..=4 {
        let trial = trial(run, "list a folder", repeat, 1)?;
        trial.end(1_300_000, ended(Outcome::Passed, None, None))?;
    }
    let mut last = trial(run, "list a folder", 5, 1)?;
    let verdict = Verdict::fail("expected at most 3 calls, and there were 4");
    last.append(1_100_000, graded("maxToolCalls", verdict, vec![], &[]))?;
    last.end(
        1_300_000,
        ended(Outcome::Failed, Some("too many calls"), Some(Blame::Agent)),
    )
    .map(drop)
}

fn hostile(run: &RunWriter) -> Result<(), RecordError> {
    let mut trial = trial(run, HOSTILE, 1, 1)?;
    trial.append(1_050_000, opened())?;
    let arguments = serde_json::json!({ "text": HOSTILE }).to_string();
    call(&mut trial, 1, HOSTILE, &arguments, true)?;
    let add = &mut |what| trial.append(1_100_000, what);
    add(EventKind::AgentAnswered {
        text: text(HOSTILE),
    })?;
    add(step(
        Phase::Grade,
        "verify_0",
        "script",
        Verdict::fail(HOSTILE),
        HOSTILE,
    ))?;
    add(graded(
        "verify_0",
        Verdict::fail(HOSTILE),
        vec![3],
        &[HOSTILE],
    ))?;
    trial
        .end(
            1_200_000,
            ended(Outcome::Failed, Some(HOSTILE), Some(Blame::Agent)),
        )
        .map(drop)
}

fn rest(run: &RunWriter) -> Result<(), RecordError> {
    trial(run, &long(), 1, 1)?.end(1_200_000, ended(Outcome::Passed, None, None))?;
    let reason = "it took longer than 30s";
    trial(run, "slow", 1, 1)?.end(
        31_000_000,
        ended(Outcome::TimedOut, Some(reason), Some(Blame::Agent)),
    )?;

    let mut setup = trial(run, "broken setup", 1, 1)?;
    let failed = Verdict::fail("exit code 127");
    let output = "sh: kubectl: not found\n";
    setup.append(
        1_100_000,
        step(Phase::Setup, "setup_0", "script", failed, output),
    )?;
    let end = ended(
        Outcome::Errored,
        Some("the setup failed"),
        Some(Blame::Suite),
    );
    setup.end(1_200_000, end)?;

    let mut undecided = trial(run, "undecided", 1, 1)?;
    let why = "the judge quoted what is not in the transcript";
    undecided.append(
        1_100_000,
        step(
            Phase::Grade,
            "verify_0",
            "llmJudge",
            Verdict::unknown(why),
            "",
        ),
    )?;
    let verdict = Verdict::unknown(why);
    undecided.append(
        1_100_000,
        graded("verify_0", verdict, vec![], &["quote: \"all is well\""]),
    )?;
    let end = ended(
        Outcome::Errored,
        Some(&format!("`verify_0`: {why}")),
        Some(Blame::Judge),
    );
    undecided.end(1_200_000, end)?;

    let mut dies = trial(run, "server dies", 1, 1)?;
    dies.append(1_100_000, opened())?;
    call(&mut dies, 1, "crash", "{}", false)?;
    let add = &mut |what| dies.append(1_150_000, what);
    add(EventKind::Finding(Finding {
        conn: ConnectionId(1),
        kind: FindingKind::Noise,
        detail: "Listening…".to_owned(),
        count: 2,
    }))?;
    add(EventKind::ConnectionClosed(ConnectionClosed {
        conn: ConnectionId(1),
        reason: "exited with code 134".to_owned(),
        stderr: Some("thread main panicked\nindex out of bounds\n".to_owned()),
        end: None,
    }))?;
    let reason = "the server `fs` died while the agent worked";
    dies.end(
        1_200_000,
        ended(Outcome::Failed, Some(reason), Some(Blame::Server)),
    )?;

    drop(trial(run, "stopped", 1, 1)?);
    Ok(())
}

fn trial(
    run: &RunWriter,
    case: &str,
    repeat: u32,
    attempt: u32,
) -> Result<TrialWriter, RecordError> {
    trial_by(run, "scripted", case, repeat, attempt)
}

fn trial_by(
    run: &RunWriter,
    agent: &str,
    case: &str,
    repeat: u32,
    attempt: u32,
) -> Result<TrialWriter, RecordError> {
    let started = TrialStarted {
        case: id(case),
        agent: Some(agent.to_owned()),
        repeat,
        attempt,
    };
    run.trial(1_000_000, &format!("{case}.{agent}.{repeat}"), started)
}

fn ended(outcome: Outcome, reason: Option<&str>, blame: Option<Blame>) -> TrialEnded {
    TrialEnded {
        outcome,
        reason: reason.map(str::to_owned),
        blame,
    }
}

fn text(text: &str) -> Body {
    Body::Text(text.to_owned())
}

fn opened() -> EventKind {
    EventKind::ConnectionOpened(ConnectionOpened {
        conn: ConnectionId(1),
        server: "fs".to_owned(),
        actor: Actor::Loop,
        transport: WireKind::Stdio,
        target: "fs-server".to_owned(),
    })
}

fn asked(ask: u64, purpose: Purpose) -> EventKind {
    EventKind::ModelAsked(ModelAsked {
        ask,
        purpose,
        model: "scripted:answers.yaml".to_owned(),
        known: 0,
        request: text("{}"),
        digest: "0".to_owned(),
    })
}

fn replied(ask: u64, input: Option<u64>, cost_usd: Option<f64>) -> EventKind {
    EventKind::ModelReplied(ModelReplied {
        ask,
        turn: text("{}"),
        raw: None,
        stop: StopReason::Done,
        usage: Usage {
            input,
            output: input.map(|input| input / 10),
            ..Usage::default()
        },
        cost_usd,
    })
}

fn step(phase: Phase, id: &str, kind: &str, verdict: Verdict, output: &str) -> EventKind {
    EventKind::StepEnded(StepEnded {
        phase,
        id: id.to_owned(),
        kind: kind.to_owned(),
        verdict,
        output: (!output.is_empty()).then(|| text(output)),
        outputs: BTreeMap::new(),
        duration: 40_000,
    })
}

fn graded(check: &str, verdict: Verdict, evidence: Vec<u64>, notes: &[&str]) -> EventKind {
    EventKind::Graded(CheckEvaluated {
        check: check.to_owned(),
        id: None,
        details: vec!["fs.read_file".to_owned()],
        verdict,
        evidence,
        notes: notes.iter().map(|note| (*note).to_owned()).collect(),
    })
}

/// A call, and an answer to it if there is one: an error of the tool, in text that is the arguments.
fn call(
    trial: &mut TrialWriter,
    id: u64,
    tool: &str,
    arguments: &str,
    answered: bool,
) -> Result<(), RecordError> {
    let name = serde_json::Value::from(tool);
    let request = format!(
        r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/call","params":{{"name":{name},"arguments":{arguments}}}}}"#
    );
    let conn = ConnectionId(1);
    trial.append_frame(
        1_120_000,
        conn,
        None,
        Direction::ToServer,
        request.as_bytes(),
    )?;
    if answered {
        let content = serde_json::json!([{ "type": "text", "text": format!("ENOENT: no such file: {arguments}") }]);
        let answer = format!(
            r#"{{"jsonrpc":"2.0","id":{id},"result":{{"content":{content},"isError":true}}}}"#
        );
        trial.append_frame(
            1_121_500,
            conn,
            None,
            Direction::ToClient,
            answer.as_bytes(),
        )?;
    }
    Ok(())
}
