//! Real servers, listed, called and recorded; and what must hold of a record whatever happens to it:
//! it is what went over the wire, it has no secrets, and it never looks more complete than it is.

#![expect(
    clippy::unwrap_used,
    reason = "a test that can't go on panics, helpers included"
)]

mod arguments;
mod auth;
mod canary;
mod conversations;
mod disk;
mod docs;
mod folders;
mod init;
mod junit;
mod offers;
mod sdks;
mod selection;
mod servers;
mod stops;
mod suite;
mod tutorial;
mod wire;
