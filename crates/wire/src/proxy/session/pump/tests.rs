use std::time::Instant;

use proctor_record::event::{Actor, EventKind, RECORD_VERSION, RunStarted, TrialStarted, WireKind};
use proctor_record::record::{RunWriter, TrialWriter};
use proctor_record::redact::Redactor;
use proptest::prelude::*;

use super::*;
use crate::recorder::Recorder;

fn trial(folder: &std::path::Path) -> (RunWriter, TrialWriter) {
    let run = RunWriter::create(
        folder,
        Redactor::default(),
        RunStarted {
            record: RECORD_VERSION,
            proctor: String::new(),
            started: String::new(),
            name: String::new(),
            command: Vec::new(),
            context: None,
        },
    );
    let run = run.expect("a run starts");
    let started = TrialStarted {
        case: "pump".to_owned(),
        agent: None,
        repeat: 1,
        attempt: 1,
    };
    let trial = run.trial(0, "pump", started).expect("a trial starts");
    (run, trial)
}

/// Returns the forwarded bytes, and the lines in the record.
async fn pumped(chunks: Vec<Vec<u8>>, width: usize) -> (Vec<u8>, Vec<Vec<u8>>) {
    let folder = tempfile::tempdir().expect("a folder");
    let (_run, trial) = trial(folder.path());
    let recorder = Recorder::new(trial, Instant::now());
    let tap = recorder.open("s", Actor::Agent, WireKind::Stdio, "s");
    let (mut client, from) = tokio::io::duplex(width);
    let (to, mut server) = tokio::io::duplex(width);
    let sending = tokio::spawn(async move {
        for chunk in chunks {
            client.write_all(&chunk).await.expect("it is taken");
        }
    });
    let mut pump = Pump::new(from, to, &tap, Direction::ToClient);
    let mut out = Vec::new();
    let reading = server.read_to_end(&mut out);
    let (dry, read) = tokio::join!(pump.run(), reading);
    read.expect("all is read");
    assert_eq!(dry, PumpEnd::Ended);
    sending.await.expect("all is sent");
    let trial = recorder.take_trial().expect("the trial");
    let written = trial.written();
    let blobs = written.blobs();
    let events = written.open().expect("events");
    let lines = events.filter_map(|event| match event.expect("an event").event {
        EventKind::Frame(frame) => {
            let bytes = blobs.body_bytes(&frame.body).expect("a body");
            Some(bytes.expect("its bytes").into_owned())
        }
        _ => None,
    });
    (out, lines.collect())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]
    #[test]
    fn bytes_pass_unchanged_and_every_line_is_recorded(
        chunks in prop::collection::vec(
            prop::collection::vec(prop_oneof![5 => any::<u8>(), 1 => Just(b'\n')], 0..200),
            0..8,
        ),
        width in 1_usize..300,
    ) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
        let (out, lines) = runtime.block_on(pumped(chunks.clone(), width));
        let text = chunks.concat();
        let mut expected: Vec<&[u8]> = text.split(|byte| *byte == b'\n').collect();
        if expected.last().is_some_and(|line| line.is_empty()) {
            expected.pop();
        }
        prop_assert_eq!(lines, expected);
        prop_assert_eq!(out, text);
    }
}

#[tokio::test]
async fn output_without_a_reader_is_still_recorded() {
    let recorder = Recorder::nothing();
    let tap = recorder.open("s", Actor::Agent, WireKind::Stdio, "s");
    let (mut server, from) = tokio::io::duplex(100);
    let (to, client) = tokio::io::duplex(100);
    drop(client);
    let mut pump = Pump::new(from, to, &tap, Direction::ToClient);
    server.write_all(b"one\n\ntwo").await.unwrap();
    assert_eq!(pump.run().await, PumpEnd::Unwanted);
    server.write_all(b"\nthree").await.unwrap();
    drop(server);
    pump.last_words().await;
    pump.close();
    assert!(!pump.is_open());
    assert_eq!(pump.messages(), 3, "a blank line is no message");
}

/// A pump, and the other ends of its streams.
struct PumpedPair {
    server: tokio::io::DuplexStream,
    client: tokio::io::DuplexStream,
    pump: Pump<tokio::io::DuplexStream, tokio::io::DuplexStream>,
}

fn idle_pump() -> PumpedPair {
    let tap = Recorder::nothing().open("s", Actor::Agent, WireKind::Stdio, "s");
    let (server, from) = tokio::io::duplex(2 * CHUNK);
    let (to, client) = tokio::io::duplex(2 * CHUNK);
    PumpedPair {
        server,
        client,
        pump: Pump::new(from, to, &tap, Direction::ToClient),
    }
}

impl PumpedPair {
    /// Runs the pump until it waits for more, and returns what the client got.
    async fn forwarded(&mut self) -> Vec<u8> {
        self.forwarded_in(Duration::from_millis(20)).await
    }

    async fn forwarded_in(&mut self, time: Duration) -> Vec<u8> {
        let running = tokio::time::timeout(time, self.pump.run());
        assert!(running.await.is_err(), "the pump waits");
        self.received().await
    }

    async fn received(&mut self) -> Vec<u8> {
        let mut bytes = vec![0; 2 * CHUNK];
        let moment = std::time::Duration::from_millis(20);
        let read = tokio::time::timeout(moment, self.client.read(&mut bytes)).await;
        bytes.truncate(read.map_or(0, |read| read.expect("it reads")));
        bytes
    }
}

#[tokio::test(start_paused = true)]
async fn an_incomplete_line_waits_for_its_end() {
    let mut place = idle_pump();
    place.server.write_all(b"one\ntw").await.unwrap();
    assert_eq!(place.forwarded().await, b"one\n");
    assert_eq!(place.pump.messages(), 1);
    place.server.write_all(b"o").await.unwrap();
    assert_eq!(place.forwarded().await, b"");
    place.server.write_all(b"\n").await.unwrap();
    assert_eq!(place.forwarded().await, b"two\n");
    assert_eq!(place.pump.messages(), 2);
}

#[tokio::test(start_paused = true)]
async fn an_incomplete_line_is_forwarded_after_a_moment() {
    let mut place = idle_pump();
    place.server.write_all(b"{\"id\":1}").await.unwrap();
    assert_eq!(place.forwarded_in(2 * MOMENT).await, b"{\"id\":1}");
    assert_eq!(place.pump.messages(), 0);
    place.server.write_all(b"\n{").await.unwrap();
    assert_eq!(place.forwarded().await, b"\n");
    assert_eq!(place.pump.messages(), 1);
    place.server.write_all(b"}\n").await.unwrap();
    assert_eq!(place.forwarded().await, b"{}\n");
    assert_eq!(place.pump.messages(), 2);
}

#[tokio::test(start_paused = true)]
async fn a_line_that_comes_byte_by_byte_is_forwarded_after_a_moment() {
    let mut place = idle_pump();
    let mut got = Vec::new();
    for _ in 0..10 {
        place.server.write_all(b"x").await.unwrap();
        got.extend(place.forwarded().await);
    }
    assert!(!got.is_empty(), "20 ms pass between two bytes");
    place.server.write_all(b"\n").await.unwrap();
    got.extend(place.forwarded().await);
    assert_eq!(got, b"xxxxxxxxxx\n");
    assert_eq!(place.pump.messages(), 1);
}

#[tokio::test]
async fn a_call_in_the_incomplete_last_line_is_pending() {
    let mut place = idle_pump();
    let pending = Arc::default();
    place.pump = place.pump.watched(&pending);
    place.pump.kept.direction = Direction::ToServer;
    let call = br#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"echo"}}"#;
    place.server.write_all(call).await.unwrap();
    assert_eq!(place.forwarded().await, b"");
    assert!(pending.is_empty());
    place.pump.flush().await;
    assert_eq!(place.received().await, call);
    assert!(!pending.is_empty());
}

#[tokio::test]
async fn a_line_longer_than_the_buffer_is_forwarded_in_parts() {
    let mut place = idle_pump();
    let text = vec![b'x'; CHUNK + 1];
    place.server.write_all(&text).await.unwrap();
    assert_eq!(place.forwarded().await, text[..CHUNK]);
    place.server.write_all(b"\n").await.unwrap();
    assert_eq!(place.forwarded().await, b"x\n");
    assert_eq!(place.pump.messages(), 1);
}

#[tokio::test]
async fn an_incomplete_line_is_forwarded_before_the_pump_is_closed() {
    let mut place = idle_pump();
    place.server.write_all(b"one\ntwo").await.unwrap();
    assert_eq!(place.forwarded().await, b"one\n");
    place.pump.flush().await;
    assert_eq!(place.pump.messages(), 2, "it is recorded first");
    assert_eq!(place.received().await, b"two");
    place.pump.close();
    assert_eq!(place.pump.messages(), 2);
}

#[tokio::test]
async fn the_last_line_is_recorded_before_it_is_forwarded() {
    let mut place = idle_pump();
    place.server.write_all(b"two").await.unwrap();
    drop(place.server);
    // The client does not read any more: the line is recorded, and can't be forwarded.
    drop(place.client);
    assert_eq!(place.pump.run().await, PumpEnd::Unwanted);
    assert_eq!(place.pump.messages(), 1);
}
