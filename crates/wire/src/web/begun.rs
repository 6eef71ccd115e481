//! A request handler that always starts, even if its client disconnects at once.
//!
//! Its main type is [`HandlerTask`].

use std::future::Future;
use std::mem;
use std::pin::Pin;
use std::task::{Context, Poll};

use tokio::runtime::Handle;

use crate::worker::BoxedFuture;

/// The future of a handler. If the client disconnects before the first poll, the drop polls it
/// once, so that it runs to its first await. If the client disconnects later, the future is just
/// dropped.
pub(super) struct HandlerTask<T: Send + 'static> {
    work: BoxedFuture<'static, T>,
    has_begun: bool,
}

impl<T: Send + 'static> HandlerTask<T> {
    pub(super) fn new(work: BoxedFuture<'static, T>) -> Self {
        Self {
            work,
            has_begun: false,
        }
    }
}

impl<T: Send + 'static> Future for HandlerTask<T> {
    type Output = T;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<T> {
        self.has_begun = true;
        self.work.as_mut().poll(context)
    }
}

impl<T: Send + 'static> Drop for HandlerTask<T> {
    fn drop(&mut self) {
        if self.has_begun {
            return;
        }
        let mut work = mem::replace(&mut self.work, Box::pin(std::future::pending()));
        if let Ok(runtime) = Handle::try_current() {
            runtime.spawn(async move {
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
            HandlerTask::new(Box::pin(async move {
                count.fetch_add(1, Ordering::Relaxed);
                std::future::pending::<()>().await;
                count.fetch_add(100, Ordering::Relaxed);
            }))
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
