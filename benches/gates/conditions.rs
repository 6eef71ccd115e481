//! Each gate: how often a run with a known pass rate meets it.

use proctor_core::statistics::{
    Decision, PassCount, Rate, confidence_sequence, curtailed, mean_pass_hat,
};

use crate::simulation::{Random, Shape, binomial, exact, share};

fn head(title: &str) {
    println!("\n{title}");
    println!(
        "{:<52} {:>16} {:>10}",
        "gate and true rate", "simulated", "exact"
    );
}

fn line(name: &str, hits: u32, simulations: u32, known: Option<f64>) {
    let (found, known) = (share(hits, simulations), exact(known));
    println!("{name:<52} {found:>16} {known:>10}");
}

fn percent(rate: f64) -> String {
    format!("{:.0}%", rate * 100.0)
}

/// The chance that the passes of independent trials meet a condition.
fn chance(trials: u32, rate: f64, meets: &dyn Fn(u32) -> bool) -> f64 {
    let shares = binomial(trials, rate).into_iter();
    let met = (0..).zip(shares).filter(|(passed, _)| meets(*passed));
    met.map(|(_, share)| share).sum()
}

fn single(count: PassCount) -> Option<Rate> {
    let cases = (0..count.counted).map(|n| PassCount {
        passed: u32::from(n < count.passed),
        counted: 1,
    });
    Rate::of(&cases.collect::<Vec<_>>())
}

fn meets_bound(rate: Option<Rate>) -> bool {
    rate.is_some_and(|rate| rate.lower_bound() >= 0.9 - 1e-9)
}

fn meets_mean(rate: Option<Rate>) -> bool {
    rate.is_some_and(|rate| rate.mean >= 0.9 - 1e-9)
}

/// `--min-pass-rate` and `--min-lower-bound`. A run whose true rate is 90 % may meet the bound in 5 % of cases.
pub(crate) fn pass_rates(random: &mut Random, simulations: u32) {
    head("Gates on the pass rate: how often a run meets them");
    for (trials, rate) in [(29, 0.9), (50, 0.9), (100, 0.9), (50, 0.98), (100, 0.98)] {
        let hits = (0..simulations).filter(|_| meets_bound(single(random.trials(rate, trials))));
        let name = format!(
            "--min-lower-bound 90%, {trials} trials of {}",
            percent(rate)
        );
        let hits = hits.count() as u32;
        let meets = |passed| {
            meets_bound(single(PassCount {
                passed,
                counted: trials,
            }))
        };
        line(&name, hits, simulations, Some(chance(trials, rate, &meets)));
    }
    for (cases, runs, spread, mean) in [
        (20, 5, 0.0, 0.9),
        (20, 5, 0.1, 0.9),
        (50, 3, 0.1, 0.9),
        (50, 3, 0.0, 0.98),
        (50, 3, 0.02, 0.98),
    ] {
        // Half of the cases pass more often than the mean, the other half less often.
        let rates = (0..cases).map(|n| {
            if n % 2 == 0 {
                mean - spread
            } else {
                mean + spread
            }
        });
        let shape = Shape {
            name: "",
            rates: rates.collect(),
            runs: (runs, 1),
        };
        let hits = (0..simulations).filter(|_| {
            let strata = shape.simulate(random, |_, rate| rate);
            let counts: Vec<PassCount> = strata.iter().map(|stratum| stratum.base).collect();
            meets_bound(Rate::of(&counts))
        });
        let hits = hits.count() as u32;
        let name = format!(
            "--min-lower-bound 90%, {cases} × {runs} trials of {}–{}",
            percent(mean - spread),
            percent(mean + spread)
        );
        line(&name, hits, simulations, None);
    }
    for (trials, rate) in [(20, 0.8), (20, 0.9), (20, 0.97)] {
        let hits = (0..simulations).filter(|_| meets_mean(single(random.trials(rate, trials))));
        let hits = hits.count() as u32;
        let name = format!("--min-pass-rate 90%, {trials} trials of {}", percent(rate));
        let meets = |passed| {
            meets_mean(single(PassCount {
                passed,
                counted: trials,
            }))
        };
        line(&name, hits, simulations, Some(chance(trials, rate, &meets)));
    }
}

/// `--pass-hat`, `--max-errors`, pass rules and the anytime interval.
pub(crate) fn others(random: &mut Random, simulations: u32) {
    head("Other gates: how often a run meets them");
    for (runs, rate) in [
        (3, 0.8),
        (3, 0.93),
        (3, 0.98),
        (5, 0.8),
        (5, 0.93),
        (5, 0.98),
    ] {
        let hits = (0..simulations).filter(|_| {
            let counts = (0..10).map(|_| random.trials(rate, runs));
            let counts = counts.map(|count| (count.passed, count.counted));
            mean_pass_hat(counts.collect::<Vec<_>>(), 3).is_some_and(|found| found >= 0.8 - 1e-9)
        });
        let hits = hits.count() as u32;
        let name = format!("--pass-hat 3=80%, 10 × {runs} trials of {}", percent(rate));
        line(&name, hits, simulations, Some(pass_hat_chance(runs, rate)));
    }
    for (trials, rate) in [(100, 0.005), (100, 0.02), (100, 0.05)] {
        let hits = (0..simulations).filter(|_| random.trials(rate, trials).passed <= 1);
        let hits = hits.count() as u32;
        let name = format!(
            "--max-errors 1, {trials} trials of which {:.1}% err",
            rate * 100.0
        );
        let known = chance(trials, rate, &|errors| errors <= 1);
        line(&name, hits, simulations, Some(known));
    }
    for rate in [0.5, 0.8, 0.95] {
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
        let name = format!("pass: 4/5, stopped when decided, {}", percent(rate));
        let hits = hits.count() as u32;
        let known = chance(5, rate, &|passed| passed >= 4);
        line(&name, hits, simulations, Some(known));
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
    let (name, ever) = (
        "anytime interval ever excludes 90%, 200 looks",
        ever.count(),
    );
    let found = share(ever as u32, simulations / 10);
    println!("{name:<52} {found:>16} {:>10}", "≤ 5%");
}

/// The exact chance that pass^3 of ten cases is at least 80 %: the number of triples that pass, over all cases.
fn pass_hat_chance(runs: u32, rate: f64) -> f64 {
    let triples = |n: u32| (n * n.saturating_sub(1) * n.saturating_sub(2) / 6) as usize;
    let most = triples(runs);
    let mut sums = vec![1.0];
    for _ in 0..10 {
        let mut next = vec![0.0; sums.len() + most];
        for (sum, share) in sums.iter().enumerate() {
            for (passed, chance) in (0..).zip(binomial(runs, rate)) {
                next[sum + triples(passed)] += share * chance;
            }
        }
        sums = next;
    }
    let needed = 10 * most * 8;
    let met = sums
        .iter()
        .enumerate()
        .filter(|(sum, _)| 10 * sum >= needed);
    met.map(|(_, share)| share).sum()
}
