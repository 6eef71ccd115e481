//! One trial with many calls: what a turn costs as the conversation grows.
//!
//! Each figure is the CPU time of `proctor check` with its server. Every turn sends all messages again, so the bytes
//! sent grow with the square of the calls. The CPU time per call may grow with them, but much more slowly.
#![expect(clippy::print_stdout, reason = "the figures are the result")]

use nix::sys::resource::{UsageWho, getrusage};
use nix::sys::time::TimeValLike;
use proctor_e2e::suite::SuiteFixture;
use serde_json::json;

/// How often everything is run, in turns. The best counts: what else the machine does only adds.
const ROUNDS: usize = 3;

fn main() {
    let most: usize = std::env::var("PROCTOR_BENCH_CALLS").map_or(2_000, |text| {
        text.parse().expect("PROCTOR_BENCH_CALLS is a number")
    });
    println!(
        "{:>6} {:>10} {:>14} {:>14}",
        "calls", "CPU", "CPU a call", "bytes sent"
    );
    for calls in [most / 8, most / 4, most / 2, most] {
        let suite = suite(calls);
        let best = (0..ROUNDS).map(|_| check(&suite)).min();
        let micros = best.expect("there are rounds");
        let micros = f64::from(i32::try_from(micros).expect("less than half an hour"));
        let (whole, each) = (micros / 1e6, micros / count(calls));
        println!(
            "{calls:>6} {whole:>8.2} s {each:>11.0} µs {:>11.1} MB",
            sent(calls) / 1e6
        );
    }
}

/// A task whose model makes this many calls, each with an answer of 200 bytes.
fn suite(calls: usize) -> SuiteFixture {
    let text = "x".repeat(200);
    let rules = format!(
        "\n  - {{when: {{results: {calls}}}, reply: {{text: done}}}}\n  - {{reply: {{calls: [{{tool: echo, arguments: {{text: {text}}}}}]}}}}\n"
    );
    let suite = SuiteFixture::new(&rules, &[]);
    let assertions = json!({"minToolCalls": calls});
    suite.eval(&json!({}), &json!({"assertions": assertions}));
    suite.task("long", &json!({"limits": {"maxTurns": calls + 1}}));
    suite
}

fn count(calls: usize) -> f64 {
    f64::from(u32::try_from(calls).expect("a small number"))
}

/// The approximate bytes of all requests: in turn `n`, the messages of the `n` calls before, of about 560 bytes each.
fn sent(calls: usize) -> f64 {
    count(calls) * count(calls) / 2.0 * 560.0
}

/// The CPU time of a run and of all that it started, in microseconds.
fn check(suite: &SuiteFixture) -> i64 {
    let used = || {
        let usage = getrusage(UsageWho::RUSAGE_CHILDREN).expect("the system counts");
        (usage.user_time() + usage.system_time()).num_microseconds()
    };
    let before = used();
    let seen = suite.check(&[]).run();
    assert_eq!(seen.code, Some(0), "{}", seen.stderr);
    used() - before
}
