//! The gate of `--stop-when-decided`: how often it is wrong, and how many trials it saves.

use proctor_core::statistics::{Decision, decide_rate};

use crate::simulation::{Random, share};

/// The bound of the gate.
const LEAST: f64 = 0.9;

/// A suite with a known mean pass rate, and the most trials of each case.
struct Suite {
    name: &'static str,
    rates: Vec<f64>,
    rounds: u32,
}

/// Half of the cases with each rate.
fn suite(name: &'static str, cases: usize, rates: [f64; 2], rounds: u32) -> Suite {
    let rates = rates.into_iter().cycle().take(cases).collect();
    Suite {
        name,
        rates,
        rounds,
    }
}

/// `--min-lower-bound 90% --stop-when-decided`. At a true rate of 90 %, each answer is wrong: both together in at most 5 %.
pub(crate) fn gate(random: &mut Random, simulations: u32) {
    println!(
        "--min-lower-bound 90% --stop-when-decided: answers, and the share of the trials that ran"
    );
    println!(
        "{:<42} {:>15} {:>15} {:>13} {:>8}",
        "suite and true rate", "met", "missed", "inconclusive", "trials"
    );
    for suite in [
        suite("1 case × 200 trials, 90%", 1, [0.9; 2], 200),
        suite("20 cases × 20 trials, 90%", 20, [0.9; 2], 20),
        suite("20 cases × 20 trials, 80% and 100%", 20, [0.8, 1.0], 20),
        suite("100 cases × 10 trials, 90%", 100, [0.9; 2], 10),
        suite("20 cases × 20 trials, 88%", 20, [0.88; 2], 20),
        suite("20 cases × 20 trials, 80%", 20, [0.8; 2], 20),
        suite("20 cases × 20 trials, 60%", 20, [0.6; 2], 20),
        suite("20 cases × 20 trials, 95%", 20, [0.95; 2], 20),
        suite("20 cases × 20 trials, 98%", 20, [0.98; 2], 20),
        suite("20 cases × 20 trials, 100%", 20, [1.0; 2], 20),
    ] {
        line(&suite, random, simulations);
    }
}

fn line(suite: &Suite, random: &mut Random, simulations: u32) {
    let (mut met, mut missed, mut rounds) = (0, 0, 0_u64);
    for _ in 0..simulations {
        let outcomes = (0..suite.rounds).map(|_| {
            let passed = suite.rates.iter().filter(|rate| random.share() < **rate);
            let passed = passed.count() as u32;
            (passed, suite.rates.len() as u32 - passed)
        });
        let answer = decide_rate(outcomes, LEAST);
        rounds += u64::from(answer.rounds);
        match answer.decision {
            Decision::Accept => met += 1,
            Decision::Reject => missed += 1,
            Decision::Continue => {}
        }
    }
    let ran = rounds as f64 / f64::from(simulations) / f64::from(suite.rounds) * 100.0;
    println!(
        "{:<42} {:>15} {:>15} {:>13} {:>8}",
        suite.name,
        share(met, simulations),
        share(missed, simulations),
        format!(
            "{:.2}%",
            f64::from(simulations - met - missed) / f64::from(simulations) * 100.0
        ),
        format!("{ran:.0}%")
    );
}
