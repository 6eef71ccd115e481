//! The file format of an MCP config: the `mcpServers` map that desktop clients use.
//!
//! Its main type is [`McpFile`].

use proctor_record::problem::WithSpan;

use super::auth_file::AuthKey;
use super::protocol::ProtocolPin;
use super::replies_file::{ElicitationFile, SamplingFile};
use crate::decode::{LooseText, RequiredKey, StrictKeys, Table, record, words};

record! {
    /// An MCP config: the MCP servers of a suite.
    pub struct McpFile {
        /// The JSON Schema that editors use to check this file.
        "$schema" => schema: Option<LooseText>,
        /// The servers, by name.
        "mcpServers" => servers: RequiredKey<WithSpan<Table<WithSpan<ServerFile>>>>,
    }
}

words! {
    /// The transport of a server.
    pub enum TransportWord {
        /// A process that speaks MCP on its stdin and stdout.
        "stdio" => Stdio,
        /// Streamable HTTP.
        "http" => Http,
        /// HTTP+SSE, the transport of older servers.
        "sse" => Sse,
    }
}

record! {
    /// A server: a command to start, or a URL to connect to.
    pub struct ServerFile one_of ["command", "url"] {
        /// The transport: `stdio`, `http` or `sse`. By default `command` means `stdio` and `url` means `http`.
        "type" => kind: Option<WithSpan<TransportWord>>,
        /// The program to start. Proctor expands `{trial.dir}`, here and in all texts below.
        "command" => command: Option<WithSpan<String>>,
        /// The arguments of the program. Proctor expands `${VAR}` and `${VAR:-default}`.
        "args" => args: Vec<WithSpan<LooseText>>,
        /// The environment variables of the program. Proctor expands `${VAR}` and `${VAR:-default}`.
        "env" => env: Table<WithSpan<LooseText>>,
        /// The folder that the program runs in, relative to the folder of this file, which is the default. Proctor
        /// expands `${VAR}` and `${VAR:-default}`.
        "cwd" => cwd: Option<WithSpan<String>>,
        /// The URL of the server. Proctor expands `${VAR}` and `${VAR:-default}`.
        "url" => url: Option<WithSpan<String>>,
        /// The HTTP headers to send. Proctor expands `${VAR}` and `${VAR:-default}`.
        "headers" => headers: Table<WithSpan<LooseText>>,
        /// How Proctor gets the token that it sends to a server with a `url`.
        "auth" => auth: AuthKey,
        /// Whether Proctor ignores the server.
        "disabled" => disabled: Option<bool>,
        /// The tools that an agent may use without permission.
        "alwaysAllow" => always_allow: Option<Vec<LooseText>>,
        /// Whether an agent may use all tools without permission.
        "enableAllTools" => enable_all_tools: Option<bool>,
        /// The protocol version or era that Proctor's client uses: `handshake`, `stateless`, or a version such as `2025-06-18`. By default the newest that the server supports. Only Proctor supports this key.
        "protocol" => protocol: Option<StrictKeys<WithSpan<ProtocolPin>>>,
        /// The answers to elicitations: by field, by rule, `decline` or `cancel`. Only Proctor supports this key.
        "elicitation" => elicitation: Option<StrictKeys<WithSpan<ElicitationFile>>>,
        /// The model that answers sampling requests, or `refuse`. Only Proctor supports this key.
        "sampling" => sampling: Option<StrictKeys<WithSpan<SamplingFile>>>,
        /// The roots that the server gets: paths or URIs. Proctor expands `${VAR}` and `${VAR:-default}`. Only Proctor supports this key.
        "roots" => roots: Option<Vec<WithSpan<LooseText>>>,
    }
}
