//! What stands between an agent and a server: neither can notice it, and it misses nothing.

mod agents;
mod bridge;
mod conformance;
mod drafted;
mod edited;
mod hosted;
mod packages;
mod record;
mod relay;
mod reverse;
mod sdk;
mod stdio;
mod transparency;
mod ways;
