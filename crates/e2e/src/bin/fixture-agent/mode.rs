//! What the agent does wrong.

use std::time::Duration;

/// How the agent behaves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    /// As it should.
    Good,
    /// Does not answer `initialize`.
    Deaf,
    /// Speaks another version.
    Newer,
    /// Takes no server over HTTP.
    StdioOnly,
    /// Wants somebody to log in.
    NeedsLogin,
    /// Never connects to its servers.
    Forgetful,
    /// Exits with code 3 in the middle of its work.
    Dies,
    /// Never ends its turn.
    Silent,
    /// Never ends its turn, and does not end with its stdin.
    Stubborn,
    /// Does its work, but does not end with its stdin.
    Stays,
    /// Writes what is no message between its messages.
    Garbage,
    /// Writes a line of 64 MiB between its messages.
    LongLine,
    /// Asks for files, a terminal and a command before it does its work, and fails if it gets one.
    Curious,
    /// Ends its turn without a word.
    Wordless,
    /// Says that it refuses.
    Refuses,
    /// Says that it had its turns.
    OutOfTurns,
    /// Answers with an error.
    Fails,
    /// Closes its side at once when its server has gone, and is done all the same.
    Careless,
    /// Closes its side without waiting for the answer, and is done.
    Leaves,
    /// Starts its server again when it has gone, and repeats the call.
    Repeats,
    /// Cancels its call, and is done.
    Cancels,
    /// Cancels its call for having waited too long, and is done.
    GivesUp,
}

impl Mode {
    /// What the agent does with a call that has no answer.
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

/// How an agent waits for the answer to its call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CallWait {
    /// It fails without one.
    Always,
    /// It does without one.
    Carelessly,
    /// It does not wait.
    Not,
    /// It asks a fresh process if there is none.
    Twice,
    /// It cancels, and says why.
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
    /// The mode of this name.
    pub fn named(name: &str) -> Option<Self> {
        NAMES
            .iter()
            .find(|(known, _)| *known == name)
            .map(|(_, mode)| *mode)
    }
}

/// Stays for ten minutes. A shell before it can have it ignore SIGTERM too.
pub fn stay() {
    std::thread::sleep(Duration::from_mins(10));
}
