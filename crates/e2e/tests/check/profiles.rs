//! `check --profile`: defaults for flags from `proctor.yaml`.

use proctor_e2e::suite::SuiteFixture;
use proctor_record::event::EventKind;
use proctor_record::record::RunReader;
use serde_json::{Value, json};

const RULES: &str = r"
  - when: {results: 0}
    reply: {calls: [{tool: echo, arguments: {text: hi}}], usage: {input: 90, output: 10}}
  - reply: {text: done, usage: {input: 90, output: 10}}
";

fn suite(profiles: &str) -> SuiteFixture {
    let suite = SuiteFixture::new(RULES, &[]);
    let assertions = json!({"toolsUsed": [{"server": "fixture", "tool": "echo"}]});
    suite.eval(&json!({}), &json!({"assertions": assertions}));
    suite.task("one", &json!({}));
    suite.task("two", &json!({}));
    suite.write("proctor.yaml", profiles);
    suite
}

#[test]
fn a_profile_sets_flags_and_the_command_line_wins() {
    let suite = suite("profiles:\n  pr: {run: ^one$, runs: 3, jobs: 2}\n");
    let seen = suite
        .check(&["--profile", "pr", "-n", "2", "-o", "json"])
        .run();
    assert_eq!(seen.code, Some(0), "{}", seen.stderr);
    let json: Value = serde_json::from_str(&seen.stdout).unwrap();
    assert_eq!(json["proctor"]["trials"]["total"], 2);
    let profile = json!({
        "name": "pr",
        "file": suite.path("proctor.yaml").canonicalize().unwrap(),
        "values": {"run": "^one$", "runs": "3", "jobs": "2"},
        "overridden": ["runs"],
    });
    assert_eq!(json["proctor"]["profile"], profile);
    let run = RunReader::open(&seen.record).unwrap();
    let recorded = run
        .events()
        .unwrap()
        .find_map(|event| match event.unwrap().event {
            EventKind::RunPlanned(planned) => planned.asked.profile,
            _ => None,
        });
    assert_eq!(json!(recorded), profile);
    let seen = suite.check(&["--profile", "pr"]).run();
    assert!(seen.stdout.contains("3/3 trials passed"), "{}", seen.stdout);
    assert!(seen.stdout.contains("Profile   pr ("), "{}", seen.stdout);
}

#[test]
fn a_gate_in_a_profile_is_a_gate() {
    let suite = suite("profiles: {strict: {minLowerBound: 99%}, budget: {budgetTokens: 250}}\n");
    let seen = suite.check(&["--profile", "strict"]).run();
    assert_eq!(seen.code, Some(3), "{}", seen.stdout);
    let seen = suite.check(&["--profile", "budget", "-n", "5"]).run();
    assert_eq!(seen.code, Some(3), "{}", seen.stdout);
    assert!(
        seen.stdout.contains("the budget of 250 tokens is spent"),
        "{}",
        seen.stdout
    );
}

#[test]
fn every_mistake_is_told_with_its_line_and_nothing_starts() {
    for (profiles, name, words) in [
        (
            "profiles:\n  pr: {jobz: 1}\n",
            "pr",
            &["unknown key `jobz`", "proctor.yaml:2:8", "`jobs`"][..],
        ),
        (
            "profiles:\n  pr: {runs: many}\n",
            "pr",
            &["expected", "proctor.yaml:2:14"],
        ),
        (
            "profiles:\n  pr: {minPassRate: 200%}\n",
            "pr",
            &["more than everything", "proctor.yaml:2"],
        ),
        (
            "profiles:\n  nightly: {}\n",
            "nigthly",
            &[
                "unknown profile",
                "did you mean `nightly`?",
                "proctor.yaml:2",
            ],
        ),
        (
            "profiles:\n  pr: {jobs: 2, parallel: 2}\n",
            "pr",
            &["profile `pr`", "cannot be used with"],
        ),
        (
            "profiles:\n  pr: {taskTimeout: 0s}\n",
            "pr",
            &["a duration can't be zero", "proctor.yaml:2:21"],
        ),
        ("profiles: [\n", "pr", &["proctor.yaml"]),
    ] {
        let suite = suite(profiles);
        let seen = suite.check(&["--profile", name, "-o", "json"]).run();
        assert_eq!(seen.code, Some(2), "{profiles}{}", seen.stderr);
        for word in words {
            assert!(seen.stderr.contains(word), "{word}: {}", seen.stderr);
        }
        assert!(!seen.record.exists());
        let json: Value = serde_json::from_str(&seen.stdout).unwrap();
        assert_eq!(json["proctor"]["exit"]["code"], 2);
    }
}

#[test]
fn without_a_file_there_is_no_profile() {
    let suite = suite("");
    std::fs::remove_file(suite.path("proctor.yaml")).unwrap();
    std::fs::create_dir(suite.path(".git")).unwrap();
    let seen = suite.check(&["--profile", "pr"]).run();
    assert_eq!(seen.code, Some(2), "{}", seen.stderr);
    assert!(
        seen.stderr.contains("no `proctor.yaml` in"),
        "{}",
        seen.stderr
    );
}
