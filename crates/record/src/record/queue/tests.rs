use std::io::{PipeReader, Read};
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc;
use std::task::Wake;

use super::super::blobs::BlobStore;
use super::*;

const LINE: usize = 16 * 1024;

/// More than a pipe holds.
const PIPE: usize = 1024 * 1024;

/// A queue whose file is a pipe: a disk that takes no more until somebody reads.
struct BlockedQueue {
    writer: WriterThread,
    file: Arc<EventFile>,
    reader: PipeReader,
    failed: Arc<OnceLock<RecordError>>,
    _folder: tempfile::TempDir,
}

fn stuck() -> BlockedQueue {
    let folder = tempfile::tempdir().unwrap();
    let (reader, writer) = std::io::pipe().unwrap();
    let failed: Arc<OnceLock<RecordError>> = Arc::default();
    let blobs = Arc::new(BlobStore::new(folder.path().to_owned()));
    let syncer = Syncer::new(folder.path().to_owned(), blobs, failed.clone());
    BlockedQueue {
        writer: WriterThread::start(folder.path(), syncer, failed.clone()).unwrap(),
        file: Arc::new(EventFile::open(
            folder.path().join("pipe"),
            File::from(OwnedFd::from(writer)),
        )),
        reader,
        failed,
        _folder: folder,
    }
}

#[test]
fn who_appends_waits_for_a_disk_that_takes_no_more() {
    let lines = (2 * PIPE + 2 * MAX_QUEUED) / LINE;
    let mut stuck = stuck();
    let pushed = AtomicUsize::new(0);
    let early = std::thread::scope(|scope| {
        let (queue, file, pushed) = (&stuck.writer.queue, &stuck.file, &pushed);
        scope.spawn(move || {
            let mut slot = QueueSlot::default();
            for number in 0..lines {
                let line = vec![u8::try_from(number % 251).unwrap(); LINE];
                queue.push(file, &mut slot, &line, FollowUp::Nothing);
                pushed.fetch_add(1, Ordering::SeqCst);
            }
        });
        while queue.has_room() {
            std::thread::yield_now();
        }
        // Time enough for an append that does not wait to show it.
        std::thread::sleep(Duration::from_millis(50));
        let early = pushed.load(Ordering::SeqCst);
        let mut line = vec![0; LINE];
        for number in 0..lines {
            stuck.reader.read_exact(&mut line).unwrap();
            let expected = u8::try_from(number % 251).unwrap();
            assert!(line.iter().all(|byte| *byte == expected), "{number}");
        }
        early
    });
    assert!(early <= (PIPE + MAX_QUEUED) / LINE + 1, "{early}");
    assert_eq!(pushed.into_inner(), lines);
    stuck.writer.queue.flush();
    assert!(stuck.writer.queue.has_room());
}

struct WakeSignal(mpsc::Sender<()>);

impl Wake for WakeSignal {
    fn wake(self: Arc<Self>) {
        self.0.send(()).unwrap();
    }
}

#[test]
fn a_task_is_woken_when_there_is_room() {
    let mut stuck = stuck();
    let queue = stuck.writer.queue.clone();
    let (tell, told) = mpsc::channel();
    let waker = Waker::from(Arc::new(WakeSignal(tell)));
    let mut slot = QueueSlot::default();
    let mut push = |bytes| queue.push(&stuck.file, &mut slot, &vec![0; bytes], FollowUp::Nothing);
    assert!(queue.poll_room(&Context::from_waker(&waker)).is_ready());
    push(PIPE);
    assert!(queue.poll_room(&Context::from_waker(&waker)).is_pending());
    assert!(queue.poll_room(&Context::from_waker(&waker)).is_pending());
    assert!(told.try_recv().is_err(), "there is no room yet");
    stuck.reader.read_exact(&mut vec![0; PIPE]).unwrap();
    told.recv_timeout(Duration::from_mins(1)).unwrap();
    assert!(queue.poll_room(&Context::from_waker(&waker)).is_ready());
    assert!(told.recv_timeout(Duration::ZERO).is_err(), "woken once");
}

struct PanickingWaker;

impl Wake for PanickingWaker {
    fn wake(self: Arc<Self>) {
        panic!("whoever waits has a bug");
    }
}

#[test]
fn a_panic_of_the_thread_wakes_everyone_and_fails_the_record() {
    let mut stuck = stuck();
    let queue = stuck.writer.queue.clone();
    let (tell, told) = mpsc::channel();
    let mut slot = QueueSlot::default();
    queue.push(&stuck.file, &mut slot, &vec![0; PIPE], FollowUp::Nothing);
    for waker in [
        Waker::from(Arc::new(PanickingWaker)),
        Waker::from(Arc::new(WakeSignal(tell))),
    ] {
        assert!(queue.poll_room(&Context::from_waker(&waker)).is_pending());
    }
    stuck.reader.read_exact(&mut vec![0; PIPE]).unwrap();
    told.recv_timeout(Duration::from_mins(1)).unwrap();
    queue.push(&stuck.file, &mut slot, b"line", FollowUp::Nothing);
    let (tell, told) = mpsc::channel();
    std::thread::spawn(move || {
        queue.flush();
        tell.send(()).unwrap();
    });
    told.recv_timeout(Duration::from_mins(1)).unwrap();
    let failed = stuck.failed.get();
    assert!(matches!(failed, Some(RecordError::WriterGone)));
}

#[test]
fn lines_that_are_written_through_are_in_order_and_there_at_once() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("lines");
    let BlockedQueue { writer, .. } = stuck();
    let file = File::create(&path).unwrap();
    let file = Arc::new(EventFile::open(path.clone(), file));
    let failed = OnceLock::new();
    let mut slot = QueueSlot::default();
    let mut expected = Vec::new();
    for number in 0..2_000 {
        let line = format!("{number}\n");
        expected.extend_from_slice(line.as_bytes());
        writer
            .queue
            .push(&file, &mut slot, line.as_bytes(), FollowUp::Nothing);
        // Others are left to the thread, which may be in the middle of them.
        if number % 3 == 0 {
            writer.queue.write_through(&file, &slot, &failed);
            assert_eq!(std::fs::read(&path).unwrap(), expected);
        }
    }
    assert!(failed.get().is_none());
    writer.queue.flush();
    assert_eq!(std::fs::read(&path).unwrap(), expected);
}

#[test]
fn what_is_queued_is_written_before_the_thread_ends() {
    let BlockedQueue {
        writer,
        file,
        mut reader,
        ..
    } = stuck();
    let mut slot = QueueSlot::default();
    for _ in 0..100 {
        writer
            .queue
            .push(&file, &mut slot, b"line\n", FollowUp::Nothing);
    }
    drop((writer, file));
    let mut text = Vec::new();
    reader.read_to_end(&mut text).unwrap();
    assert_eq!(text, b"line\n".repeat(100));
}

#[test]
fn a_line_that_wakes_nobody_is_written_all_the_same() {
    let mut blocked = stuck();
    let mut slot = QueueSlot::default();
    let mut push = |line: &[u8]| {
        let queue = &blocked.writer.queue;
        queue.push(&blocked.file, &mut slot, line, FollowUp::Nothing);
    };
    let mut read = |expected: &[u8]| {
        let mut line = vec![0; expected.len()];
        blocked.reader.read_exact(&mut line).unwrap();
        assert_eq!(line, expected);
    };
    push(b"first\n");
    read(b"first\n");
    // Now the thread waits for some time, and then for a line.
    push(b"second\n");
    read(b"second\n");
    while !blocked.writer.queue.lock().asleep {
        std::thread::yield_now();
    }
    push(b"third\n");
    read(b"third\n");
}

#[test]
fn lines_that_two_threads_write_are_in_order() {
    let mut blocked = stuck();
    let queue = blocked.writer.queue.clone();
    let mut slot = QueueSlot::default();
    let mut push = |line: &[u8]| queue.push(&blocked.file, &mut slot, line, FollowUp::Nothing);
    // The thread is stuck in the middle of the first round: a pipe holds less.
    push(&vec![b'a'; FULL]);
    while queue.lock().taken == 0 {
        std::thread::yield_now();
    }
    push(b"b");
    let mut all = vec![0; FULL + 1];
    std::thread::scope(|scope| {
        scope.spawn(|| queue.write_all(&blocked.failed, |_, _| ()));
        blocked.reader.read_exact(&mut all).unwrap();
    });
    assert_eq!((all[FULL - 1], all[FULL]), (b'a', b'b'));
}

#[test]
fn the_thread_sleeps_while_lines_are_written_through() {
    let folder = tempfile::tempdir().unwrap();
    let BlockedQueue { writer, .. } = stuck();
    let file = |name: &str| {
        let path = folder.path().join(name);
        (Arc::new(EventFile::new(path.clone())), path)
    };
    let ((quiet, quiet_path), (other, other_path)) = (file("quiet"), file("other"));
    let failed = OnceLock::new();
    let (mut slot, mut other_slot) = (QueueSlot::default(), QueueSlot::default());
    for _ in 0..3 {
        let next = FollowUp::Nothing;
        writer
            .queue
            .push_quietly(&quiet, &mut slot, b"line\n", next);
        writer.queue.write_through(&quiet, &slot, &failed);
        std::thread::sleep(2 * LINGER);
    }
    assert_eq!(std::fs::read(&quiet_path).unwrap(), b"line\n".repeat(3));
    assert_eq!(writer.queue.lock().taken, 0);
    // A line of another file still wakes it up, and so does a sync.
    let wait_for = |rounds: u64| {
        let until = std::time::Instant::now() + Duration::from_mins(1);
        while writer.queue.lock().written < rounds {
            assert!(std::time::Instant::now() < until, "it still sleeps");
            std::thread::sleep(Duration::from_millis(1));
        }
    };
    let nothing = FollowUp::Nothing;
    writer
        .queue
        .push(&other, &mut other_slot, b"line\n", nothing);
    wait_for(1);
    assert_eq!(std::fs::read(&other_path).unwrap(), b"line\n");
    let sync = FollowUp::Sync;
    writer
        .queue
        .push_quietly(&quiet, &mut slot, b"line\n", sync);
    wait_for(2);
    assert_eq!(std::fs::read(&quiet_path).unwrap(), b"line\n".repeat(4));
}
