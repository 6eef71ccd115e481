//! A request handler that always starts, even if its client disconnects at once.
//!
//! Its main type is [`HandlerTask`].

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};

use tokio::runtime::Handle;

/// The future of a handler. If the client disconnects before the first poll, the drop polls it
/// once, so that it runs to its first await. If the client disconnects later, the future is just
/// dropped.
pub(super) struct HandlerTask<F>(HandlerState<F>)
where
    F: Future + Send + 'static;

enum HandlerState<F> {
    New(F),
    Going(Pin<Box<F>>),
    /// Only during a state change, and at the end.
    Gone,
}

impl<F: Future + Send + 'static> HandlerTask<F> {
    pub(super) fn new(work: F) -> Self {
        Self(HandlerState::New(work))
    }
}

// The future is moved only before its first poll, and pinned in its box from then on.
impl<F: Future + Send + 'static> Unpin for HandlerTask<F> {}

impl<F: Future + Send + 'static> Future for HandlerTask<F> {
    type Output = F::Output;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<F::Output> {
        // Only once: the state is as large as the handler, and moving it takes time.
        if matches!(self.0, HandlerState::New(_))
            && let HandlerState::New(work) = std::mem::replace(&mut self.0, HandlerState::Gone)
        {
            self.0 = HandlerState::Going(Box::pin(work));
        }
        match &mut self.0 {
            HandlerState::Going(work) => work.as_mut().poll(context),
            HandlerState::New(_) | HandlerState::Gone => Poll::Pending,
        }
    }
}

impl<F: Future + Send + 'static> Drop for HandlerTask<F> {
    fn drop(&mut self) {
        let HandlerState::New(work) = std::mem::replace(&mut self.0, HandlerState::Gone) else {
            return;
        };
        if let Ok(runtime) = Handle::try_current() {
            runtime.spawn(async move {
                let mut work = Box::pin(work);
                std::future::poll_fn(|context| {
                    // The result is not needed, because the client is gone.
                    let _ = work.as_mut().poll(context);
                    Poll::Ready(())
                })
                .await;
            });
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicU32, Ordering};

    use super::*;

    #[tokio::test]
    async fn a_handler_without_a_client_runs_to_its_first_await() {
        let count = Arc::new(AtomicU32::new(0));
        let work = || {
            let count = count.clone();
            HandlerTask::new(async move {
                count.fetch_add(1, Ordering::Relaxed);
                std::future::pending::<()>().await;
                count.fetch_add(100, Ordering::Relaxed);
            })
        };
        drop(work());
        tokio::task::yield_now().await;
        assert_eq!(count.load(Ordering::Relaxed), 1);
        let mut going = work();
        assert!(polled(&mut going).await.is_pending());
        drop(going);
        tokio::task::yield_now().await;
        assert_eq!(count.load(Ordering::Relaxed), 2);
    }

    async fn polled<F: Future + Unpin>(future: &mut F) -> Poll<F::Output> {
        std::future::poll_fn(|context| Poll::Ready(Pin::new(&mut *future).poll(context))).await
    }
}
