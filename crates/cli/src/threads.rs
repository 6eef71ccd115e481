//! Starts threads and runtimes, and reports if the system refuses them.
//!
//! Its main functions are [`main_thread`], [`for_trials`] and [`one_worker`]. Blocking work without a thread
//! would wait forever, so each runtime starts a thread for it at once and keeps it.

use std::io;
use std::process::ExitCode;
use std::thread::{self, Builder};
use std::time::Duration;

use tokio::runtime::{self, Runtime};

/// The usual stack size of the main thread, whatever `ulimit -s` says.
const STACK: usize = 8 * 1024 * 1024;

/// The number of threads besides the runtime's workers: blocking work, signals, the screen, five of the
/// record, and a spare one.
const BESIDES: usize = 9;

/// The time that an idle thread for blocking work is kept: longer than any run.
const KEPT: Duration = Duration::from_hours(24 * 365);

/// The exit code of a program that panicked.
const PANICKED: u8 = 101;

/// Runs a function on a thread with its own stack, however small that of the process is.
pub(crate) fn main_thread(
    run: impl FnOnce() -> ExitCode + Send + 'static,
) -> anyhow::Result<ExitCode> {
    let main = Builder::new().name("main".to_owned()).stack_size(STACK);
    let running = main.spawn(run).map_err(refused)?;
    Ok(running.join().unwrap_or(ExitCode::from(PANICKED)))
}

/// A runtime for this many trials at once: a worker for each, but no more than cores. A worker that has nothing to do
/// costs time whenever it is woken up for work that another does.
pub(crate) fn for_trials(trials: u32) -> anyhow::Result<Runtime> {
    let cores = thread::available_parallelism().map_or(1, usize::from);
    let trials = usize::try_from(trials).unwrap_or(cores);
    many_workers(trials.clamp(1, cores))
}

/// A runtime with this many workers.
pub(crate) fn many_workers(workers: usize) -> anyhow::Result<Runtime> {
    let mut builder = runtime::Builder::new_multi_thread();
    builder.worker_threads(workers);
    build(builder, workers)
}

/// A runtime on the thread that uses it.
pub(crate) fn one_worker() -> anyhow::Result<Runtime> {
    build(runtime::Builder::new_current_thread(), 0)
}

fn build(mut builder: runtime::Builder, workers: usize) -> anyhow::Result<Runtime> {
    // Checked first, since a runtime panics if it can't start a thread.
    ensure_threads(workers + BESIDES).map_err(refused)?;
    builder.enable_all().thread_keep_alive(KEPT);
    let runtime = builder.build()?;
    let first = runtime.spawn_blocking(|| {});
    runtime.block_on(first)?;
    Ok(runtime)
}

/// Starts this many threads at once and ends them again, to check the limits.
fn ensure_threads(count: usize) -> io::Result<()> {
    let start = |_| Builder::new().spawn(thread::park);
    let mut started = Vec::new();
    let refused = (0..count).map(start).find_map(|thread| match thread {
        Ok(thread) => {
            started.push(thread);
            None
        }
        Err(error) => Some(error),
    });
    for thread in started {
        thread.thread().unpark();
        // It does nothing that could panic.
        let _ = thread.join();
    }
    refused.map_or(Ok(()), Err)
}

fn refused(error: io::Error) -> anyhow::Error {
    let cause = anyhow::Error::new(error);
    cause.context("can't start a thread; the process limit (`ulimit -u`) may be too low")
}
