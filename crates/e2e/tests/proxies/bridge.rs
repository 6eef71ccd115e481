//! The bridge: sessions, attacks, faults.
