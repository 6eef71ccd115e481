//! The faults of the agent.

use std::time::Duration;

/// How the agent behaves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    Good,
    /// Does not answer `initialize`.
    Deaf,
    /// Uses another protocol version.
    Newer,
    /// Does not support servers over HTTP.
    StdioOnly,
    /// Requires a login.
    NeedsLogin,
    /// Never connects to its servers.
    Forgetful,
    /// Exits with code 3 during its work.
    Dies,
    /// Never ends its turn.
    Silent,
    /// Never ends its turn, and does not exit when its stdin closes.
    Stubborn,
    /// Completes its work, but does not exit when its stdin closes.
    Stays,
    /// Writes noise between its messages.
    Garbage,
    /// Writes a line of 64 MiB between its messages.
    LongLine,
    /// Requests files, a terminal and a command first, and fails if it gets one.
    Curious,
    /// Ends its turn without text.
    Wordless,
    /// Reports a refusal.
    Refuses,
    /// Reports that it ran out of turns.
    OutOfTurns,
    /// Answers with an error.
    Fails,
    /// Closes its side at once when its server has ended, and completes its turn anyway.
    Careless,
    /// Closes its side without waiting for the response, and completes its turn.
    Leaves,
    /// Starts its server again when it has ended, and repeats the call.
    Repeats,
    /// Cancels its call, and completes its turn.
    Cancels,
    /// Cancels its call with the reason of a timeout, and completes its turn.
    GivesUp,
}

impl Mode {
    /// Returns how the agent waits for the response to its call.
    pub fn about_answers(self) -> CallWait {
        match self {
            Self::Careless => CallWait::Carelessly,
            Self::Leaves => CallWait::Not,
            Self::Repeats => CallWait::Twice,
            Self::Cancels => CallWait::Until("the user changed their mind"),
            Self::GivesUp => CallWait::Until("McpError: MCP error -32001: Request timed out"),
            _ => CallWait::Always,
        }
    }
}

/// How an agent waits for the response to its call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CallWait {
    /// Fails without a response.
    Always,
    /// Continues without a response.
    Carelessly,
    /// Does not wait.
    Not,
    /// Repeats the call with a new process if there is no response.
    Twice,
    /// Cancels the call with this reason.
    Until(&'static str),
}

const NAMES: [(&str, Mode); 22] = [
    ("good", Mode::Good),
    ("deaf", Mode::Deaf),
    ("newer", Mode::Newer),
    ("stdio-only", Mode::StdioOnly),
    ("needs-login", Mode::NeedsLogin),
    ("forgetful", Mode::Forgetful),
    ("dies", Mode::Dies),
    ("silent", Mode::Silent),
    ("stubborn", Mode::Stubborn),
    ("stays", Mode::Stays),
    ("garbage", Mode::Garbage),
    ("long-line", Mode::LongLine),
    ("curious", Mode::Curious),
    ("wordless", Mode::Wordless),
    ("refuses", Mode::Refuses),
    ("out-of-turns", Mode::OutOfTurns),
    ("fails", Mode::Fails),
    ("careless", Mode::Careless),
    ("leaves", Mode::Leaves),
    ("repeats", Mode::Repeats),
    ("cancels", Mode::Cancels),
    ("gives-up", Mode::GivesUp),
];

impl Mode {
    /// Returns the mode with this name.
    pub fn named(name: &str) -> Option<Self> {
        NAMES
            .iter()
            .find(|(known, _)| *known == name)
            .map(|(_, mode)| *mode)
    }
}

/// Keeps running for ten minutes. A shell that starts it can make it ignore SIGTERM too.
pub fn stay() {
    std::thread::sleep(Duration::from_mins(10));
}
