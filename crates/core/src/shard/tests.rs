use std::collections::BTreeMap;

use proctor_record::event::{PlannedAgent, PlannedCase, RunConfig, RunPlanned};

use super::plan::{differences, is_same, plan_hash};
use super::*;

/// The formula as documented, so that shards of any version agree.
#[test]
fn a_trial_belongs_to_the_shard_that_the_documented_hash_names() {
    // sha256("tasks/a.yaml#a\0claude\01") and so on, computed with Python's hashlib.
    for (case, agent, repeat, count, expected) in [
        ("tasks/a.yaml#a", "claude", 1, 16, 6),
        ("tasks/a.yaml#a", "claude", 2, 16, 9),
        ("tasks/a.yaml#a", "codex", 1, 16, 10),
        ("tasks/ä.yaml#ä[1]", "", 20, 500, 71),
        ("a", "b", 1, 1, 1),
    ] {
        let found = shard_of(case, agent, repeat, count);
        assert_eq!(found, expected, "{case} {agent} {repeat} of {count}");
    }
}

#[test]
fn every_trial_is_in_exactly_one_shard() {
    for count in [1, 2, 7, 40] {
        let shards: Vec<Shard> = (1..=count).map(|n| Shard::new(n, count).unwrap()).collect();
        let mut sizes = vec![0; shards.len()];
        for case in 0..100 {
            for repeat in 1..=20 {
                let id = format!("case-{case}");
                let holders = shards
                    .iter()
                    .filter(|shard| shard.holds(&id, "agent", repeat));
                let holders: Vec<u32> = holders.map(|shard| shard.index()).collect();
                assert_eq!(holders.len(), 1, "{id} {repeat}: {holders:?}");
                sizes[holders[0] as usize - 1] += 1;
            }
        }
        let mean = 2000 / count;
        assert!(
            sizes
                .iter()
                .all(|size| (mean / 2..=mean * 2).contains(size)),
            "{sizes:?}"
        );
    }
}

#[test]
fn shards_are_read_strictly() {
    for (text, expected) in [
        ("3/16", Ok((3, 16))),
        ("1/1", Ok((1, 1))),
        ("0/3", Err(())),
        ("4/3", Err(())),
        ("1/0", Err(())),
        ("3", Err(())),
        ("a/3", Err(())),
        ("+1/3", Err(())),
        ("1/3/4", Err(())),
        ("-1/3", Err(())),
        ("1/100001", Err(())),
        ("", Err(())),
    ] {
        let found = text
            .parse::<Shard>()
            .map(|s| (s.index(), s.count()))
            .map_err(|_| ());
        assert_eq!(found, expected, "{text}");
    }
}

fn environment(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
    let pairs = pairs
        .iter()
        .map(|(k, v)| ((*k).to_owned(), (*v).to_owned()));
    pairs.collect()
}

#[test]
fn engines_say_which_shard_this_is() {
    let slurm = |id, min, max, step, count| {
        environment(&[
            ("SLURM_ARRAY_TASK_ID", id),
            ("SLURM_ARRAY_TASK_MIN", min),
            ("SLURM_ARRAY_TASK_MAX", max),
            ("SLURM_ARRAY_TASK_STEP", step),
            ("SLURM_ARRAY_TASK_COUNT", count),
        ])
    };
    let pair = |a: &str, x: &str, b: &str, y: &str| environment(&[(a, x), (b, y)]);
    for (variables, expected) in [
        (
            pair("JOB_COMPLETION_INDEX", "0", "PROCTOR_SHARDS", "4"),
            Some("1/4"),
        ),
        (
            pair("JOB_COMPLETION_INDEX", "3", "PROCTOR_SHARDS", "4"),
            Some("4/4"),
        ),
        (
            pair("JOB_COMPLETION_INDEX", "4", "PROCTOR_SHARDS", "4"),
            None,
        ),
        (environment(&[("JOB_COMPLETION_INDEX", "0")]), None),
        (slurm("0", "0", "39", "1", "40"), Some("1/40")),
        (slurm("7", "1", "13", "3", "5"), Some("3/5")),
        // `--array=1,5,9` has three tasks between 1 and 9.
        (slurm("5", "1", "9", "1", "3"), None),
        (slurm("8", "1", "13", "3", "5"), None),
        (environment(&[("SLURM_ARRAY_TASK_ID", "1")]), None),
        (
            pair(
                "AWS_BATCH_JOB_ARRAY_INDEX",
                "9",
                "AWS_BATCH_JOB_ARRAY_SIZE",
                "10",
            ),
            Some("10/10"),
        ),
        (
            pair("CI_NODE_INDEX", "1", "CI_NODE_TOTAL", "3"),
            Some("1/3"),
        ),
        (pair("CI_NODE_INDEX", "0", "CI_NODE_TOTAL", "3"), None),
        (environment(&[("CI_NODE_TOTAL", "1")]), None),
        (
            pair(
                "BUILDKITE_PARALLEL_JOB",
                "0",
                "BUILDKITE_PARALLEL_JOB_COUNT",
                "2",
            ),
            Some("1/2"),
        ),
        (
            pair("CIRCLE_NODE_INDEX", "1", "CIRCLE_NODE_TOTAL", "2"),
            Some("2/2"),
        ),
        (
            pair("CIRCLE_NODE_INDEX", "x", "CIRCLE_NODE_TOTAL", "2"),
            None,
        ),
        (environment(&[]), None),
        (
            environment(&[("PROCTOR_SHARD", "2/9"), ("CI_NODE_INDEX", "1")]),
            Some("2/9"),
        ),
        (environment(&[("PROCTOR_SHARD", "10/9")]), None),
    ] {
        let found = detect(&variables).map(|shard| shard.to_string());
        assert_eq!(
            found.as_ref().ok().map(String::as_str),
            expected,
            "{variables:?}: {found:?}"
        );
    }
}

#[test]
fn contradicting_engines_are_refused() {
    let both = |index: &str| {
        environment(&[
            ("CI_NODE_INDEX", "1"),
            ("CI_NODE_TOTAL", "3"),
            ("CIRCLE_NODE_INDEX", index),
            ("CIRCLE_NODE_TOTAL", "3"),
        ])
    };
    assert_eq!(detect(&both("0")).unwrap().to_string(), "1/3");
    let error = detect(&both("1")).unwrap_err().to_string();
    assert_eq!(
        error,
        "GitLab says shard 1/3, but CircleCI says shard 2/3: set `PROCTOR_SHARD=INDEX/COUNT`"
    );
    let error = detect(&environment(&[])).unwrap_err().to_string();
    for name in [
        "PROCTOR_SHARD",
        "JOB_COMPLETION_INDEX",
        "SLURM_ARRAY_TASK_ID",
    ] {
        assert!(error.contains(name), "{error}");
    }
}

#[test]
fn a_run_id_comes_from_the_engine() {
    for (pairs, expected) in [
        (
            &[("GITHUB_RUN_ID", "77"), ("GITHUB_RUN_ATTEMPT", "2")][..],
            Some("77"),
        ),
        (
            &[("GITHUB_RUN_ID", "77"), ("PROCTOR_RUN_ID", "mine")],
            Some("mine"),
        ),
        (&[("SLURM_ARRAY_JOB_ID", "5")], Some("5")),
        (&[("CI_PIPELINE_ID", "../x")], None),
        (&[("CI_PIPELINE_ID", "")], None),
        (&[], None),
    ] {
        assert_eq!(
            run_id(&environment(pairs)).as_deref(),
            expected,
            "{pairs:?}"
        );
    }
}

fn plan(folder: &str, shard: u32, count: u32) -> RunPlanned {
    let cases = vec![PlannedCase::new("a".to_owned(), "a".to_owned(), 2)];
    let agents = vec![PlannedAgent::new("agent".to_owned())];
    let mut plan = RunPlanned::new(format!("{folder}/eval.yaml"), cases, agents);
    plan.config = Some(Box::new(RunConfig {
        folder: folder.to_owned(),
        workers: shard,
        ..RunConfig::default()
    }));
    plan.asked.shard = Some(Box::new(PlannedShard {
        index: Some(shard),
        count,
        run_id: None,
        plan_hash: String::new(),
    }));
    plan
}

#[test]
fn the_hash_of_a_plan_is_the_same_on_every_machine_and_tells_plans_apart() {
    let one = plan("/home/a", 1, 4);
    assert_eq!(
        plan_hash(&one, "1.0.0"),
        plan_hash(&plan("/builds/b", 3, 4), "1.0.0")
    );
    let mut third = plan("/home/a", 3, 4);
    third.config.clone_from(&one.config);
    let before = third.clone();
    assert!(is_same(&one, &mut third));
    assert_eq!(third, before);
    assert!(!is_same(&one, &mut plan("/builds/b", 3, 4)));
    let mut more_runs = plan("/home/a", 1, 4);
    more_runs.cases[0].runs = 3;
    let mut other_case = plan("/home/a", 1, 4);
    other_case.cases[0].hash = "changed".to_owned();
    let mut other_agent = plan("/home/a", 1, 4);
    other_agent.agents[0].model = Some("openai:gpt-5".to_owned());
    let mut strict = plan("/home/a", 1, 4);
    strict.asked.strict = true;
    for (mut other, version, expected) in [
        (plan("/home/a", 1, 5), "1.0.0", "4 and 5 shards"),
        (more_runs, "1.0.0", "another number of runs of `a`"),
        (other_case, "1.0.0", "changed: `a`"),
        (other_agent, "1.0.0", "the agents"),
        (strict, "1.0.0", "the options or gates"),
        (plan("/home/a", 2, 4), "1.1.0", "Proctor 1.0.0 and 1.1.0"),
    ] {
        assert_ne!(
            plan_hash(&one, "1.0.0"),
            plan_hash(&other, version),
            "{expected}"
        );
        assert!(
            version != "1.0.0" || !is_same(&one, &mut other),
            "{expected}"
        );
        let found = differences((&one, "1.0.0"), (&other, version));
        assert_eq!(found, [expected.to_owned()]);
    }
}
