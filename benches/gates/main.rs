//! How often the regression rule and the gates are wrong, and how often they find what they should.
//!
//! Simulates runs with known pass rates, and prints each share beside its exact value where there is one.
#![expect(clippy::print_stdout, reason = "the figures are the result")]
#![expect(
    clippy::cast_precision_loss,
    clippy::cast_possible_truncation,
    reason = "numbers of trials are small"
)]

mod anytime;
mod conditions;
mod regression;
mod simulation;

use crate::simulation::Random;

/// So that the figures can be repeated.
const SEED: u64 = 0x2545_f491_4f6c_dd1d;

fn main() {
    let simulations = std::env::var("PROCTOR_BENCH_SIMULATIONS").ok();
    let simulations: u32 = simulations
        .and_then(|text| text.parse().ok())
        .unwrap_or(10_000);
    // With a generator of its own, it can be run alone: `cargo bench --bench gates -- anytime`.
    anytime::gate(&mut Random(SEED), simulations);
    if std::env::args().any(|word| word == "anytime") {
        return;
    }
    println!();
    let mut random = Random(SEED);
    regression::false_alarms(&mut random, simulations);
    regression::power(&mut random, simulations);
    regression::coverage(&mut random, simulations);
    conditions::pass_rates(&mut random, simulations);
    conditions::others(&mut random, simulations);
}
