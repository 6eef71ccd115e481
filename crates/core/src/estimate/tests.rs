use super::*;

fn key(case: &str) -> TrialKey {
    TrialKey {
        case: case.to_owned(),
        hash: "1".to_owned(),
        agent: "agent".to_owned(),
        model: None,
        judge: None,
    }
}

fn planned(case: &str, trials: u32, at_once: u32) -> PlannedTrials {
    PlannedTrials {
        key: key(case),
        trials,
        at_once,
    }
}

fn used(cost_usd: Option<f64>, tokens: Option<f64>) -> TrialUse {
    TrialUse {
        calls: 2.0,
        tokens,
        cost_usd,
        seconds: 10.0,
    }
}

fn history(trials: &[(&str, TrialUse)]) -> History {
    let mut history = History::default();
    for (run, (case, used)) in trials.iter().enumerate() {
        history
            .trials
            .entry(key(case))
            .or_default()
            .push((run, *used));
    }
    history
}

#[test]
fn the_range_is_that_of_earlier_trials_times_their_number() {
    let cheap = used(Some(0.01), Some(100.0));
    let dear = used(Some(0.03), Some(300.0));
    let history = history(&[("a", cheap), ("a", dear), ("b", cheap)]);
    let estimate = Estimate::of(&[planned("a", 10, 5), planned("b", 1, 1)], &history);
    assert!((estimate.cost_usd.low - 0.11).abs() < 1e-9);
    assert!((estimate.cost_usd.high.unwrap() - 0.31).abs() < 1e-9);
    assert_eq!(estimate.tokens.high, Some(3100.0));
    assert_eq!(estimate.seconds.high, Some(30.0));
    assert_eq!((estimate.runs, estimate.trials), (3, 11));
    assert_eq!(
        estimate.to_string(),
        "22 model calls, 1,100–3,100 tokens, $0.1100–$0.3100, 30s, from 3 earlier runs"
    );
}

#[test]
fn unknown_is_never_zero() {
    let cheap = used(Some(0.01), Some(100.0));
    let nothing = Estimate::of(&[planned("a", 1, 1)], &History::default());
    assert_eq!(nothing.cost_usd.high, None);
    assert_eq!(
        nothing.to_string(),
        "unknown: no earlier run of 1 case × agent pair"
    );
    let part = Estimate::of(
        &[planned("a", 1, 1), planned("b", 1, 1)],
        &history(&[("a", cheap)]),
    );
    assert_eq!((part.cost_usd.high, part.seconds.high), (None, None));
    assert_eq!(
        part.to_string(),
        "at least 2 model calls, at least 100 tokens, at least $0.0100, at least 10s, from 1 earlier run; no \
         earlier run of 1 of 2 case × agent pairs"
    );
    // One trial with an unknown price makes the case unknown, whatever the others cost.
    let trials = [("a", cheap), ("a", used(None, Some(5.0)))];
    let unpriced = Estimate::of(&[planned("a", 1, 1)], &history(&trials));
    assert_eq!(unpriced.cost_usd.high, None);
    assert_eq!(
        unpriced.to_string(),
        "2 model calls, 5–100 tokens, unknown cost, 10s, from 2 earlier runs; the price or usage of 1 case × \
         agent pair is unknown"
    );
    let mut all = Estimate::default();
    assert_eq!(all.cost_usd.high, Some(0.0));
    all.add(&part);
    assert_eq!(all.cost_usd.high, None);
    let other = TrialKey {
        hash: "2".to_owned(),
        ..key("a")
    };
    let changed = PlannedTrials {
        key: other,
        trials: 1,
        at_once: 1,
    };
    assert_eq!(
        Estimate::of(&[changed], &history(&[("a", cheap)])).unknown_pairs,
        1
    );
}
