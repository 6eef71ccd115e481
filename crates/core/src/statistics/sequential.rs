//! Stopping early without fooling oneself: curtailed rules, the sequential probability ratio test, and an
//! interval that stays valid however often one looks.

use statrs::function::beta::ln_beta;

use super::interval::Interval;

/// The state of a sequential test.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Decision {
    /// The rate is good enough.
    Accept,
    /// The rate is too low.
    Reject,
    /// More trials are needed.
    Continue,
}

/// Whether "at least `needed` of `planned` pass" is decided after some trials.
pub fn curtailed(needed: u32, planned: u32, passed: u32, not_passed: u32) -> Decision {
    let left = planned.saturating_sub(passed + not_passed);
    if passed >= needed {
        Decision::Accept
    } else if passed + left < needed {
        Decision::Reject
    } else {
        Decision::Continue
    }
}

/// Wald's sequential probability ratio test of a good rate against a bad one.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Sprt {
    pub good: f64,
    pub bad: f64,
    /// The chance of rejecting a good rate.
    pub alpha: f64,
    /// The chance of accepting a bad rate.
    pub beta: f64,
}

impl Sprt {
    /// The logarithm of how much better a bad rate explains the trials.
    pub fn log_ratio(&self, passed: u32, not_passed: u32) -> f64 {
        f64::from(passed) * (self.bad / self.good).ln()
            + f64::from(not_passed) * ((1.0 - self.bad) / (1.0 - self.good)).ln()
    }

    /// The bounds of the log ratio at which the test accepts and rejects.
    pub fn bounds(&self) -> (f64, f64) {
        let accept = (self.beta / (1.0 - self.alpha)).ln();
        let reject = ((1.0 - self.beta) / self.alpha).ln();
        (accept, reject)
    }

    pub fn decide(&self, passed: u32, not_passed: u32) -> Decision {
        let ratio = self.log_ratio(passed, not_passed);
        let (accept, reject) = self.bounds();
        if ratio >= reject {
            Decision::Reject
        } else if ratio <= accept {
            Decision::Accept
        } else {
            Decision::Continue
        }
    }
}

/// A 95 % interval of a rate that is valid after any number of looks, from a uniform mixture of all rates.
pub fn confidence_sequence(passed: u32, not_passed: u32) -> Interval {
    let (s, f) = (f64::from(passed), f64::from(not_passed));
    let against = evidence_against(s, f);
    let best = if s + f > 0.0 { s / (s + f) } else { 0.5 };
    Interval {
        low: if passed == 0 {
            0.0
        } else {
            root(&against, best, 0.0)
        },
        high: if not_passed == 0 {
            1.0
        } else {
            root(&against, best, 1.0)
        },
    }
}

/// How strongly trials speak against a rate; above zero, too strongly for a 95 % interval to hold it.
fn evidence_against(passed: f64, not_passed: f64) -> impl Fn(f64) -> f64 {
    let mixture = ln_beta(passed + 1.0, not_passed + 1.0);
    let limit = 20.0_f64.ln();
    let part = |count: f64, share: f64| {
        if count > 0.0 { count * share.ln() } else { 0.0 }
    };
    move |p| mixture - part(passed, p) - part(not_passed, 1.0 - p) - limit
}

/// An answer about a rate from complete rounds, valid however often one looks.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct AnytimeAnswer {
    pub decision: Decision,
    /// The interval after the round that decided, else after the last round.
    pub interval: Interval,
    /// The rounds that the answer is based on.
    pub rounds: u32,
    pub passed: u32,
    pub counted: u32,
}

/// Whether the mean pass rate of all cases is at least `least`, decided by the first round after which the
/// anytime-valid interval lies on one side of it.
///
/// A round is one trial of every case, as how many passed and did not pass. Cases may have different rates: a
/// round varies at most as much as trials of the mean rate, so the interval stays valid. After a part of a round
/// it would not: the cases that run first may be the easy ones.
pub fn decide_rate(rounds: impl IntoIterator<Item = (u32, u32)>, least: f64) -> AnytimeAnswer {
    let mut answer = AnytimeAnswer {
        decision: Decision::Continue,
        interval: confidence_sequence(0, 0),
        rounds: 0,
        passed: 0,
        counted: 0,
    };
    for (passed, not_passed) in rounds {
        answer.rounds += 1;
        answer.passed += passed;
        answer.counted += passed + not_passed;
        let (s, f) = (
            f64::from(answer.passed),
            f64::from(answer.counted - answer.passed),
        );
        // The same as comparing `least` with the interval, without computing the interval.
        if evidence_against(s, f)(least) > 0.0 {
            answer.decision = if s > least * (s + f) {
                Decision::Accept
            } else {
                Decision::Reject
            };
            break;
        }
    }
    answer.interval = confidence_sequence(answer.passed, answer.counted - answer.passed);
    answer
}

/// Where a function crosses zero between a point below and a point above it, by bisection.
fn root(function: &impl Fn(f64) -> f64, mut below: f64, mut above: f64) -> f64 {
    for _ in 0..200 {
        let middle = f64::midpoint(below, above);
        if function(middle) > 0.0 {
            above = middle;
        } else {
            below = middle;
        }
    }
    f64::midpoint(below, above)
}
