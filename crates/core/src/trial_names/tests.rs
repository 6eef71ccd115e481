use std::path::PathBuf;

use super::*;

fn trial(case: &str, agent: &str, repeat: u32) -> NamedTrial {
    NamedTrial {
        file: TrialFile {
            stem: format!("tasks-{case}-{agent}-{repeat}"),
            attempt: 1,
            ended: true,
            path: PathBuf::new(),
        },
        case: case.to_owned(),
        case_id: format!("tasks/a.yaml#{case}"),
        agent: Some(format!("{agent} (openai:gpt-5)")),
        repeat,
        runs: 10,
        places: Arc::default(),
    }
}

fn trials() -> Vec<NamedTrial> {
    let mut all = Vec::new();
    for case in ["fix-crash-loop", "fix-crash-loop-2"] {
        for agent in ["codex", "goose"] {
            all.extend([1, 4, 10].map(|repeat| trial(case, agent, repeat)));
        }
    }
    all
}

#[test]
fn a_trial_is_named_as_reports_print_it() {
    let check = |text: &str, expected: usize| {
        let found = select(trials(), text).map_or(0, |found| found.len());
        assert_eq!(found, expected, "{text}");
    };
    check("fix-crash-loop", 6);
    check("fix-crash-loop 4", 2);
    check("codex/fix-crash-loop 4", 1);
    check("codex (openai:gpt-5)/fix-crash-loop 4", 1);
    check("codex/fix-crash-loop", 3);
    check("tasks/a.yaml#fix-crash-loop-2 10", 2);
    // Part of a name, where no trial has it whole.
    check("crash-loop", 12);
    check("loop-2", 6);
    check("fix-crash-loop 5", 0);
}

#[test]
fn a_trial_is_named_by_its_labels_and_by_nothing_else() {
    let mut all = trials();
    // Names that look like parts of labels.
    all.extend(["case 4", "a/b", "/", "4"].map(|case| trial(case, "a/b", 4)));
    all[0].agent = None;
    let mut texts: Vec<String> = all.iter().flat_map(NamedTrial::labels).collect();
    let changed: Vec<String> = texts
        .iter()
        .flat_map(|text| {
            [
                format!("{text} "),
                format!(" {text}"),
                format!("{text} 04"),
                format!("/{text}"),
            ]
        })
        .collect();
    texts.extend(changed);
    texts.extend(["", " ", "4", "a/", "fix-crash-loop +4"].map(str::to_owned));
    for trial in &all {
        for text in &texts {
            let is_label = trial.labels().any(|label| label == *text);
            assert_eq!(trial.is_named(text), is_label, "{text:?} of {trial:?}");
        }
    }
}

#[test]
fn a_typo_in_a_trial_names_the_nearest() {
    let error = select(trials(), "fix-carsh-loop 4")
        .unwrap_err()
        .to_string();
    let expected =
        "trial `fix-carsh-loop 4` not found in the run; did you mean `fix-crash-loop 4`?";
    assert_eq!(error, expected);
    let error = select(trials(), "zzz").unwrap_err().to_string();
    assert_eq!(error, "trial `zzz` not found in the run");
}

#[test]
fn numbers_in_names_sort_as_numbers() {
    let mut names = vec![
        "case 10", "case 2", "case", "case 02", "a1b10", "a1b9", "é2", "é10",
    ];
    names.sort_by(|a, b| natural(a, b));
    let expected = [
        "a1b9", "a1b10", "case", "case 02", "case 2", "case 10", "é2", "é10",
    ];
    assert_eq!(names, expected);
}
