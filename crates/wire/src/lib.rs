//! MCP on bytes: transports, the client, the proxies, and the recorder, which stores every message
//! before it is parsed.
//!
//! This crate has no knowledge of models, agents, cases or verdicts. It transfers messages, reports
//! how a connection ended, and starts programs only through `proctor_contain`.

pub mod answers;
pub mod auth;
pub mod client;
pub mod edit;
pub mod evals;
pub mod http_client;
pub mod network;
pub mod peer;
pub mod proxy;
pub mod recorder;
pub mod relay;
pub mod rpc;
pub mod site;
pub mod streams;
pub mod transport;
pub mod web;
pub mod worker;
