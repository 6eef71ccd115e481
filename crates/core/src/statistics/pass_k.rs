//! pass@k and pass^k: how often at least one, or all, of k trials pass.

/// The chance that at least one of `k` trials passes, estimated from `passed` of `trials`; `None` if
/// there are fewer than `k` trials.
pub fn pass_at(passed: u32, trials: u32, k: u32) -> Option<f64> {
    all_of(trials.checked_sub(passed)?, trials, k).map(|none| 1.0 - none)
}

/// The chance that all of `k` trials pass, estimated from `passed` of `trials`; `None` if there are
/// fewer than `k` trials.
pub fn pass_hat(passed: u32, trials: u32, k: u32) -> Option<f64> {
    all_of(passed, trials, k)
}

/// pass^k averaged over cases, each with its passes and trials; `None` if there is no case, or a case has
/// fewer than `k` trials.
pub fn mean_pass_hat(cases: impl IntoIterator<Item = (u32, u32)>, k: u32) -> Option<f64> {
    let (mut sum, mut count) = (0.0, 0.0);
    for (passed, trials) in cases {
        sum += pass_hat(passed, trials, k)?;
        count += 1.0;
    }
    (count > 0.0).then(|| sum / count)
}

/// `C(chosen, k) / C(trials, k)`, as a product so that large numbers don't overflow.
fn all_of(chosen: u32, trials: u32, k: u32) -> Option<f64> {
    if k == 0 || k > trials || chosen > trials {
        return None;
    }
    if k > chosen {
        return Some(0.0);
    }
    let factor = |i: u32| f64::from(chosen - i) / f64::from(trials - i);
    Some((0..k).map(factor).product())
}
