//! The reverse proxy: sessions, attacks, faults.

mod attacks;
mod bytes;
mod faults;
mod older;
mod raw;
mod sessions;
mod stage;
