use std::fs;
use std::path::Path;

use proctor_record::event::{Blame, Outcome};
use proctor_record::fold::{FoldOptions, FoldedTrial, fold_trial};
use proctor_record::transcript::{CallOutcome, CallRequest, Payload};
use proctor_record::verdict::Verdict;
use serde_json::{Value, json};

use super::*;

const NEW: &str = include_str!("../../tests/results/mcpchecker-shop-out.json");
const OLD: &str = include_str!("../../tests/results/gevals-shop-out.json");

/// An imported file.
struct ImportedRun {
    _folder: tempfile::TempDir,
    run: RunReader,
    summary: Summary,
}

fn try_import(name: &str, text: &str) -> Result<ImportedRun, ImportError> {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join(name);
    fs::write(&file, text).unwrap();
    let path = folder.path().join("run");
    import(&file, &path, Redactor::default())?;
    let run = RunReader::open(&path).unwrap();
    let summary = Summary::checked(&run).unwrap();
    Ok(ImportedRun {
        _folder: folder,
        run,
        summary,
    })
}

impl ImportedRun {
    fn new(text: &str) -> Self {
        try_import("mcpchecker-shop-out.json", text).unwrap()
    }

    fn of(entries: &Value) -> Self {
        Self::new(&entries.to_string())
    }

    /// Each trial: case, number, outcome and reason.
    fn trials(&self) -> Vec<(String, u32, Option<Outcome>, Option<String>)> {
        let trials = self.summary.trials();
        trials
            .map(|(case, _, trial)| {
                let result = trial.result.as_ref();
                let reason = result.and_then(|result| result.reason.clone());
                let name = case.case.name.clone();
                (name, trial.repeat, trial.outcome(), reason)
            })
            .collect()
    }

    fn folded(&self, case: &str, repeat: u32) -> FoldedTrial {
        let mut trials = self.summary.trials();
        let (_, _, trial) = trials
            .find(|(found, _, trial)| found.case.name == case && trial.repeat == repeat)
            .unwrap();
        let file = &trial.file().unwrap();
        let file = self.run.trial_file(file).unwrap();
        fold_trial(&self.run, &file, &FoldOptions::default()).unwrap()
    }
}

/// An entry that passes.
fn passing() -> Value {
    json!({
        "taskName": "t",
        "taskPassed": true,
        "allAssertionsPassed": true,
        "assertionResults": { "toolsUsed": { "passed": true } },
    })
}

#[test]
fn both_forms_have_the_outcomes_that_the_file_gives() {
    let new = ImportedRun::new(NEW);
    let text = |text: &str| Some(text.to_owned());
    let trial = |case: &str, repeat, outcome, reason| (case.to_owned(), repeat, outcome, reason);
    let timeout = text("task exceeded timeout of 5m0s");
    let expected = vec![
        trial("buy-lamp", 1, Some(Outcome::Passed), None),
        trial(
            "buy-lamp",
            2,
            Some(Outcome::Failed),
            text("toolsUsed: buy_item was never called"),
        ),
        trial("read-terms", 1, Some(Outcome::TimedOut), timeout.clone()),
        // The file announces two runs, and holds one.
        trial("read-terms", 2, None, None),
        trial(
            "refund",
            1,
            Some(Outcome::Errored),
            text("failed to run agent: exit status 1"),
        ),
    ];
    assert_eq!(new.trials(), expected);
    assert_eq!(new.summary.started.name, "shop");
    assert_eq!(new.summary.started.started, "2026-11-10T08:00:01.5Z");
    assert_eq!(new.summary.plan.kind, RunKind::Imported);
    assert_eq!(new.summary.plan.agents[0].name, "claude-code");
    assert_eq!(Gate::of(&new.summary).exit(), 1);
    assert_eq!(new.summary.ended.as_ref().map(|ended| ended.exit), Some(1));

    // The older form has no numbers of runs: entries of a task are numbered in order.
    let old = ImportedRun::new(OLD);
    let outcomes: Vec<_> = old.trials().into_iter().map(|t| (t.0, t.1, t.2)).collect();
    let expected = [
        ("buy-lamp".to_owned(), 1, Some(Outcome::Passed)),
        ("buy-lamp".to_owned(), 2, Some(Outcome::Failed)),
        ("read-terms".to_owned(), 1, Some(Outcome::Failed)),
    ];
    assert_eq!(outcomes, expected);
    assert_eq!(old.summary.plan.agents[0].name, "unknown");
    assert_eq!(old.summary.plan.warnings.len(), 1);
}

#[test]
fn calls_are_requests_and_responses_in_the_order_of_their_times() {
    let imported = ImportedRun::new(NEW);
    let folded = imported.folded("buy-lamp", 1);
    let calls = &folded.transcript.calls;
    let names: Vec<(&str, &str)> = calls
        .iter()
        .map(|call| match &call.request {
            CallRequest::Tool { name, .. } | CallRequest::Prompt { name, .. } => {
                (call.server.as_str(), name.as_str())
            }
            CallRequest::Resource { uri } => (call.server.as_str(), uri.as_str()),
        })
        .collect();
    let expected = [
        ("shop", "find_item"),
        ("files", "file:///terms"),
        ("shop", "buy_item"),
    ];
    assert_eq!(names, expected);
    let CallRequest::Tool { arguments, .. } = &calls[0].request else {
        panic!("{:?}", calls[0]);
    };
    let arguments = arguments.read().unwrap().unwrap();
    assert_eq!(arguments["id"].to_string(), "12345678901234567890123");
    let CallOutcome::Result(Payload::Value(result)) = &calls[0].answer else {
        panic!("{:?}", calls[0]);
    };
    assert_eq!(result["structuredContent"]["price"].to_string(), "12.50");
    let error = CallOutcome::Error {
        code: -32002,
        message: "resource not found".to_owned(),
    };
    assert_eq!(calls[1].answer, error);
    assert_eq!(folded.made_at, [0, 500_000, 2_500_000]);
    assert_eq!(folded.in_error, [false, true, true]);
    // The file has no times of responses.
    assert!(calls.iter().all(|call| call.duration.is_none()));
    assert_eq!(folded.findings, []);
    let answer = folded.work.answer.as_ref().unwrap().to_string();
    assert_eq!(answer, "Bought the lamp for 12.50.");
    assert_eq!(folded.work.prompt, None, "the file has no prompt");
    let usage = folded.work.agent.usage;
    assert_eq!((usage.input, usage.output), (Some(900), Some(80)));
    assert_eq!(folded.work.agent.turns, 0);
}

#[test]
fn a_result_that_the_file_lacks_is_unread_and_not_empty() {
    let imported = ImportedRun::new(NEW);
    let folded = imported.folded("read-terms", 1);
    let answers: Vec<&CallOutcome> = folded.transcript.calls.iter().map(|c| &c.answer).collect();
    let unread = CallOutcome::Result(Payload::Cut { bytes: 0 });
    let refused = CallOutcome::Error {
        code: 0,
        message: "connection refused".to_owned(),
    };
    assert_eq!(answers[..2], [&unread, &refused]);
    assert!(matches!(answers[2], CallOutcome::Result(Payload::Value(_))));
}

#[test]
fn credentials_in_headers_are_not_imported() {
    let imported = ImportedRun::new(NEW);
    for entry in walkdir::WalkDir::new(imported.run.folder()) {
        let entry = entry.unwrap();
        if entry.file_type().is_file() {
            let text = fs::read_to_string(entry.path()).unwrap();
            assert!(!text.contains("very-secret"), "{}", entry.path().display());
            assert!(
                !text.contains("Authorization"),
                "{}",
                entry.path().display()
            );
        }
    }
}

#[test]
fn checks_are_those_of_the_file() {
    let imported = ImportedRun::new(NEW);
    let checks = |case, repeat| -> Vec<(String, Verdict)> {
        let checks = imported.folded(case, repeat).work.checks;
        checks.into_iter().map(|c| (c.check, c.verdict)).collect()
    };
    let check = |name: &str, verdict| (name.to_owned(), verdict);
    let expected = [
        check("taskPassed", Verdict::Pass),
        check("toolsUsed", Verdict::Pass),
        check("callOrder", Verdict::Pass),
        check("llmJudge", Verdict::Pass),
    ];
    assert_eq!(checks("buy-lamp", 1), expected);
    let expected = [
        check("taskPassed", Verdict::Pass),
        check("toolsUsed", Verdict::fail("buy_item was never called")),
    ];
    assert_eq!(checks("buy-lamp", 2), expected);
    let expected = [
        check(
            "taskPassed",
            Verdict::fail("failed to run agent: exit status 1"),
        ),
        check(
            "allAssertionsPassed",
            Verdict::unknown("the result file lists no assertions"),
        ),
    ];
    assert_eq!(checks("refund", 1), expected);
}

#[track_caller]
fn ends(change: impl FnOnce(&mut Value), outcome: Outcome, blame: Option<Blame>) {
    let mut entry = passing();
    change(&mut entry);
    let imported = ImportedRun::of(&json!([entry]));
    let (_, _, trial) = imported.summary.trials().next().unwrap();
    let result = trial.result.as_ref().unwrap();
    assert_eq!((result.outcome, result.blame), (outcome, blame), "{entry}");
    let is_met = Gate::of(&imported.summary) == Gate::Met;
    assert_eq!(is_met, outcome == Outcome::Passed, "{entry}");
}

#[test]
fn a_trial_passes_only_if_every_part_of_its_entry_says_so() {
    ends(|_| {}, Outcome::Passed, None);
    ends(|e| e["taskPassed"] = json!(false), Outcome::Failed, None);
    ends(
        |e| e["allAssertionsPassed"] = json!(false),
        Outcome::Failed,
        None,
    );
    ends(|e| e["timedOut"] = json!(true), Outcome::TimedOut, None);
    for key in ["taskPassed", "allAssertionsPassed"] {
        ends(|e| e[key] = Value::Null, Outcome::Errored, None);
        ends(
            |e| drop(e.as_object_mut().unwrap().remove(key)),
            Outcome::Errored,
            None,
        );
    }
    // Entries that contradict themselves.
    let kinds = json!({ "toolsUsed": { "passed": true }, "callOrder": { "passed": false } });
    ends(|e| e["assertionResults"] = kinds, Outcome::Failed, None);
    let unsaid = json!({ "toolsUsed": {} });
    ends(|e| e["assertionResults"] = unsaid, Outcome::Failed, None);
    ends(
        |e| e["taskJudgeError"] = json!("no reply"),
        Outcome::Errored,
        Some(Blame::Judge),
    );
    ends(
        |e| e["agentExecutionError"] = json!(true),
        Outcome::Errored,
        Some(Blame::Agent),
    );
    let verify = json!({ "Steps": [{ "type": "llmJudge", "success": false, "message": "no" }] });
    ends(|e| e["verifyOutput"] = verify, Outcome::Failed, None);
    let setup = json!({ "Steps": [{ "type": "script", "success": false, "error": "no" }] });
    ends(
        |e| {
            e["taskPassed"] = json!(false);
            e["setupOutput"] = setup;
        },
        Outcome::Errored,
        None,
    );
    // Proctor's own word is more precise, but can't make a trial pass.
    for (task, own, outcome) in [
        (true, "cancelled", Outcome::Cancelled),
        (true, "not-run", Outcome::Cancelled),
        (false, "passed", Outcome::Failed),
        (false, "errored", Outcome::Errored),
        (false, "unheard-of", Outcome::Failed),
    ] {
        ends(
            |e| {
                e["taskPassed"] = json!(task);
                e["proctor"] = json!({ "outcome": own });
            },
            outcome,
            None,
        );
    }
}

#[test]
fn a_trial_that_proctor_did_not_run_has_no_result() {
    let mut entry = passing();
    entry["taskPassed"] = json!(false);
    entry["proctor"] = json!({ "outcome": "not-run", "agent": "codex" });
    let imported = ImportedRun::of(&json!([passing(), entry]));
    let outcomes: Vec<_> = imported
        .summary
        .trials()
        .map(|(_, a, t)| (a.agent.as_str(), t.outcome()))
        .collect();
    assert_eq!(
        outcomes,
        [("unknown", Some(Outcome::Passed)), ("codex", None)]
    );
    assert_eq!(Gate::of(&imported.summary).exit(), 3);
}

#[test]
fn no_entry_is_lost() {
    let mut failing = passing();
    failing["taskPassed"] = json!(false);
    // The same run three times, the failure first, in the middle and last.
    for at in 0..3 {
        let mut entries = vec![passing(), passing()];
        entries.insert(at, failing.clone());
        let imported = ImportedRun::of(&json!({ "results": entries }));
        let counts = imported.summary.counts();
        assert_eq!((counts.passed, counts.failed, counts.total()), (2, 1, 3));
        assert_eq!(Gate::of(&imported.summary).exit(), 1);
    }
    // The same name in two files, and by two agents.
    let mut other = failing.clone();
    other["taskPath"] = json!("/other.yaml");
    let mut by_codex = failing;
    by_codex["proctor"] = json!({ "agent": "codex" });
    let imported = ImportedRun::of(&json!([passing(), other, by_codex]));
    let counts = imported.summary.counts();
    assert_eq!((counts.passed, counts.failed, counts.not_run), (1, 2, 1));
}

#[test]
fn files_that_are_not_results_are_refused_with_the_reason() {
    let check = |text: &str, expected: &str| {
        let error = try_import("x.json", text).err().unwrap().to_string();
        assert!(error.contains(expected), "{text}: {error}");
    };
    check("{}", "missing field `results`");
    check("[]", "holds no results");
    check(r#"{"results": null}"#, "holds no results");
    check(
        r#"{"results": [], "results": []}"#,
        "duplicate key `results`",
    );
    check(
        r#"[{"taskPassed": true}]"#,
        "result 1: missing field `taskName`",
    );
    check(r#"[{"taskName": "a"}, 7]"#, "result 2: invalid type");
    check(
        r#"[{"taskName": "a", "taskPassed": "yes"}]"#,
        "result 1: invalid type: string",
    );
    check(
        r#"[{"taskName": "a", "taskPassed": true, "taskPassed": false}]"#,
        "duplicate field",
    );
    check(r#"[{"taskName": "a"}"#, "EOF");
    check(r#"[{"taskName": "a"}] []"#, "trailing characters");
    check("nothing", "not a result file");
    check(
        r#"[{"taskName": "a", "totalRuns": 4294967295}]"#,
        "`totalRuns` announces over 1000000 runs",
    );
    check(
        r#"[{"taskName": "a", "runIndex": 4294967295}]"#,
        "announces over",
    );
}

#[test]
fn a_run_is_named_after_its_file() {
    let check = |file: &str, name: &str| assert_eq!(run_name(Path::new(file)), name);
    check("a/mcpchecker-my-suite-out.json", "my-suite");
    check("result.json", "result");
    check("mcpchecker--out.json", "mcpchecker--out");
}
