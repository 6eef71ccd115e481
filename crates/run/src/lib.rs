//! What turns a plan into a record: servers under a guard, and a client that keeps every message.
//!
//! Nothing here prints or exits, but for [`guard::run`] and [`relay::run`], which are programs of their
//! own: they end the way what they stand for did.

pub mod agent;
pub mod client;
pub mod context;
pub mod environment;
pub mod evals;
pub mod external;
pub mod guard;
pub mod judge;
pub mod model;
mod network;
pub mod preflight;
pub mod process;
pub mod program;
pub mod progress;
pub mod proxy;
pub mod recorder;
pub mod relay;
mod rpc;
pub mod runner;
pub mod scratch;
pub mod steps;
mod stop;
mod tail;
mod together;
mod transport;
mod trial;
mod web;
mod worker;
