//! MCP on bytes: transports, the client, the proxies, and the recorder that keeps every message before it
//! is understood.
//!
//! Knows nothing of models, agents, suites' cases or verdicts: it carries messages and says how a
//! connection ended. It starts programs through `proctor_contain` alone.

pub mod answers;
pub mod client;
pub mod edit;
pub mod evals;
pub mod network;
pub mod peer;
pub mod proxy;
pub mod recorder;
pub mod relay;
pub mod rpc;
pub mod streams;
pub mod transport;
pub mod web;
pub mod worker;
