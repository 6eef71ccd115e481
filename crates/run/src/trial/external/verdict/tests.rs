use std::path::PathBuf;

use proctor_core::suite::server::{ClientSettings, Transport};
use proctor_record::event::Outcome;

use super::*;

fn server(allowed: AllowedTools) -> Server {
    Server {
        name: "ev".to_owned(),
        transport: Transport::Stdio {
            command: "ev".to_owned(),
            args: Vec::new(),
            env: BTreeMap::new(),
            cwd: None,
            folder: PathBuf::new(),
        },
        allowed,
        auth: None,
        client: ClientSettings::default(),
        written: "ev".to_owned(),
    }
}

fn done() -> AgentReport {
    AgentReport {
        answer: Some("done".to_owned()),
        ..AgentReport::default()
    }
}

fn seen(tools: &[&str]) -> ServerContacts {
    let mut facts = ServerContacts::default();
    facts.listed.insert("ev".to_owned());
    let called = facts.called.entry("ev".to_owned()).or_default();
    called.extend(tools.iter().map(|tool| (*tool).to_owned()));
    facts
}

fn only(tools: &[&str]) -> AllowedTools {
    AllowedTools::Only(tools.iter().map(|tool| (*tool).to_owned()).collect())
}

/// The expected end: outcome, blame, and a part of the reason; `None` if the work can be graded.
type ExpectedVerdict = Option<(Outcome, Option<Blame>, &'static str)>;

fn check(
    report: &AgentReport,
    facts: &ServerContacts,
    allowed: AllowedTools,
    trouble: Option<&str>,
    expected: ExpectedVerdict,
) {
    check_with(report, facts, None, allowed, trouble, expected);
}

fn check_with(
    report: &AgentReport,
    facts: &ServerContacts,
    failure: Option<TrialFailure>,
    allowed: AllowedTools,
    trouble: Option<&str>,
    expected: ExpectedVerdict,
) {
    let found = verdict(&AgentEvidence {
        report,
        facts,
        failure,
        breach: None,
        at_fault: Some(Blame::Agent),
        servers: &[server(allowed)],
        tools: &BTreeMap::new(),
        reach: Reach::AllListed,
        trouble,
        lost: None,
        limits: &Limits {
            max_turns: Some(3),
            ..Limits::default()
        },
    });
    match (found, expected) {
        (None, None) => {}
        (Some(ended), Some((outcome, blame, part))) => {
            assert_eq!((ended.outcome, ended.blame), (outcome, blame), "{ended:?}");
            let reason = ended.reason.unwrap_or_default();
            assert!(reason.contains(part), "{reason}");
        }
        (found, expected) => panic!("{found:?} is not {expected:?}"),
    }
}

#[test]
fn only_completed_work_is_graded() {
    let all = AllowedTools::All;
    check(&done(), &seen(&["echo"]), all.clone(), None, None);
    check(&done(), &seen(&[]), all.clone(), None, None);
    check(&done(), &seen(&["echo"]), only(&["echo"]), None, None);
    let silent = AgentReport::default();
    let expected = Some((Outcome::Failed, Some(Blame::Agent), "no answer"));
    check(&silent, &seen(&[]), all.clone(), None, expected);
    let broken = AgentReport {
        error: Some("API Error".to_owned()),
        ..done()
    };
    let expected = Some((Outcome::Errored, Some(Blame::Agent), "API Error"));
    check(&broken, &seen(&[]), all.clone(), None, expected);
    let lost = AgentReport {
        model_lost: true,
        ..broken
    };
    let expected = Some((Outcome::Errored, Some(Blame::Infra), "API Error"));
    check(&lost, &seen(&[]), all.clone(), None, expected);
    let expected = Some((Outcome::Errored, Some(Blame::Suite), "no rule"));
    check(&lost, &seen(&[]), all.clone(), Some("no rule"), expected);
    let tired = AgentReport {
        out_of_turns: true,
        ..done()
    };
    let expected = Some((Outcome::TimedOut, None, "after 3 turns"));
    check(&tired, &seen(&[]), all, None, expected);
}

#[test]
fn a_forbidden_tool_fails_the_trial_even_if_denied() {
    let denied = AgentReport {
        denied: vec!["mcp__ev__echo".to_owned()],
        ..done()
    };
    let expected = Some((Outcome::Failed, Some(Blame::Agent), "`mcp__ev__echo`"));
    check(&denied, &seen(&[]), only(&["sum"]), None, expected);
    let expected = Some((Outcome::Failed, Some(Blame::Agent), "used `ev.echo`"));
    check(&done(), &seen(&["echo"]), only(&["sum"]), None, expected);
}

#[test]
fn an_agent_that_did_not_reach_its_servers_is_not_graded() {
    let expected = Some((
        Outcome::Errored,
        Some(Blame::Agent),
        "never listed the tools of `ev`",
    ));
    check(
        &done(),
        &ServerContacts::default(),
        AllowedTools::All,
        None,
        expected,
    );
    let report = AgentReport {
        unreached: vec!["ev".to_owned()],
        ..done()
    };
    let expected = Some((Outcome::Errored, Some(Blame::Agent), "could not reach `ev`"));
    check(
        &report,
        &ServerContacts::default(),
        AllowedTools::All,
        None,
        expected,
    );
}

#[test]
fn a_dead_server_gets_the_blame_whatever_the_agent_reports() {
    let died = |outcome, blame| {
        Some(TrialFailure {
            outcome,
            blame,
            reason: "it exited with code 7".to_owned(),
        })
    };
    let facts = seen(&["echo"]);
    let all = AllowedTools::All;
    let broken = AgentReport {
        error: Some("required MCP servers failed".to_owned()),
        ..AgentReport::default()
    };
    for outcome in [Outcome::Failed, Outcome::Errored] {
        let server = Some(Blame::Server);
        for report in [done(), broken.clone()] {
            let failure = died(outcome, server);
            let expected = Some((outcome, server, "code 7"));
            check_with(&report, &facts, failure, all.clone(), None, expected);
        }
    }
    // An unanswered call fails the trial; the agent's own error explains more.
    let left = || died(Outcome::Failed, None);
    let expected = Some((Outcome::Failed, None, "code 7"));
    check_with(&done(), &facts, left(), all.clone(), None, expected);
    let expected = Some((Outcome::Errored, Some(Blame::Agent), "MCP servers failed"));
    check_with(&broken, &facts, left(), all, None, expected);
}

#[test]
fn a_strict_run_fails_on_protocol_problems() {
    let breach = TrialFailure {
        outcome: Outcome::Failed,
        blame: Some(Blame::Server),
        reason: "noise".to_owned(),
    };
    let ended = verdict(&AgentEvidence {
        report: &done(),
        facts: &seen(&["echo"]),
        failure: None,
        breach: Some(breach),
        at_fault: None,
        servers: &[server(AllowedTools::All)],
        tools: &BTreeMap::new(),
        reach: Reach::AllListed,
        trouble: None,
        lost: None,
        limits: &Limits::default(),
    });
    let ended = ended.expect("it fails");
    assert_eq!(
        (ended.outcome, ended.blame),
        (Outcome::Failed, Some(Blame::Server))
    );
}

#[test]
fn an_answer_without_the_model_does_not_count() {
    let facts = seen(&["echo"]);
    let ended = |report: &AgentReport, blame: Blame| {
        let work = AgentEvidence {
            report,
            facts: &facts,
            failure: None,
            breach: None,
            at_fault: None,
            servers: &[server(AllowedTools::All)],
            tools: &BTreeMap::new(),
            reach: Reach::AllListed,
            trouble: None,
            lost: Some((blame, "nobody there".to_owned())),
            limits: &Limits::default(),
        };
        let ended = verdict(&work).expect("it can't be graded");
        assert_eq!(ended.outcome, Outcome::Errored);
        (ended.blame, ended.reason.unwrap_or_default())
    };
    for blame in [Blame::Infra, Blame::Agent] {
        let (found, reason) = ended(&done(), blame);
        assert_eq!(found, Some(blame));
        assert!(reason.contains("nobody there"), "{reason}");
    }
    let broken = AgentReport {
        error: Some("exit 1".to_owned()),
        ..AgentReport::default()
    };
    assert_eq!(ended(&broken, Blame::Infra).0, Some(Blame::Infra));
}

/// Why an agent with the servers `ev` and `fs` has not reached enough of them.
fn missed(reach: Reach, reached: &[&str], listed: &[&str]) -> Option<String> {
    let names = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
    let facts = ServerContacts {
        reached: names(reached),
        listed: names(listed),
        ..ServerContacts::default()
    };
    let mut other = server(AllowedTools::All);
    "fs".clone_into(&mut other.name);
    let ended = verdict(&AgentEvidence {
        report: &done(),
        facts: &facts,
        failure: None,
        breach: None,
        at_fault: None,
        servers: &[server(AllowedTools::All), other],
        tools: &BTreeMap::new(),
        reach,
        trouble: None,
        lost: None,
        limits: &Limits::default(),
    })?;
    assert_eq!(
        (ended.outcome, ended.blame),
        (Outcome::Errored, Some(Blame::Agent))
    );
    ended.reason
}

#[test]
fn an_agent_from_a_file_has_to_reach_one_server_unless_its_file_says_otherwise() {
    let none = missed(Reach::One, &[], &[]).expect("it reached nothing");
    for part in ["any of its servers (`ev`, `fs`)", "`connects: onUse`"] {
        assert!(none.contains(part), "{none}");
    }
    assert_eq!(missed(Reach::One, &["fs"], &[]), None);
    assert_eq!(missed(Reach::OnUse, &[], &[]), None);
}

#[test]
fn an_agent_that_proctor_knows_has_to_list_the_tools_of_every_server() {
    let all = &["ev", "fs"];
    let check = |listed: &[&str], part: &str| {
        let reason = missed(Reach::AllListed, all, listed).expect("one is missing");
        assert!(reason.contains(part), "{reason}");
    };
    check(&[], "never listed the tools of `ev`");
    check(&["ev"], "never listed the tools of `fs`");
    assert_eq!(missed(Reach::AllListed, all, all), None);
}

#[test]
fn an_agent_that_connects_on_use_still_has_to_answer_and_to_stay_within_what_is_allowed() {
    let ended = |report: &AgentReport, facts: &ServerContacts| {
        verdict(&AgentEvidence {
            report,
            facts,
            failure: None,
            breach: None,
            at_fault: None,
            servers: &[server(only(&["sum"]))],
            tools: &BTreeMap::new(),
            reach: Reach::OnUse,
            trouble: None,
            lost: None,
            limits: &Limits::default(),
        })
    };
    assert_eq!(ended(&done(), &ServerContacts::default()), None);
    let silent =
        ended(&AgentReport::default(), &ServerContacts::default()).expect("it said nothing");
    assert_eq!(silent.outcome, Outcome::Failed);
    let used = ended(&done(), &seen(&["echo"])).expect("it used what it may not");
    assert_eq!(used.outcome, Outcome::Failed);
}
