//! How often requests to a model are retried, and after what wait.

use std::hash::{BuildHasher, Hasher, RandomState};
use std::time::Duration;

use proctor_record::duration::brief;

use super::ModelError;

/// How often requests to a model are retried, and after what wait.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RetryPolicy {
    /// The maximum number of attempts, including the first.
    pub attempts: u32,
    /// The approximate first wait; each later one is twice as long.
    pub first_wait: Duration,
    /// The longest wait, unless the provider asks for a longer one.
    pub longest_wait: Duration,
    /// The longest wait that a provider may ask for. If it asks for more, Proctor gives up.
    pub longest_asked: Duration,
}

impl Default for RetryPolicy {
    fn default() -> Self {
        Self {
            attempts: 6,
            first_wait: Duration::from_secs(1),
            longest_wait: Duration::from_secs(30),
            longest_asked: Duration::from_mins(2),
        }
    }
}

impl RetryPolicy {
    /// The wait after an attempt, counted from one; the error itself after the last attempt.
    pub(super) fn after(&self, error: ModelError, attempt: u32) -> Result<Duration, ModelError> {
        self.with_jitter(error, attempt, random())
    }

    fn with_jitter(
        &self,
        error: ModelError,
        attempt: u32,
        jitter: f64,
    ) -> Result<Duration, ModelError> {
        let asked = match &error {
            ModelError::RateLimited { retry_after, .. }
            | ModelError::Unavailable { retry_after, .. } => *retry_after,
            ModelError::TimedOut { .. } | ModelError::Malformed { .. } => None,
            ModelError::Key { .. }
            | ModelError::ContextOverflow { .. }
            | ModelError::Rejected { .. }
            | ModelError::Script { .. }
            | ModelError::Replay { .. } => return Err(error),
        };
        if attempt >= self.attempts {
            return Err(error);
        }
        if let Some(asked) = asked
            && asked > self.longest_asked
        {
            return Err(self.with_wait_note(error, asked));
        }
        let doubled = self.first_wait.saturating_mul(1 << (attempt - 1).min(20));
        // Between half and all of it, so that requests that failed together are not retried
        // together.
        let own = doubled.min(self.longest_wait).mul_f64(0.5 + jitter / 2.0);
        Ok(match asked {
            Some(asked) => asked.mul_f64(1.0 + jitter / 10.0).max(own),
            None => own,
        })
    }

    fn with_wait_note(&self, mut error: ModelError, asked: Duration) -> ModelError {
        if let ModelError::RateLimited { detail, .. } | ModelError::Unavailable { detail, .. } =
            &mut error
        {
            let (asked, limit) = (brief(asked), brief(self.longest_asked));
            detail.push_str(&format!(
                " (asked to wait {asked}; the maximum wait is {limit})"
            ));
        }
        error
    }
}

/// A random number from 0 to 1.
fn random() -> f64 {
    let bits = RandomState::new().build_hasher().finish();
    f64::from(u32::try_from(bits >> 32).unwrap_or(0)) / f64::from(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn limited(retry_after: Option<u64>) -> ModelError {
        ModelError::RateLimited {
            retry_after: retry_after.map(Duration::from_secs),
            detail: "slow down".to_owned(),
        }
    }

    #[test]
    fn waits_double_up_to_a_limit_and_vary() {
        let patience = RetryPolicy {
            attempts: 20,
            ..RetryPolicy::default()
        };
        let wait = |attempt, jitter| {
            patience
                .with_jitter(limited(None), attempt, jitter)
                .unwrap()
        };
        for (attempt, least, most) in [
            (1, 500, 1_000),
            (2, 1_000, 2_000),
            (5, 8_000, 16_000),
            (19, 15_000, 30_000),
        ] {
            assert_eq!(wait(attempt, 0.0), Duration::from_millis(least));
            assert_eq!(wait(attempt, 1.0), Duration::from_millis(most));
        }
        let varied = (0..20).map(|_| random().to_bits());
        assert!(varied.collect::<std::collections::HashSet<_>>().len() > 1);
    }

    #[test]
    fn retry_after_is_respected() {
        let patience = RetryPolicy::default();
        for jitter in [0.0, 0.5, 1.0] {
            let wait = patience.with_jitter(limited(Some(60)), 1, jitter).unwrap();
            assert!(wait >= Duration::from_mins(1) && wait <= Duration::from_secs(66));
        }
        // No wait at all would be a storm.
        assert!(patience.with_jitter(limited(Some(0)), 1, 0.0).unwrap() > Duration::ZERO);
        let given_up = patience
            .with_jitter(limited(Some(3600)), 1, 0.0)
            .unwrap_err();
        assert_eq!(
            given_up.to_string(),
            "rate limited by the provider: slow down (asked to wait 1h; the maximum wait is 2m)"
        );
    }

    #[test]
    fn only_temporary_errors_are_retried() {
        let detail = || "no".to_owned();
        let last = RetryPolicy {
            attempts: 1,
            ..RetryPolicy::default()
        };
        let transient = [
            limited(None),
            ModelError::Unavailable {
                retry_after: None,
                is_overload: false,
                detail: detail(),
            },
            ModelError::TimedOut {
                after: Duration::ZERO,
            },
            ModelError::Malformed { detail: detail() },
        ];
        for error in transient {
            assert!(
                RetryPolicy::default().after(error.clone(), 1).is_ok(),
                "{error:?}"
            );
            assert!(last.after(error.clone(), 1).is_err(), "{error:?}");
        }
        let lasting = [
            ModelError::Key { detail: detail() },
            ModelError::ContextOverflow { detail: detail() },
            ModelError::Rejected { detail: detail() },
        ];
        for error in lasting {
            assert!(
                RetryPolicy::default().after(error.clone(), 1).is_err(),
                "{error:?}"
            );
        }
    }
}
