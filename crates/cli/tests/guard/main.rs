//! The guard of the real binary, with programs that do all they can to outlive it.

mod ends;
mod parent;
mod stage;
mod starts;
mod streams;
mod trees;
