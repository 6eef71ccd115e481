//! What turns a plan into a record. So far: processes, and what ends them.
//!
//! Nothing here prints or exits, but for [`guard::run`], which is a program of its own: it ends the
//! way its child did.

pub mod environment;
pub mod guard;
pub mod process;
pub mod program;
mod tail;
