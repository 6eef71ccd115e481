//! The written form of an MCP config: the `mcpServers` map that desktop clients use.
//!
//! Its main type is [`McpFile`].

use crate::decode::{LooseText, RequiredKey, Table, record, words};
use crate::problem::WithSpan;

record! {
    /// The MCP servers.
    pub struct McpFile {
        /// The schema that an editor checks this file against.
        "$schema" => schema: Option<LooseText>,
        /// The servers, by name.
        "mcpServers" => servers: RequiredKey<WithSpan<Table<WithSpan<ServerFile>>>>,
    }
}

words! {
    /// How a server is spoken to.
    pub enum TransportWord {
        /// A process, on its stdin and stdout.
        "stdio" => Stdio,
        /// Streamable HTTP.
        "http" => Http,
        /// The older HTTP with server-sent events.
        "sse" => Sse,
    }
}

record! {
    /// A server: a command to start, or a URL.
    pub struct ServerFile one_of ["command", "url"] {
        /// `stdio`, `http` or `sse`; follows from `command` or `url` if not given.
        "type" => kind: Option<WithSpan<TransportWord>>,
        /// The program.
        "command" => command: Option<WithSpan<String>>,
        /// Its arguments. `${VAR}` and `${VAR:-default}` are expanded.
        "args" => args: Vec<WithSpan<LooseText>>,
        /// Its environment. `${VAR}` and `${VAR:-default}` are expanded.
        "env" => env: Table<WithSpan<LooseText>>,
        /// Where the server is. `${VAR}` and `${VAR:-default}` are expanded.
        "url" => url: Option<WithSpan<String>>,
        /// Headers to send. `${VAR}` and `${VAR:-default}` are expanded.
        "headers" => headers: Table<WithSpan<LooseText>>,
        /// Whether the server is left out.
        "disabled" => disabled: Option<bool>,
        /// The tools that an agent may use without asking.
        "alwaysAllow" => always_allow: Option<Vec<LooseText>>,
        /// Whether an agent may use all tools.
        "enableAllTools" => enable_all_tools: Option<bool>,
    }
}
