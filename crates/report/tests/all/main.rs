//! Each renderer on one sample run, with text in it that means harm.

mod compare;
mod conversation;
mod json;
mod junit;
mod markdown;
mod outside;
mod sample;
mod schema;
mod summary;
mod terminal;
