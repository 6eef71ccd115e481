//! Each renderer on one sample run, with text in it that means harm.

mod compare;
mod contract;
mod conversation;
mod csv;
mod followed;
mod html;
mod json;
mod junit;
mod markdown;
mod mcpchecker;
mod otlp;
mod outside;
mod page;
mod sample;
mod schema;
mod summary;
mod terminal;
