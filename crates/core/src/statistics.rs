//! Every number about uncertainty that users see: intervals, tests, and how many runs they need.
//!
//! Main types: [`Rate`] for one run, [`RegressionTest`] for two. Other modules print these numbers and
//! never compute their own, so that the terminal, JSON and a gate always agree. Tests compare the
//! functions with reference values (`tests/statistics.json`), which scipy and statsmodels computed.

mod agreement;
mod difference;
mod exact;
mod interval;
mod pass_k;
mod power;
mod quantile;
mod rate;
mod regression;
mod sequential;
#[cfg(test)]
mod tests;

pub use self::agreement::{Agreement, Kappa};
pub use self::difference::{Difference, DifferenceMethod};
pub use self::exact::{ExactTest, Stratum, fisher, holm, stratified};
pub use self::interval::{
    Interval, clopper_pearson, clopper_pearson_lower, clopper_pearson_upper, failures_allowed,
    wilson, wilson_lower,
};
pub use self::pass_k::{mean_pass_hat, pass_at, pass_hat};
pub use self::power::{
    POWER, TARGET_DROP, cases_for_drop, more_for_lower_bound, runs_for_drop, units_for_lower_bound,
};
pub use self::quantile::quantile;
pub use self::rate::{PassCount, Rate};
pub use self::regression::{ALPHA, CaseTest, RegressionTest};
pub use self::sequential::{
    AnytimeAnswer, Decision, Sprt, confidence_sequence, curtailed, decide_rate,
};
