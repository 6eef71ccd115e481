//! The trials of the sample run: one of every sort.

use proctor_record::event::{
    Blame, ConnectionClosed, ConnectionId, EventKind, Finding, FindingKind, Outcome, Phase, Purpose,
};
use proctor_record::record::{RecordError, RunWriter, TrialWriter};
use proctor_record::verdict::Verdict;

use super::HOSTILE;
use super::events::{asked, call, ended, graded, opened, replied, step, text, trial};

pub(super) fn long() -> String {
    format!("a very long name 漢字 {}", "and-longer".repeat(60))
}

/// One trial passes; in the other a call fails and so does a script.
pub(super) fn read_a_file(run: &RunWriter) -> Result<(), RecordError> {
    let passing = trial(run, "read a file", 1, 1)?;
    passing.end(1_500_000, ended(Outcome::Passed, None, None))?;
    let mut trial = trial(run, "read a file", 2, 1)?;
    let add = &mut |what| trial.append(1_100_000, what);
    add(EventKind::PhaseStarted {
        phase: Phase::Drive,
    })?;
    add(EventKind::Prompted {
        text: text("Read /etc/motd."),
        turn: None,
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
    verify_what_was_read(&mut trial)?;
    let add = &mut |what| trial.append(1_200_000, what);
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

/// A script and a judge, both of which say no.
fn verify_what_was_read(trial: &mut TrialWriter) -> Result<(), RecordError> {
    let add = &mut |what| trial.append(1_200_000, what);
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
    ))
    .map(drop)
}

/// Four pass after a second attempt, one does not: the rule is kept.
pub(super) fn list_a_folder(run: &RunWriter) -> Result<(), RecordError> {
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

pub(super) fn hostile(run: &RunWriter) -> Result<(), RecordError> {
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

pub(super) fn rest(run: &RunWriter) -> Result<(), RecordError> {
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

    undecided(run)?;
    server_dies(run)?;
    drop(trial(run, "stopped", 1, 1)?);
    Ok(())
}

/// The judge quotes what is not in the transcript.
fn undecided(run: &RunWriter) -> Result<(), RecordError> {
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
    undecided.end(1_200_000, end).map(drop)
}

/// The server exits while a call is open.
fn server_dies(run: &RunWriter) -> Result<(), RecordError> {
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
    )
    .map(drop)
}
