//! The reverse proxy: sessions, attacks, faults.
