use proctor_core::history::AgentRow;
use proctor_core::overview::RateOverview;
use proctor_core::summary::Counts;

use super::*;

fn result(agents: &[(&str, &str)], gate: Answer, passed: Option<(u32, u32)>) -> RunResultRow {
    let agents = agents.iter().map(|(name, model)| AgentRow {
        name: (*name).to_owned(),
        model: Some((*model).to_owned()),
    });
    RunResultRow {
        started: "2026-11-15T08:00:00.123Z".to_owned(),
        suite: "kubernetes".to_owned(),
        gate,
        rate: passed.map(|(passed, counted)| RateOverview {
            passed,
            counted,
            mean: 0.5,
            low95: 0.1,
            high95: 0.9,
        }),
        trials: Counts::default(),
        agents: agents.collect(),
    }
}

fn runs() -> Vec<RunRow> {
    let run = |name: &str, content| RunRow {
        name: name.to_owned(),
        folder: String::new(),
        content,
    };
    let loop_agent = [("llm-agent", "openai:gpt-5")];
    let two = [
        ("claude-code", "anthropic:claude-sonnet-4-5"),
        ("codex", "openai:gpt-5-codex"),
    ];
    vec![
        run(
            "20261115-080000-kubernetes",
            RunContent::Unfinished(result(&loop_agent, Answer::Inconclusive, None)),
        ),
        run(
            "20261114-080000-kubernetes",
            RunContent::Ended(result(&two, Answer::Missed, Some((162, 200)))),
        ),
        run(
            "20261113-080000-kubernetes",
            RunContent::Ended(result(&loop_agent, Answer::Met, Some((5, 5)))),
        ),
        run(
            "session",
            RunContent::Recording {
                started: "2026-11-01T08:00:00Z".to_owned(),
                suite: "uvx \u{1b}[31m".to_owned(),
            },
        ),
        run(
            "broken\u{1b}[31m",
            RunContent::Unreadable {
                reason: "line 1 of `run.jsonl` is not an event of a record\u{7}".to_owned(),
            },
        ),
    ]
}

fn plain(width: usize) -> String {
    let now = "2026-11-15T11:30:00Z".parse().unwrap();
    anstream::adapter::strip_str(&render_for(&runs(), now, width)).to_string()
}

#[test]
fn a_run_takes_a_line_at_140_columns() {
    insta::assert_snapshot!(plain(140));
}

#[test]
fn the_last_columns_shrink_at_80_columns() {
    let text = plain(80);
    for line in text.lines().filter(|line| !line.contains("unreadable")) {
        assert!(line.width() <= 80, "{line}");
    }
    insta::assert_snapshot!(text);
}

#[test]
fn an_age_has_one_unit() {
    let now: Timestamp = "2026-11-15T12:00:00Z".parse().unwrap();
    let check = |started: &str, shown: &str| assert_eq!(age(started, now), shown);
    check("2026-11-15T11:59:18.9Z", "42s");
    check("2026-11-15T11:57:00Z", "3m");
    check("2026-11-14T07:00:00Z", "29h");
    check("2026-11-03T12:00:00Z", "12d");
    // A clock that was set back.
    check("2026-11-15T13:00:00Z", "0s");
    check("yesterday", "?");
}
