//! Random runs with known pass rates, and the distributions to compare them with.

use proctor_core::statistics::{PassCount, Stratum};

/// A small generator with a fixed seed, so that the figures can be repeated.
pub(crate) struct Random(pub(crate) u64);

impl Random {
    pub(crate) fn share(&mut self) -> f64 {
        // splitmix64
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((z ^ (z >> 31)) >> 11) as f64 / (1_u64 << 53) as f64
    }

    pub(crate) fn trials(&mut self, rate: f64, trials: u32) -> PassCount {
        let passed = (0..trials).filter(|_| self.share() < rate).count();
        PassCount {
            passed: passed as u32,
            counted: trials,
        }
    }
}

/// The pass rates of the cases of a suite, and the runs of each case in both runs.
pub(crate) struct Shape {
    pub(crate) name: &'static str,
    pub(crate) rates: Vec<f64>,
    pub(crate) runs: (u32, u32),
}

impl Shape {
    pub(crate) fn even(name: &'static str, cases: usize, rate: f64, runs: (u32, u32)) -> Self {
        Self {
            name,
            rates: vec![rate; cases],
            runs,
        }
    }

    /// Rates from 0.1 to 1, evenly spread.
    pub(crate) fn mixed(name: &'static str, cases: usize, runs: (u32, u32)) -> Self {
        let rate = |n: usize| 0.1 + 0.9 * n as f64 / (cases - 1) as f64;
        Self {
            name,
            rates: (0..cases).map(rate).collect(),
            runs,
        }
    }

    pub(crate) fn simulate(
        &self,
        random: &mut Random,
        new: impl Fn(usize, f64) -> f64,
    ) -> Vec<Stratum> {
        let cases = self.rates.iter().enumerate();
        let strata = cases.map(|(index, rate)| Stratum {
            base: random.trials(*rate, self.runs.0),
            new: random.trials(new(index, *rate), self.runs.1),
        });
        strata.collect()
    }
}

pub(crate) fn shapes() -> Vec<Shape> {
    vec![
        Shape::even("40 cases, 1 run, 90%", 40, 0.9, (1, 1)),
        Shape::even("40 cases, 1 run, 50%", 40, 0.5, (1, 1)),
        Shape::even("5 cases, 6 runs, 80%", 5, 0.8, (6, 6)),
        Shape::even("1 case, 10 runs, 50%", 1, 0.5, (10, 10)),
        Shape::mixed("12 cases, 5 runs, 10–100%", 12, (5, 5)),
        Shape::mixed("40 cases, 3 runs, 10–100%", 40, (3, 3)),
        Shape::even("100 cases, 3 runs, 95%", 100, 0.95, (3, 3)),
        Shape::even("20 cases, 5 and 2 runs, 70%", 20, 0.7, (5, 2)),
        Shape::even("10 cases, 1 and 10 runs, 80%", 10, 0.8, (1, 10)),
        Shape::even("200 cases, 1 run, 97%", 200, 0.97, (1, 1)),
    ]
}

pub(crate) fn share(hits: u32, of: u32) -> String {
    let rate = f64::from(hits) / f64::from(of);
    let error = 1.96 * (rate * (1.0 - rate) / f64::from(of)).sqrt();
    format!("{:.2}% ± {:.2}", rate * 100.0, error * 100.0)
}

pub(crate) fn exact(value: Option<f64>) -> String {
    value.map_or_else(|| "–".to_owned(), |value| format!("{:.2}%", value * 100.0))
}

pub(crate) fn binomial(trials: u32, rate: f64) -> Vec<f64> {
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
