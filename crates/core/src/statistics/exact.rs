//! Exact conditional tests: Fisher's for one case, stratified by case for a suite, and Holm's
//! correction over cases.
//!
//! With one trial of each case, the stratified test is the exact sign test of pairs.

use super::rate::PassCount;

/// Tails of a distribution below this share are dropped. No answer depends on them, and sums over
/// thousands of cases stay fast.
const NEGLIGIBLE: f64 = 1e-60;

/// Probabilities within this factor count as equal, so that rounding does not decide a test.
const TOLERANCE: f64 = 1e-7;

/// The trials of one case in two runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stratum {
    pub base: PassCount,
    pub new: PassCount,
}

/// The p-values of an exact test.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ExactTest {
    pub two_sided: f64,
    /// One-sided: the new run passes less often.
    pub less: f64,
    /// One-sided: the new run passes more often.
    pub greater: f64,
}

impl ExactTest {
    /// Whether the difference points towards worse.
    pub fn is_worse(&self) -> bool {
        self.less < self.greater
    }
}

/// Fisher's exact test of one case.
pub fn fisher(stratum: &Stratum) -> ExactTest {
    stratified(std::slice::from_ref(stratum))
}

/// The exact conditional test over all cases: given how often each case passed in both runs together,
/// how likely are so few or so many passes in the new run?
pub fn stratified(strata: &[Stratum]) -> ExactTest {
    let mut total = Distribution::certain(0);
    let mut observed = 0;
    for stratum in strata {
        total = total.plus(&Distribution::of_new_passes(stratum));
        observed += i64::from(stratum.new.passed);
    }
    total.test(observed)
}

/// Holm's correction: p-values adjusted for the number of tests, in the order given.
pub fn holm(p_values: &[f64]) -> Vec<f64> {
    let mut order: Vec<usize> = (0..p_values.len()).collect();
    order.sort_by(|a, b| p_values[*a].total_cmp(&p_values[*b]));
    let mut adjusted = vec![1.0; p_values.len()];
    let mut so_far = 0.0_f64;
    let mut left = p_values.len();
    for index in order {
        #[expect(clippy::cast_precision_loss, reason = "far fewer tests than 2^52")]
        let factor = left as f64;
        so_far = so_far.max((p_values[index] * factor).min(1.0));
        adjusted[index] = so_far;
        left -= 1;
    }
    adjusted
}

/// The probabilities of consecutive numbers of passes.
struct Distribution {
    first: i64,
    shares: Vec<f64>,
}

impl Distribution {
    fn certain(value: i64) -> Self {
        Self {
            first: value,
            shares: vec![1.0],
        }
    }

    /// The passes in the new run of a case, given the passes in both runs: hypergeometric.
    fn of_new_passes(stratum: &Stratum) -> Self {
        let base = i64::from(stratum.base.counted);
        let new = i64::from(stratum.new.counted);
        let passed = i64::from(stratum.base.passed) + i64::from(stratum.new.passed);
        let first = (passed - base).max(0);
        let last = passed.min(new);
        // Starts near the mode, so that no weight overflows and all that matter are exact.
        let mode = (passed * new / (base + new).max(1)).clamp(first, last);
        #[expect(
            clippy::cast_precision_loss,
            reason = "numbers of trials are far below 2^52"
        )]
        let ratio =
            |x: i64| ((new - x) * (passed - x)) as f64 / ((x + 1) * (base - passed + x + 1)) as f64;
        let mut below = Vec::new();
        let mut weight = 1.0;
        for x in (first..mode).rev() {
            weight /= ratio(x);
            below.push(weight);
        }
        let mut shares: Vec<f64> = below.into_iter().rev().collect();
        shares.push(1.0);
        weight = 1.0;
        for x in mode..last {
            weight *= ratio(x);
            shares.push(weight);
        }
        let sum: f64 = shares.iter().sum();
        for share in &mut shares {
            *share /= sum;
        }
        Self { first, shares }
    }

    /// The distribution of the sum with an independent number.
    fn plus(self, other: &Self) -> Self {
        let first = self.first + other.first;
        if let [_] = other.shares[..] {
            return Self { first, ..self };
        }
        let mut shares = vec![0.0; self.shares.len() + other.shares.len() - 1];
        for (i, a) in self.shares.iter().enumerate() {
            for (j, b) in other.shares.iter().enumerate() {
                shares[i + j] += a * b;
            }
        }
        Self { first, shares }.trimmed()
    }

    fn trimmed(mut self) -> Self {
        let keeps = |share: &f64| *share >= NEGLIGIBLE;
        let last = self.shares.iter().rposition(keeps).unwrap_or_default();
        self.shares.truncate(last + 1);
        let dropped = self.shares.iter().position(keeps).unwrap_or_default();
        self.shares.drain(..dropped);
        self.first += i64::try_from(dropped).unwrap_or_default();
        self
    }

    fn test(&self, observed: i64) -> ExactTest {
        let index = usize::try_from(observed - self.first).ok();
        let share = index.and_then(|index| self.shares.get(index)).copied();
        // A dropped value is at most as likely as the threshold.
        let share = share.unwrap_or(NEGLIGIBLE);
        let sum = |keeps: &dyn Fn(i64, f64) -> bool| -> f64 {
            let all = (self.first..).zip(&self.shares);
            let kept = all.filter(|(value, share)| keeps(*value, **share));
            let sum: f64 = kept.map(|(_, share)| *share).sum();
            sum.clamp(NEGLIGIBLE, 1.0)
        };
        ExactTest {
            two_sided: sum(&|_, other| other <= share * (1.0 + TOLERANCE)),
            less: sum(&|value, _| value <= observed),
            greater: sum(&|value, _| value >= observed),
        }
    }
}
