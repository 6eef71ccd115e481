//! The primitive in a server built on the Rust SDK.
