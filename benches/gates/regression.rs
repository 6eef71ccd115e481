//! The regression rule: equal runs, drops, and the interval of the difference.

use proctor_core::compare::Comparison;
use proctor_core::statistics::{
    Difference, PassCount, RegressionTest, Stratum, TARGET_DROP, cases_for_drop, runs_for_drop,
};
use proctor_record::event::{CaseTally, RunTally};

use crate::simulation::{Random, Shape, binomial, exact, shapes, share};

/// Both runs of a comparison, of which some trials errored: each with this chance.
fn comparison(random: &mut Random, strata: &[Stratum], errors: f64) -> Comparison {
    let mut run = |side: fn(&Stratum) -> PassCount| {
        let cases = strata.iter().enumerate().map(|(index, stratum)| {
            let PassCount { passed, counted } = side(stratum);
            let mut trials = [0, 0, 0];
            for trial in 0..counted {
                let outcome = usize::from(trial >= passed);
                let is_error = errors > 0.0 && random.share() < errors;
                trials[if is_error { 2 } else { outcome }] += 1;
            }
            CaseTally {
                id: index.to_string(),
                name: String::new(),
                hash: String::new(),
                trials: vec![trials],
                known_failures: Vec::new(),
            }
        });
        RunTally {
            agents: vec![String::new()],
            cases: cases.collect(),
            ..RunTally::default()
        }
    };
    let (base, new) = (run(|stratum| stratum.base), run(|stratum| stratum.new));
    Comparison::of(&base, &new)
}

pub(crate) fn false_alarms(random: &mut Random, simulations: u32) {
    println!("False alarms: a flaky suite compared with itself, called a regression (at most 5%)");
    println!(
        "{:<30} {:>16} {:>10} {:>18}",
        "suite", "simulated", "exact", "with 5% errored"
    );
    for shape in shapes() {
        let mut alarms = [0, 0];
        for (errors, alarms) in [0.0, 0.05].into_iter().zip(&mut alarms) {
            for _ in 0..simulations {
                let strata = shape.simulate(random, |_, rate| rate);
                let found = comparison(random, &strata, errors);
                *alarms += u32::from(found.exit() == 1);
            }
        }
        let known = match (shape.rates.len(), shape.runs) {
            (1, (base, new)) => Some(one_case_alarm(base, new, shape.rates[0])),
            (cases, (1, 1)) => Some(single_trials_alarm(cases as u32, shape.rates[0])),
            _ => None,
        };
        let [plain, errored] = alarms.map(|alarms| share(alarms, simulations));
        let known = exact(known);
        println!("{:<30} {plain:>16} {known:>10} {errored:>18}", shape.name);
    }
}

/// The exact false alarm rate with one case.
fn one_case_alarm(base: u32, new: u32, rate: f64) -> f64 {
    let (of_base, of_new) = (binomial(base, rate), binomial(new, rate));
    let mut alarm = 0.0;
    for (b, p) in (0..).zip(&of_base) {
        for (n, q) in (0..).zip(&of_new) {
            let stratum = Stratum {
                base: PassCount {
                    passed: b,
                    counted: base,
                },
                new: PassCount {
                    passed: n,
                    counted: new,
                },
            };
            if RegressionTest::of(&[stratum]).is_regression() {
                alarm += p * q;
            }
        }
    }
    alarm
}

/// The exact false alarm rate with single trials: only cases that change their outcome count.
fn single_trials_alarm(cases: u32, rate: f64) -> f64 {
    let changed = binomial(cases, 2.0 * rate * (1.0 - rate));
    let pair = |base, new| Stratum {
        base: PassCount {
            passed: base,
            counted: 1,
        },
        new: PassCount {
            passed: new,
            counted: 1,
        },
    };
    let mut alarm = 0.0;
    for (k, p) in changed.iter().enumerate() {
        for (worse, q) in binomial(k as u32, 0.5).iter().enumerate() {
            let strata = [vec![pair(1, 0); worse], vec![pair(0, 1); k - worse]].concat();
            if RegressionTest::of(&strata).is_regression() {
                alarm += p * q;
            }
        }
    }
    alarm
}

pub(crate) fn power(random: &mut Random, simulations: u32) {
    println!("\nPower: how often a drop is found");
    println!("{:<46} {:>16} {:>10}", "drop", "simulated", "promised");
    let mut found = |name: &str, shape: &Shape, new: &dyn Fn(usize, f64) -> f64, promised: &str| {
        let mut hits = 0;
        for _ in 0..simulations {
            let strata = shape.simulate(random, new);
            hits += u32::from(RegressionTest::of(&strata).is_regression());
        }
        println!("{name:<46} {:>16} {promised:>10}", share(hits, simulations));
    };
    let five = Shape::even("", 5, 1.0, (6, 6));
    let collapse = |index: usize, rate: f64| if index == 0 { 0.0 } else { rate };
    found(
        "1 of 5 stable cases collapses, 6 runs",
        &five,
        &collapse,
        "–",
    );
    let flaky = Shape::even("", 5, 0.8, (6, 6));
    found(
        "1 of 5 cases of 80% collapses, 6 runs",
        &flaky,
        &collapse,
        "–",
    );
    for (cases, passed) in [(5, 18), (10, 18), (20, 16), (40, 14), (40, 19)] {
        // What a user would know: twenty trials, as often passed as expected.
        let rate = f64::from(passed) / 20.0;
        let known = PassCount {
            passed,
            counted: 20,
        };
        let strata = vec![
            Stratum {
                base: known,
                new: known
            };
            cases
        ];
        let Some(runs) = runs_for_drop(&strata, TARGET_DROP) else {
            continue;
        };
        let shape = Shape::even("", cases, rate, (runs, runs));
        let name = format!(
            "10 points, {cases} cases of {:.0}%, {runs} runs",
            rate * 100.0
        );
        found(&name, &shape, &|_, rate| rate - TARGET_DROP, "80%");
    }
    // Single trials: the stable part always passes, and the drop comes on top of noise.
    if let Some(cases) = cases_for_drop(TARGET_DROP, TARGET_DROP) {
        let shape = Shape::even("", cases as usize, 1.0, (1, 1));
        let name = format!("10 points, {cases} stable cases, 1 run");
        found(&name, &shape, &|_, rate| rate - TARGET_DROP, "80%");
    }
    let noisy = TARGET_DROP + 2.0 * 0.05 * 0.95;
    if let Some(cases) = cases_for_drop(noisy, TARGET_DROP) {
        let shape = Shape::even("", cases as usize, 0.95, (1, 1));
        let name = format!("10 points, {cases} cases of 95%, 1 run");
        found(&name, &shape, &|_, rate| rate - TARGET_DROP, "80%");
    }
}

pub(crate) fn coverage(random: &mut Random, simulations: u32) {
    println!("\nIntervals of the difference that contain the truth (95%)");
    println!(
        "{:<30} {:>16} {:>16}",
        "suite", "equal runs", "10 points worse"
    );
    for shape in shapes() {
        let case_of: Vec<usize> = (0..shape.rates.len()).collect();
        let mut cell = |drop: f64| {
            let fall = |_, rate: f64| (rate - drop).max(0.0);
            let rates = shape.rates.iter();
            let sum: f64 = rates.map(|rate| fall(0, *rate) - rate).sum();
            let truth = sum / shape.rates.len() as f64;
            let mut hits = 0;
            for _ in 0..simulations {
                let strata = shape.simulate(random, fall);
                if let Some(found) = Difference::of(&strata, &case_of) {
                    let interval = found.interval;
                    let holds = interval.low <= truth + 1e-12 && truth <= interval.high + 1e-12;
                    hits += u32::from(holds);
                }
            }
            share(hits, simulations)
        };
        println!("{:<30} {:>16} {:>16}", shape.name, cell(0.0), cell(0.1));
    }
}
