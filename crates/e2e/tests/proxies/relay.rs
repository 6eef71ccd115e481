//! The stdio relay: sessions, attacks, faults.
