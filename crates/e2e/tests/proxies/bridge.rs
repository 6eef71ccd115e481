//! The bridge: sessions, attacks, faults.

mod attacks;
mod clients;
mod faults;
mod host;
mod http;
mod sessions;
mod stage;
mod stateless;
