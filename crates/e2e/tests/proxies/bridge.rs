//! The bridge: sessions, attacks, faults.

mod attacks;
mod clients;
mod faults;
mod host;
pub mod http;
mod sessions;
pub mod stage;
mod stateless;
