//! The stdio relay: sessions, attacks, faults.

mod attacks;
mod faults;
pub mod stage;
mod transparency;
