//! Agents that are programs of their own, through the binary.

mod acp;
mod cli;
