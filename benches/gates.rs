//! How often the regression rule and the gates are wrong, and how often they find what they should.
//!
//! Simulates runs with known pass rates, and prints each share beside its exact value where there is one.
#![expect(clippy::print_stdout, reason = "the figures are the result")]
#![expect(
    clippy::cast_precision_loss,
    clippy::cast_possible_truncation,
    reason = "numbers of trials are small"
)]

use proctor_core::statistics::{
    Decision, Difference, PassCount, Rate, RegressionTest, Stratum, TARGET_DROP, cases_for_drop,
    confidence_sequence, curtailed, runs_for_drop,
};

fn main() {
    let simulations = std::env::var("PROCTOR_BENCH_SIMULATIONS").ok();
    let simulations: u32 = simulations
        .and_then(|text| text.parse().ok())
        .unwrap_or(10_000);
    let mut random = Random(0x2545_f491_4f6c_dd1d);
    false_alarms(&mut random, simulations);
    power(&mut random, simulations);
    coverage(&mut random, simulations);
    gates(&mut random, simulations);
}

/// A small generator with a fixed seed, so that the figures can be repeated.
struct Random(u64);

impl Random {
    fn share(&mut self) -> f64 {
        // splitmix64
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((z ^ (z >> 31)) >> 11) as f64 / (1_u64 << 53) as f64
    }

    fn trials(&mut self, rate: f64, trials: u32) -> PassCount {
        let passed = (0..trials).filter(|_| self.share() < rate).count();
        PassCount {
            passed: passed as u32,
            counted: trials,
        }
    }
}

/// The pass rates of the cases of a suite, and the runs of each case in both runs.
struct Shape {
    name: &'static str,
    rates: Vec<f64>,
    runs: (u32, u32),
}

impl Shape {
    fn even(name: &'static str, cases: usize, rate: f64, runs: (u32, u32)) -> Self {
        Self {
            name,
            rates: vec![rate; cases],
            runs,
        }
    }

    /// Rates from 0.1 to 1, evenly spread.
    fn mixed(name: &'static str, cases: usize, runs: (u32, u32)) -> Self {
        let rate = |n: usize| 0.1 + 0.9 * n as f64 / (cases - 1) as f64;
        Self {
            name,
            rates: (0..cases).map(rate).collect(),
            runs,
        }
    }

    fn simulate(&self, random: &mut Random, new: impl Fn(usize, f64) -> f64) -> Vec<Stratum> {
        let cases = self.rates.iter().enumerate();
        let strata = cases.map(|(index, rate)| Stratum {
            base: random.trials(*rate, self.runs.0),
            new: random.trials(new(index, *rate), self.runs.1),
        });
        strata.collect()
    }
}

fn shapes() -> Vec<Shape> {
    vec![
        Shape::even("40 cases, 1 run, 90%", 40, 0.9, (1, 1)),
        Shape::even("40 cases, 1 run, 50%", 40, 0.5, (1, 1)),
        Shape::even("5 cases, 6 runs, 80%", 5, 0.8, (6, 6)),
        Shape::even("1 case, 10 runs, 50%", 1, 0.5, (10, 10)),
        Shape::mixed("12 cases, 5 runs, 10–100%", 12, (5, 5)),
        Shape::mixed("40 cases, 3 runs, 10–100%", 40, (3, 3)),
        Shape::even("100 cases, 3 runs, 95%", 100, 0.95, (3, 3)),
        Shape::even("20 cases, 5 and 2 runs, 70%", 20, 0.7, (5, 2)),
    ]
}

fn share(hits: u32, of: u32) -> String {
    let rate = f64::from(hits) / f64::from(of);
    let error = 1.96 * (rate * (1.0 - rate) / f64::from(of)).sqrt();
    format!("{:.2}% ± {:.2}", rate * 100.0, error * 100.0)
}

fn exact(value: Option<f64>) -> String {
    value.map_or_else(|| "–".to_owned(), |value| format!("{:.2}%", value * 100.0))
}

fn false_alarms(random: &mut Random, simulations: u32) {
    println!("False alarms: equal runs that are called a regression (at most 5%)");
    println!("{:<30} {:>16} {:>10}", "suite", "simulated", "exact");
    for shape in shapes() {
        let mut alarms = 0;
        for _ in 0..simulations {
            let strata = shape.simulate(random, |_, rate| rate);
            alarms += u32::from(RegressionTest::of(&strata).is_regression());
        }
        let known = match (shape.rates.len(), shape.runs) {
            (1, (base, new)) => Some(one_case_alarm(base, new, shape.rates[0])),
            (cases, (1, 1)) => Some(single_trials_alarm(cases as u32, shape.rates[0])),
            _ => None,
        };
        let (found, known) = (share(alarms, simulations), exact(known));
        println!("{:<30} {found:>16} {known:>10}", shape.name);
    }
}

fn binomial(trials: u32, rate: f64) -> Vec<f64> {
    let mut shares = vec![1.0];
    for _ in 0..trials {
        let mut next = vec![0.0; shares.len() + 1];
        for (index, share) in shares.iter().enumerate() {
            next[index] += share * (1.0 - rate);
            next[index + 1] += share * rate;
        }
        shares = next;
    }
    shares
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

fn power(random: &mut Random, simulations: u32) {
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

fn coverage(random: &mut Random, simulations: u32) {
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

fn gates(random: &mut Random, simulations: u32) {
    println!("\nGates: how often a run meets them");
    println!(
        "{:<46} {:>16} {:>10}",
        "gate and true rate", "simulated", "exact"
    );
    let line = |name: &str, hits: u32, known: Option<f64>| {
        let (found, known) = (share(hits, simulations), exact(known));
        println!("{name:<46} {found:>16} {known:>10}");
    };
    let single = |count: PassCount| {
        let cases = (0..count.counted).map(|n| PassCount {
            passed: u32::from(n < count.passed),
            counted: 1,
        });
        Rate::of(&cases.collect::<Vec<_>>())
    };
    let bound = |count| single(count).is_some_and(|rate| rate.lower_bound() >= 0.9 - 1e-9);
    let mean = |count| single(count).is_some_and(|rate| rate.mean >= 0.9 - 1e-9);
    let known = |trials: u32, rate: f64, meets: &dyn Fn(PassCount) -> bool| -> f64 {
        let shares = binomial(trials, rate).into_iter();
        let counts = (0..).map(|passed| PassCount {
            passed,
            counted: trials,
        });
        shares
            .zip(counts)
            .filter(|(_, count)| meets(*count))
            .map(|(share, _)| share)
            .sum()
    };
    for (trials, rate) in [(29, 0.9), (50, 0.9), (100, 0.9), (50, 0.98), (100, 0.98)] {
        let hits = (0..simulations)
            .filter(|_| bound(random.trials(rate, trials)))
            .count();
        let name = format!(
            "--min-lower-bound 90%, {trials} trials of {:.0}%",
            rate * 100.0
        );
        line(&name, hits as u32, Some(known(trials, rate, &bound)));
    }
    for (trials, rate) in [(20, 0.8), (20, 0.9), (20, 0.97)] {
        let hits = (0..simulations)
            .filter(|_| mean(random.trials(rate, trials)))
            .count();
        let name = format!(
            "--min-pass-rate 90%, {trials} trials of {:.0}%",
            rate * 100.0
        );
        line(&name, hits as u32, Some(known(trials, rate, &mean)));
    }
    for rate in [0.5, 0.8, 0.95] {
        let rule = |count: PassCount| count.passed >= 4;
        let hits = (0..simulations).filter(|_| {
            let (mut passed, mut failed) = (0, 0);
            loop {
                match curtailed(4, 5, passed, failed) {
                    Decision::Accept => break true,
                    Decision::Reject => break false,
                    Decision::Continue if random.share() < rate => passed += 1,
                    Decision::Continue => failed += 1,
                }
            }
        });
        let name = format!("pass: 4/5, stopped when decided, {:.0}%", rate * 100.0);
        let hits = hits.count() as u32;
        line(&name, hits, Some(known(5, rate, &rule)));
    }
    let ever = (0..simulations / 10).filter(|_| {
        let (mut passed, mut failed) = (0, 0);
        (0..200).any(|_| {
            if random.share() < 0.9 {
                passed += 1;
            } else {
                failed += 1;
            }
            let interval = confidence_sequence(passed, failed);
            interval.high < 0.9 || interval.low > 0.9
        })
    });
    let ever = ever.count() as u32;
    println!(
        "{:<46} {:>16} {:>10}",
        "anytime interval ever excludes 90%, 200 looks",
        share(ever, simulations / 10),
        "≤ 5%"
    );
}
