//! The signal that stops a run and its trials.

use tokio::sync::watch;

/// Whether and how a run has to stop.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum RunStop {
    /// There is no reason to stop.
    Go,
    /// Agents stop, and the cleanup still runs.
    Soon { reason: String },
    /// The run ends at once, without cleanup.
    Now,
}

/// Waits until the run has to stop, and returns the reason.
pub(crate) async fn soon(stop: &mut watch::Receiver<RunStop>) -> String {
    wait(stop, |stop| match stop {
        RunStop::Go => None,
        RunStop::Soon { reason } => Some(reason.clone()),
        RunStop::Now => Some("interrupted".to_owned()),
    })
    .await
}

/// Waits until the run has to end at once.
pub(crate) async fn now(stop: &mut watch::Receiver<RunStop>) {
    wait(stop, |stop| (*stop == RunStop::Now).then_some(())).await;
}

async fn wait<T>(
    stop: &mut watch::Receiver<RunStop>,
    mut meant: impl FnMut(&RunStop) -> Option<T>,
) -> T {
    loop {
        if let Some(found) = meant(&stop.borrow_and_update()) {
            return found;
        }
        if stop.changed().await.is_err() {
            // The sender is gone, so the run can't be stopped any more.
            std::future::pending::<()>().await;
        }
    }
}
