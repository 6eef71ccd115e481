//! Each renderer on one sample run, with text in it that means harm.

mod conversation;
mod csv;
mod json;
mod junit;
mod mcpchecker;
mod otlp;
mod sample;
mod terminal;
