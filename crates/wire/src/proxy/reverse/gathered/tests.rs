use http_body_util::combinators::UnsyncBoxBody;
use tokio::sync::mpsc;
use tokio::time::timeout;

use super::*;

/// A body of a known length whose parts are sent by a test.
struct SentBody {
    parts: mpsc::UnboundedReceiver<Result<&'static str, ConnectionAbort>>,
    length: Option<u64>,
}

impl Body for SentBody {
    type Data = Bytes;
    type Error = ConnectionAbort;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, ConnectionAbort>>> {
        let part = ready!(self.parts.poll_recv(context));
        Poll::Ready(part.map(|part| {
            let part = part?;
            self.length = self.length.map(|length| length - part.len() as u64);
            Ok(Frame::data(part.into()))
        }))
    }

    fn is_end_stream(&self) -> bool {
        self.length == Some(0)
    }

    fn size_hint(&self) -> SizeHint {
        self.length
            .map_or_else(SizeHint::default, SizeHint::with_exact)
    }
}

type Sender = mpsc::UnboundedSender<Result<&'static str, ConnectionAbort>>;

fn response(length: Option<u64>) -> (Sender, http::Response<SentBody>) {
    let (send, parts) = mpsc::unbounded_channel();
    (send, http::Response::new(SentBody { parts, length }))
}

async fn part(body: &mut UnsyncBoxBody<Bytes, ConnectionAbort>) -> Option<Result<Bytes, String>> {
    let frame = body.frame().await?;
    Some(
        frame
            .map_err(|error| error.0)
            .map(|frame| frame.into_data().unwrap()),
    )
}

#[tokio::test]
async fn a_short_body_arrives_with_its_head() {
    let gatherer = ResponseGatherer::default();
    let (send, response) = response(Some(10));
    send.send(Ok("01234")).unwrap();
    let mut gathering = pin!(gatherer.gather(response));
    let early = std::future::poll_fn(|context| Poll::Ready(gathering.as_mut().poll(context))).await;
    assert!(early.is_pending(), "half of the body is missing");
    send.send(Ok("56789")).unwrap();
    let mut body = gathering.await.into_body();
    assert_eq!(body.size_hint().exact(), Some(10));
    assert!(!body.is_end_stream());
    assert_eq!(part(&mut body).await, Some(Ok("01234".into())));
    assert_eq!(body.size_hint().exact(), Some(5));
    assert_eq!(part(&mut body).await, Some(Ok("56789".into())));
    assert!(body.is_end_stream());
    assert_eq!(part(&mut body).await, None);
}

#[tokio::test]
async fn a_late_body_follows_its_head() {
    let gatherer = ResponseGatherer::default();
    // The second one finds a clock that has stopped, or a running one.
    for _ in 0..2 {
        let (send, response) = response(Some(10));
        send.send(Ok("01234")).unwrap();
        let gathering = timeout(Duration::from_mins(1), gatherer.gather(response));
        let mut body = gathering.await.unwrap().into_body();
        assert_eq!(body.size_hint().exact(), Some(10));
        assert_eq!(part(&mut body).await, Some(Ok("01234".into())));
        send.send(Ok("56789")).unwrap();
        assert_eq!(part(&mut body).await, Some(Ok("56789".into())));
        assert!(body.is_end_stream());
    }
    let until = tokio::time::Instant::now() + Duration::from_mins(1);
    while *gatherer.0.lock() != ClockState::Stopped {
        assert!(tokio::time::Instant::now() < until, "the clock still runs");
        tokio::time::sleep(TICK).await;
    }
}

#[tokio::test]
async fn a_body_that_breaks_is_forwarded_up_to_there() {
    let gatherer = ResponseGatherer::default();
    let (send, response) = response(Some(10));
    send.send(Ok("01234")).unwrap();
    send.send(Err(ConnectionAbort("gone".to_owned()))).unwrap();
    let mut body = gatherer.gather(response).await.into_body();
    assert_eq!(part(&mut body).await, Some(Ok("01234".into())));
    assert_eq!(part(&mut body).await, Some(Err("gone".to_owned())));
    assert_eq!(part(&mut body).await, None);
}

#[tokio::test]
async fn a_head_does_not_wait_for_streams_and_long_bodies() {
    let gatherer = ResponseGatherer::default();
    for length in [None, Some(0), Some(LIMIT + 1)] {
        let (_send, response) = response(length);
        let mut gathering = pin!(gatherer.gather(response));
        let first = std::future::poll_fn(|context| Poll::Ready(gathering.as_mut().poll(context)));
        assert!(first.await.is_ready(), "{length:?}");
    }
    assert!(*gatherer.0.lock() == ClockState::Stopped);
}
