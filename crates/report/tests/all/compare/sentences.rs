//! The sentence of each answer, with its numbers.

use proctor_core::compare::sentence;

use super::*;

/// A run of several agents, each with the trials of every case.
fn by_agents(cases: usize, agents: &[(&'static str, &'static str)]) -> Plan {
    let mut all = numbered(&[(cases, "")]);
    all.agents = agents.iter().map(|(agent, _)| *agent).collect();
    for case in &mut all.cases {
        case.2 = agents.iter().map(|(_, trials)| *trials).collect();
    }
    all
}

#[test]
#[expect(clippy::too_many_lines, reason = "it is one table")]
fn every_answer_has_its_sentence_and_its_numbers() {
    let two = |a, b| by_agents(6, &[("codex", a), ("claude-code", b)]);
    let mut edited = numbered(&[(6, "p"), (3, "p")]);
    for case in &mut edited.cases[6..] {
        case.1 = "other".to_owned();
    }
    let mut all_edited = edited.clone();
    for case in &mut all_edited.cases {
        case.1 = "other".to_owned();
    }
    let known = |mut plan: Plan, case: &'static str| {
        plan.known_failures = vec![case];
        plan
    };
    let shapes: Vec<(&str, Plan, Plan)> = vec![
        (
            "single trials",
            numbered(&[(40, "p")]),
            numbered(&[(33, "p"), (7, "f")]),
        ),
        (
            "single trials",
            numbered(&[(40, "p")]),
            numbered(&[(39, "p"), (1, "f")]),
        ),
        (
            "single trials",
            numbered(&[(3, "p")]),
            numbered(&[(2, "p"), (1, "f")]),
        ),
        (
            "repeats",
            numbered(&[(6, "pppp")]),
            numbered(&[(6, "pppf")]),
        ),
        (
            "repeats",
            numbered(&[(6, "pppp")]),
            numbered(&[(6, "ffff")]),
        ),
        ("repeats", numbered(&[(2, "pp")]), numbered(&[(2, "pf")])),
        (
            "two cases of twelve collapse",
            numbered(&[(2, "pppppppp"), (2, "ffffffff"), (8, "ppppffff")]),
            numbered(&[(2, "ffffffff"), (2, "pppppppp"), (8, "ppppffff")]),
        ),
        (
            "unequal repeats",
            numbered(&[(8, "ppppp")]),
            numbered(&[(8, "pf")]),
        ),
        (
            "unequal repeats",
            numbered(&[(8, "p")]),
            numbered(&[(8, "ppppp")]),
        ),
        (
            "unequal repeats",
            numbered(&[(1, "p")]),
            numbered(&[(1, "pfff")]),
        ),
        (
            "errored trials",
            numbered(&[(9, "pp")]),
            numbered(&[(8, "ff"), (1, "ee")]),
        ),
        (
            "errored trials",
            numbered(&[(9, "pp")]),
            numbered(&[(8, "pp"), (1, "pe")]),
        ),
        (
            "errored trials",
            numbered(&[(9, "pe")]),
            numbered(&[(4, "ff"), (5, "ee")]),
        ),
        (
            "errored trials",
            numbered(&[(9, "ee")]),
            numbered(&[(9, "pp")]),
        ),
        (
            "new cases",
            numbered(&[(6, "p")]),
            numbered(&[(6, "p"), (3, "f")]),
        ),
        (
            "removed cases",
            numbered(&[(6, "p"), (3, "p")]),
            numbered(&[(6, "f")]),
        ),
        ("changed cases", numbered(&[(9, "p")]), edited),
        ("every case changed", numbered(&[(9, "p")]), all_edited),
        ("several agents", two("ppp", "ppp"), two("ppp", "ppf")),
        ("several agents", two("ppp", "ppp"), two("ppp", "fff")),
        (
            "several agents",
            by_agents(1, &[("a", "p"), ("b", "p")]),
            by_agents(1, &[("a", "p"), ("b", "f")]),
        ),
        (
            "other agents",
            two("ppp", "ppp"),
            by_agents(6, &[("x", "ppp"), ("y", "ppp")]),
        ),
        (
            "known failures",
            numbered(&[(9, "p")]),
            known(numbered(&[(8, "p"), (1, "f")]), "case-08"),
        ),
        (
            "known failures",
            numbered(&[(9, "p")]),
            known(numbered(&[(9, "f")]), "*"),
        ),
    ];
    let mut shown = String::new();
    for (name, base, new) in shapes {
        let folder = tempfile::tempdir().expect("the sample can be written");
        let [base, new] = [("main.run", base), ("new.run", new)].map(|(name, plan)| {
            let path = folder.path().join(name);
            write(&path, &plan);
            let run = RunReader::open(&path).expect("the sample can be read");
            RunFacts::load(&run).expect("the sample can be read").tally
        });
        let comparison = Comparison::of(&base, &new);
        let exit = comparison.exit();
        let sentence = sentence::answer(&comparison, &|name| format!("`{name}`"));
        shown.push_str(&format!("{name}\n  exit {exit}: {sentence}\n"));
    }
    insta::assert_snapshot!(shown);
}
