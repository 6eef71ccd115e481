//! The reverse proxy: sessions, attacks, faults.

mod attacks;
mod bytes;
mod faults;
mod listening;
mod older;
mod raw;
mod sessions;
mod stage;
