//! Quantiles of durations and token counts.

/// The linear (type 7) quantile of sorted values; `None` if there are none.
pub fn quantile(sorted: &[f64], share: f64) -> Option<f64> {
    let last = sorted.len().checked_sub(1)?;
    #[expect(clippy::cast_precision_loss, reason = "far fewer values than 2^52")]
    let position = share.clamp(0.0, 1.0) * last as f64;
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "between 0 and the last index"
    )]
    let low = position.floor() as usize;
    let high = (low + 1).min(last);
    let part = position - position.floor();
    Some(sorted[low] + (sorted[high] - sorted[low]) * part)
}
