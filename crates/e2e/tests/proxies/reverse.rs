//! The reverse proxy: sessions, attacks, faults.

mod attacks;
mod bytes;
mod faults;
mod listening;
mod older;
pub mod raw;
mod sessions;
pub mod stage;
mod uploads;
