//! Regrading on generated and hand-made records.
