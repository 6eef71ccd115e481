//! Runs several futures concurrently in the current task.
//!
//! Its functions are [`together`] and [`first`]. Dropping their future drops all of them.

use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::task::Poll;

/// Waits for all futures and returns their outputs in order. They are first polled in order.
pub(crate) async fn together<F: Future>(futures: impl IntoIterator<Item = F>) -> Vec<F::Output> {
    let mut waiting: Vec<Pin<Box<F>>> = futures.into_iter().map(Box::pin).collect();
    let mut done: Vec<Option<F::Output>> = waiting.iter().map(|_| None).collect();
    let all = poll_fn(|cx| {
        let mut pending = false;
        for (future, slot) in waiting.iter_mut().zip(&mut done) {
            if slot.is_some() {
                continue;
            }
            match future.as_mut().poll(cx) {
                Poll::Ready(output) => *slot = Some(output),
                Poll::Pending => pending = true,
            }
        }
        if pending {
            Poll::Pending
        } else {
            Poll::Ready(())
        }
    });
    all.await;
    done.into_iter().flatten().collect()
}

/// Waits for the first future that has an output; forever without any.
pub(crate) async fn first<F: Future>(futures: impl IntoIterator<Item = F>) -> F::Output {
    let mut waiting: Vec<Pin<Box<F>>> = futures.into_iter().map(Box::pin).collect();
    poll_fn(|cx| {
        let mut polled = waiting.iter_mut().map(|future| future.as_mut().poll(cx));
        polled.find(Poll::is_ready).unwrap_or(Poll::Pending)
    })
    .await
}

#[cfg(test)]
mod tests {
    use tokio::sync::Barrier;

    use super::*;

    #[tokio::test]
    async fn futures_run_concurrently_and_keep_their_order() {
        // The barrier opens only if all three wait at the same time.
        let barrier = Barrier::new(3);
        let answers = together(["a", "b", "c"].map(async |name| {
            barrier.wait().await;
            name
        }));
        assert_eq!(answers.await, ["a", "b", "c"]);
    }

    #[tokio::test]
    async fn no_futures_complete_at_once() {
        assert!(
            together(Vec::<std::future::Ready<()>>::new())
                .await
                .is_empty()
        );
    }
}
