//! What turns a plan into a record: servers under a guard, and a client that keeps every message.
//!
//! Nothing here prints or exits, but for [`guard::run`], which is a program of its own: it ends the
//! way its child did.

pub mod agent;
pub mod client;
pub mod environment;
pub mod guard;
pub mod judge;
pub mod model;
pub mod process;
pub mod program;
pub mod recorder;
mod rpc;
pub mod steps;
mod tail;
mod transport;
