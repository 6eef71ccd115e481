use std::fs;

use super::*;

fn problems_of(text: &str, name: &str) -> (Option<Profile>, Vec<(u32, String)>) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join(PROFILES_FILE);
    fs::write(&path, text).unwrap();
    let mut problems = Problems::default();
    let profile = load(&path, name, &mut problems);
    let shown = problems.iter().map(|problem| {
        let line = problem.place.as_ref().map_or(0, |place| place.line);
        let hint = problem.hint.as_deref().unwrap_or_default();
        (line, format!("{} {hint}", problem.message))
    });
    (profile, shown.collect())
}

#[test]
fn values_become_text_for_flags() {
    let text = "profiles:\n  pr: {labels: tier=pr, runs: 1, budgetUsd: 2, passHat: {k: 3, rate: 80%}}\n  \
                n: {agents: [a, b], failFast: true, taskTimeout: 2m}\n";
    let values = |name: &str| {
        let (profile, problems) = problems_of(text, name);
        assert_eq!(problems, []);
        let values = profile.unwrap().values.into_iter();
        values
            .map(|value| format!("{}: {}", value.key, value.texts.join(" ")))
            .collect::<Vec<_>>()
    };
    assert_eq!(
        values("pr"),
        [
            "labels: tier=pr",
            "runs: 1",
            "budgetUsd: 2",
            "passHat: 3=80%"
        ]
    );
    assert_eq!(
        values("n"),
        ["agents: a b", "failFast: true", "taskTimeout: 2m"]
    );
}

#[test]
fn paths_are_relative_to_the_file() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join(PROFILES_FILE);
    fs::write(&path, "profiles: {a: {prices: p.yaml, model: m}}\n").unwrap();
    let profile = load(&path, "a", &mut Problems::default()).unwrap();
    let inside = folder.path().join("p.yaml").display().to_string();
    assert_eq!(profile.values[0].texts, [inside]);
    assert_eq!(profile.values[1].texts, ["m"]);
}

#[test]
fn every_mistake_has_its_place() {
    for (text, name, line, words) in [
        (
            "profiles:\n  pr: {jobz: 2}\n",
            "pr",
            2,
            "unknown key `jobz` did you mean `jobs`?",
        ),
        ("profiles:\n  pr: {runs: two}\n", "pr", 2, "expected"),
        ("profiles:\n  pr: {runs: 0}\n", "pr", 2, ""),
        ("profiles:\n  pr:\n    minPassRate:\n", "pr", 3, ""),
        (
            "profiles:\n  pr: {minPassRate: 0}\n",
            "pr",
            2,
            "could never be missed",
        ),
        (
            "profiles:\n  pr: {budgetUsd: -1}\n",
            "pr",
            2,
            "an amount above zero",
        ),
        (
            "profiles:\n  pr: {labels: tier}\n",
            "pr",
            2,
            "invalid label `tier`",
        ),
        (
            "profiles:\n  pr: {labels: ','}\n",
            "pr",
            2,
            "select every case",
        ),
        ("profiles:\n  pr: {agents: []}\n", "pr", 2, ""),
        ("profiles:\n  pr: [runs]\n", "pr", 2, "expected a map"),
        (
            "profiles:\n  nightly: {}\n",
            "nigtly",
            2,
            "unknown profile `nigtly` did you mean `nightly`?",
        ),
        ("profile: {pr: {}}\n", "pr", 1, "unknown key `profile`"),
        ("profiles: 3\n", "pr", 1, "expected a map"),
        // Also in a profile that is not used.
        ("profiles:\n  a: {}\n  b: {runs: x}\n", "a", 3, "expected"),
    ] {
        let (profile, problems) = problems_of(text, name);
        assert_eq!(profile, None, "{text}");
        let (found, message) = problems.first().cloned().unwrap_or_default();
        assert_eq!(found, line, "{text}: {problems:?}");
        assert!(message.contains(words), "{text}: {problems:?}");
    }
}

#[test]
fn the_search_ends_at_the_repository() {
    let folder = tempfile::tempdir().unwrap();
    let deep = folder.path().join("repo/suites/a");
    fs::create_dir_all(&deep).unwrap();
    fs::create_dir_all(folder.path().join("repo/.git")).unwrap();
    fs::write(folder.path().join(PROFILES_FILE), "").unwrap();
    assert_eq!(find(&deep), None);
    let file = folder.path().join("repo").join(PROFILES_FILE);
    fs::write(&file, "").unwrap();
    assert_eq!(find(&deep), Some(file));
}

#[test]
fn the_schema_accepts_what_the_decoder_accepts() {
    let complete = json!({"$schema": "x.json", "profiles": {"pr": {
        "labels": "a=b", "run": "^x", "runs": 3, "taskTimeout": "1m", "defaultTaskTimeout": "1m",
        "cleanupTimeout": "1m", "defaultCleanupTimeout": "1m", "parallel": 2, "jobs": 2, "failFast": true, "keep": "all",
        "stopWhenDecided": true, "budgetUsd": 2.5, "budgetTokens": 1000, "maxEstimateUsd": 3,
        "prices": "p.yaml", "mcpConfigFile": "m.json", "agents": ["codex"], "model": "m", "judge": "j",
        "modelTap": true, "passEnv": ["A"], "maxTurns": 3, "callTimeout": "5s", "strict": true,
        "minPassRate": "90%", "minLowerBound": 0.8, "passHat": {"k": 3, "rate": 0.5},
        "noRegression": "latest", "maxErrors": 0,
    }}});
    let validator = jsonschema::validator_for(&schema()).unwrap();
    let keys = complete["profiles"]["pr"].as_object().unwrap();
    assert_eq!(keys.len(), ProfileFile::KEYS.len());
    assert!(validator.is_valid(&complete));
    assert_eq!(problems_of(&complete.to_string(), "pr").1, []);
    for key in keys.keys() {
        // Neither takes an empty value, or a key with a typing mistake.
        for (name, value) in [
            (key.clone(), Value::Null),
            (format!("{key}x"), Value::from(1)),
        ] {
            let mut wrong = complete.clone();
            wrong["profiles"]["pr"][&name] = value;
            assert!(!validator.is_valid(&wrong), "{name}");
            assert_ne!(problems_of(&wrong.to_string(), "pr").1, [], "{name}");
        }
    }
}
