//! How a run is told to stop, and its trials with it.

use tokio::sync::watch;

/// Whether a run goes on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum RunStop {
    /// It does.
    Go,
    /// It ends: agents stop, and what has to be cleaned up is.
    Soon {
        /// Why.
        reason: String,
    },
    /// It ends at once.
    Now,
}

/// Waits until a run ends, and says why.
pub(crate) async fn soon(stop: &mut watch::Receiver<RunStop>) -> String {
    wait(stop, |stop| match stop {
        RunStop::Go => None,
        RunStop::Soon { reason } => Some(reason.clone()),
        RunStop::Now => Some("interrupted".to_owned()),
    })
    .await
}

/// Waits until a run ends at once.
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
            // Whoever could stop the run is gone.
            std::future::pending::<()>().await;
        }
    }
}
