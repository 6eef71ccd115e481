//! Agents that are programs of their own: Claude Code, Codex, whatever speaks ACP, any command.
//!
//! An agent is given an [`Assignment`]: a prompt, servers that stand behind the tap, a way to its
//! model, an empty folder and an empty home. What it says of itself is kept, and believed in nothing
//! that the tap can tell. An adapter turns the assignment into a [`Launch`], and what the program
//! says into a [`Told`]; it starts nothing itself.

mod assignment;

pub(crate) use self::assignment::{Access, Assignment, Endpoint, Launch, Offered, Told, Way};
