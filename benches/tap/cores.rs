//! Which cores the processes use.
//!
//! A call wakes up a process four times, and a process on another core is woken up slowly. The system moves processes
//! between cores, so the time of a call changes by half within seconds, whatever stands between client and server. With
//! fixed cores, that is the same for all.

use std::fmt;
use std::process::{Command, Stdio};
use std::sync::OnceLock;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Placement {
    /// The system decides.
    Any,
    /// All processes use one core.
    OneCore,
    /// The client and the proxy use one core, the server another one.
    ServerApart,
}

impl fmt::Display for Placement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Any => "on any core",
            Self::OneCore => "all on one core",
            Self::ServerApart => "client and proxy on one core, server on another",
        })
    }
}

impl Placement {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Any => "any",
            Self::OneCore => "one-core",
            Self::ServerApart => "server-apart",
        }
    }

    /// Those that this machine can do.
    pub(crate) fn all() -> Vec<Self> {
        let mut all = vec![Self::Any];
        if allowed().len() > 1 && pin(&allowed().join(",")) {
            all.extend([Self::OneCore, Self::ServerApart]);
        }
        all
    }

    /// Sets the cores of the client and of what it starts from now on.
    pub(crate) fn pin_client(self) {
        match self {
            Self::Any => pin(&allowed().join(",")),
            Self::OneCore | Self::ServerApart => pin(&allowed()[0]),
        };
    }

    /// The same, to start a server.
    pub(crate) fn pin_server(self) {
        match self {
            Self::Any | Self::OneCore => self.pin_client(),
            Self::ServerApart => drop(pin(&allowed()[1])),
        }
    }
}

/// The numbers of the cores that this program may use, as it was started.
fn allowed() -> &'static [String] {
    static ALLOWED: OnceLock<Vec<String>> = OnceLock::new();
    ALLOWED.get_or_init(|| {
        let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
        let mut lines = status.lines();
        let list = lines.find_map(|line| line.strip_prefix("Cpus_allowed_list:"));
        let ranges = list.unwrap_or("0").trim().split(',');
        let numbers = ranges.flat_map(|range| {
            let (from, to) = range.split_once('-').unwrap_or((range, range));
            let number = |text: &str| text.parse::<usize>().expect("the number of a core");
            number(from)..=number(to)
        });
        numbers.map(|number| number.to_string()).collect()
    })
}

/// Returns `false` if that is not possible here.
fn pin(cores: &str) -> bool {
    // The number of a process is that of its main thread, which makes the calls.
    let thread = std::process::id().to_string();
    let pinned = Command::new("taskset")
        .args(["-pc", cores, &thread])
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status();
    pinned.is_ok_and(|status| status.success())
}
