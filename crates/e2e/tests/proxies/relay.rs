//! The stdio relay: sessions, attacks, faults.

mod attacks;
mod faults;
mod stage;
mod transparency;
