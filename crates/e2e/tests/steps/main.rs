//! The steps of a trial on real programs: what passes, what fails and why, and that nothing is left.

mod extensions;
mod http;
mod scripts;
mod stage;
mod tools;
