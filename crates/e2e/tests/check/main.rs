//! `proctor check`, from outside: suites on servers that behave and that don't, runs that are stopped,
//! killed and gone on with, and the exit code that each ends with.

#![expect(
    clippy::unwrap_used,
    reason = "a test that can't go on panics, helpers included"
)]

mod assertions;
mod blame;
mod compat;
mod contract;
mod conversations;
mod decided;
mod doctor;
mod drafts;
mod drop_in;
mod estimates;
mod exits;
mod folders;
mod followed;
mod gates;
mod github;
mod guards;
mod html;
mod imports;
mod indexes;
mod kills;
mod known_failures;
mod limits;
mod migration;
mod output;
mod packs;
mod profiles;
mod protocol;
mod records;
mod refused;
mod regrade;
mod replay;
mod replies;
mod reruns;
mod resumed;
mod rows;
mod run_names;
mod run_steps;
mod scorers;
mod seeds;
mod selection;
mod server_lists;
mod servers;
mod shards;
mod shown_again;
mod stops;
mod stores;
mod suites;
mod summaries;
mod trial_folders;
mod turns;
mod vacuity;
mod watch;

/// An agent that is a command: its arguments are MCP configs, and the prompt.
const COMMAND_AGENT: &str = include_str!("agent.py");
