//! Threads and runtimes, and what is said where the system gives none.
//!
//! Its main functions are [`main_thread`], [`many_workers`] and [`one_worker`]. Blocking work of a runtime
//! that finds no thread waits for ever, so each runtime starts one for it at once, and keeps it.

use std::io;
use std::process::ExitCode;
use std::thread::{self, Builder};
use std::time::Duration;

use tokio::runtime::{self, Runtime};

/// What the main thread usually has. `ulimit -s` has no say in this.
const STACK: usize = 8 * 1024 * 1024;

/// Threads besides those of a runtime's workers: blocking work, signals, the screen, five of the record, and
/// one to spare.
const BESIDES: usize = 9;

/// How long a thread for blocking work is kept: longer than anything runs.
const KEPT: Duration = Duration::from_hours(24 * 365);

/// The exit code of a program that panicked.
const PANICKED: u8 = 101;

/// Runs a program on a stack of its own, however small that of the process is.
pub(crate) fn main_thread(
    run: impl FnOnce() -> ExitCode + Send + 'static,
) -> anyhow::Result<ExitCode> {
    let main = Builder::new().name("main".to_owned()).stack_size(STACK);
    let running = main.spawn(run).map_err(refused)?;
    Ok(running.join().unwrap_or(ExitCode::from(PANICKED)))
}

/// A runtime with this many workers, or as many as the machine has cores.
pub(crate) fn many_workers(workers: Option<usize>) -> anyhow::Result<Runtime> {
    let cores = || thread::available_parallelism().map_or(1, usize::from);
    let workers = workers.unwrap_or_else(cores);
    let mut builder = runtime::Builder::new_multi_thread();
    builder.worker_threads(workers);
    build(builder, workers)
}

/// A runtime on the thread that uses it.
pub(crate) fn one_worker() -> anyhow::Result<Runtime> {
    build(runtime::Builder::new_current_thread(), 0)
}

fn build(mut builder: runtime::Builder, workers: usize) -> anyhow::Result<Runtime> {
    // Asked first, since a runtime panics over a thread that it does not get.
    ensure_threads(workers + BESIDES).map_err(refused)?;
    builder.enable_all().thread_keep_alive(KEPT);
    let runtime = builder.build()?;
    let first = runtime.spawn_blocking(|| {});
    runtime.block_on(first)?;
    Ok(runtime)
}

/// Starts this many threads at once, and ends them again.
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
    cause.context("could not start a thread; the limit on processes (`ulimit -u`) may be too low")
}
