//! Each renderer on one sample run, with text in it that means harm.

mod compare;
mod conversation;
mod json;
mod junit;
mod sample;
mod terminal;
