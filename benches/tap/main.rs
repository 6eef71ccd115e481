//! One call through everything that can stand between an agent and a server, beside a plain relay of
//! bytes with as many hops; then fifty sessions at once.
//!
//! All take turns, so that a slow moment of the machine touches all. `socat` and `nginx` are needed
//! for the comparison; what is not installed is left out.
#![expect(clippy::print_stdout, reason = "the figures are the result")]

mod cores;
mod place;
mod session;

use std::process::Command;
use std::time::{Duration, Instant};

use cores::Placement;
use place::Place;
use session::Session;

const WARM_UP: usize = 100;
/// The calls of a new session, while the system still chooses the cores of its processes.
const FIRST: usize = 400;
/// The calls after those.
const STEADY: usize = 3_500;
/// Many, since the median depends on which core the system gives to each process.
const ROUNDS: usize = 15;
const PINNED_ROUNDS: usize = 5;
const SESSIONS: usize = 50;
const SESSION_CALLS: usize = 200;
const CROWDS: usize = 5;

fn main() {
    // Cargo adds a word of its own.
    let words: Vec<String> = std::env::args().skip(1).collect();
    if let [word, name] = &words[..]
        && word == "calls"
    {
        let placement = Placement::all().into_iter().find(|one| one.name() == name);
        return calls(placement.expect("a placement of this machine"));
    }
    for placement in Placement::all() {
        // In a process of its own, so that all of its threads and children are placed.
        let this = std::env::current_exe().expect("a running program has a path");
        let placed = Command::new(this)
            .args(["calls", placement.name()])
            .status();
        assert!(placed.expect("this program starts again").success());
    }
    println!("{SESSIONS} sessions at once, {SESSION_CALLS} calls each, median of {CROWDS}");
    println!(
        "{:<30} {:>12} {:>14} {:>14}",
        "", "calls/s", "× plain relay", "MB a session"
    );
    for ways in [&STDIO[..], &HTTP, &BRIDGE] {
        crowds(ways);
    }
}

/// Times one call at a time on each way.
fn calls(placement: Placement) {
    placement.pin_client();
    let rounds = match placement {
        Placement::Any => ROUNDS,
        Placement::OneCore | Placement::ServerApart => PINNED_ROUNDS,
    };
    println!("one call, p50 of {}, {placement}", STEADY * rounds);
    println!(
        "{:<30} {:>9} {:>9} {:>14} {:>15} {:>14}",
        "",
        "p50",
        "added",
        "× plain relay",
        format!("first {FIRST} calls"),
        "× plain relay"
    );
    for ways in [&STDIO[..], &HTTP, &BRIDGE] {
        // A proxy on stdio starts the server itself.
        if ways[0] == Way::Http || placement != Placement::ServerApart {
            table(ways, &compare(ways, placement, rounds));
        }
    }
    println!();
}

/// A way from a client to the fixture server.
#[derive(Clone, Copy, PartialEq)]
enum Way {
    Stdio,
    Socat,
    Record,
    Relay,
    Http,
    Nginx,
    Reverse,
    SocatTcp,
    Bridge,
}

/// Direct, the plain relay, and ours, in this order.
const STDIO: [Way; 4] = [Way::Stdio, Way::Socat, Way::Record, Way::Relay];
const HTTP: [Way; 3] = [Way::Http, Way::Nginx, Way::Reverse];
const BRIDGE: [Way; 3] = [Way::Stdio, Way::SocatTcp, Way::Bridge];

impl Way {
    fn title(self) -> &'static str {
        match self {
            Self::Stdio => "stdio, direct",
            Self::Socat => "stdio, socat",
            Self::Record => "stdio, proctor record",
            Self::Relay => "stdio, relay of a trial",
            Self::Http => "HTTP, direct",
            Self::Nginx => "HTTP, nginx",
            Self::Reverse => "HTTP, proctor record --url",
            Self::SocatTcp => "TCP to stdio, socat",
            Self::Bridge => "HTTP to stdio, proctor record",
        }
    }
}

/// The median times of a call, in microseconds.
struct CallTimes {
    steady: f64,
    first: f64,
}

/// `None` for each way that is not installed.
fn compare(ways: &[Way], placement: Placement, rounds: usize) -> Vec<Option<CallTimes>> {
    let mut all = vec![(Vec::new(), Vec::new()); ways.len()];
    for _ in 0..rounds {
        for (way, (steady, first)) in ways.iter().zip(&mut all) {
            if let Some(mut open) = OpenSession::new(*way, placement) {
                let times = timed(|id| open.session.call(id));
                first.extend_from_slice(&times[WARM_UP..][..FIRST]);
                steady.extend_from_slice(&times[WARM_UP + FIRST..]);
            }
        }
    }
    let times = |(steady, first)| {
        Some(CallTimes {
            steady: median(steady)?,
            first: median(first)?,
        })
    };
    all.into_iter().map(times).collect()
}

fn table(ways: &[Way], times: &[Option<CallTimes>]) {
    let (direct, plain) = (times[0].as_ref(), times[1].as_ref());
    for (way, time) in ways.iter().zip(times) {
        let Some(CallTimes { steady, first }) = time else {
            println!("{:<30} not installed", way.title());
            continue;
        };
        let added = direct.map_or(0.0, |direct| steady - direct.steady);
        let ratio = |of: fn(&CallTimes) -> f64, time: f64| {
            plain.map_or(String::new(), |plain| format!("{:.2}", time / of(plain)))
        };
        let steady_ratio = ratio(|times| times.steady, *steady);
        let first_ratio = ratio(|times| times.first, *first);
        println!(
            "{:<30} {steady:>6.0} µs {added:>6.0} µs {steady_ratio:>14} {first:>12.0} µs {first_ratio:>14}",
            way.title()
        );
    }
}

fn median(mut times: Vec<Duration>) -> Option<f64> {
    times.sort();
    times
        .get(times.len() / 2)
        .map(|time| time.as_secs_f64() * 1e6)
}

fn timed(mut one: impl FnMut(usize)) -> Vec<Duration> {
    let mut times = Vec::with_capacity(WARM_UP + FIRST + STEADY);
    for id in 1..=WARM_UP + FIRST + STEADY {
        let started = Instant::now();
        one(id);
        times.push(started.elapsed());
    }
    times
}

/// Fifty sessions on each way, several times in turns.
fn crowds(ways: &[Way]) {
    let mut rates: Vec<Vec<f64>> = vec![Vec::new(); ways.len()];
    let mut sizes = vec![0.0; ways.len()];
    for _ in 0..CROWDS {
        for (index, way) in ways.iter().enumerate() {
            if let Some((rate, memory)) = crowd(*way) {
                rates[index].push(rate);
                sizes[index] = memory;
            }
        }
    }
    let rates: Vec<Option<f64>> = rates
        .into_iter()
        .map(|mut rates| {
            rates.sort_by(f64::total_cmp);
            rates.get(rates.len() / 2).copied()
        })
        .collect();
    for ((way, rate), memory) in ways.iter().zip(&rates).zip(sizes) {
        let Some(rate) = rate else { continue };
        let ratio = rates[1].map_or(String::new(), |plain| format!("{:.2}", rate / plain));
        println!(
            "{:<30} {rate:>12.0} {ratio:>14} {memory:>14.1}",
            way.title()
        );
    }
}

/// Fifty sessions: calls a second in all, and what stands between takes of memory for each.
fn crowd(way: Way) -> Option<(f64, f64)> {
    let place = Place::new(way, Placement::Any)?;
    let mut sessions: Vec<Session> = (0..SESSIONS).map(|_| place.session()).collect();
    let started = Instant::now();
    std::thread::scope(|scope| {
        for session in &mut sessions {
            scope.spawn(|| (1..=SESSION_CALLS).for_each(|id| session.call(id)));
        }
    });
    let calls = u32::try_from(SESSIONS * SESSION_CALLS).expect("it is small");
    let rate = f64::from(calls) / started.elapsed().as_secs_f64();
    let between = place
        .between
        .iter()
        .chain(sessions.iter().filter_map(Session::child));
    let kib: u64 = between.map(|child| memory(child.id())).sum();
    #[expect(clippy::cast_precision_loss, reason = "a figure of three digits")]
    let each = kib as f64 / 1024.0 / SESSIONS as f64;
    Some((rate, if way == Way::Stdio { 0.0 } else { each }))
}

/// The resident memory of a process, in KiB.
fn memory(pid: u32) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    line.and_then(|line| line.split_whitespace().next()?.parse().ok())
        .unwrap_or(0)
}

/// One session, with all that it needs.
struct OpenSession {
    session: Session,
    _place: Place,
}

impl OpenSession {
    fn new(way: Way, placement: Placement) -> Option<Self> {
        let place = Place::new(way, placement)?;
        Some(Self {
            session: place.session(),
            _place: place,
        })
    }
}
