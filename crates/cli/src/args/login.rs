//! The arguments of `proctor login` and `proctor logout`.

use std::time::Duration;

use clap::Args;

use super::{OutputArgs, span};

/// Log in to an MCP server in the browser, for commands with the same URL.
///
/// Finds the authorization server of the MCP server, registers a client there, and prints the page to open. The
/// tokens are stored in a file that only you can read, outside the repository: `$XDG_STATE_HOME/proctor/logins.json`,
/// or `~/.local/state/proctor/logins.json`. `tools`, `call`, `lint`, `record` and `evals` use them for this URL and no
/// other; a suite uses them with `auth: {login: true}` in its MCP config. Tokens are never recorded, and agents don't
/// get them.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  proctor login https://mcp.example.com/mcp           prints the page to open
  proctor login https://mcp.example.com/mcp --open    opens it in the browser
  proctor login https://mcp.example.com/mcp --client-id my-client --scope tools:read
  proctor login --list
  proctor logout https://mcp.example.com/mcp

Exit codes: 0 logged in, 1 the login was refused, 2 usage error, 3 a server could not be reached or used,
130 interrupted.")]
pub(crate) struct LoginArgs {
    /// URL of the MCP server
    #[arg(value_name = "URL", required_unless_present = "list")]
    pub(crate) url: Option<String>,

    /// Show the stored logins
    #[arg(long, conflicts_with_all = ["url", "open", "client_id", "scope", "issuer"])]
    pub(crate) list: bool,

    /// Open the page in the browser (`BROWSER`, or the default one)
    #[arg(long)]
    pub(crate) open: bool,

    /// Id of a registered OAuth client; by default Proctor registers one
    #[arg(long, value_name = "ID")]
    pub(crate) client_id: Option<String>,

    /// Scope to ask for (repeatable); default: those that the server names
    #[arg(long, value_name = "SCOPE")]
    pub(crate) scope: Vec<String>,

    /// The only authorization server that may be used
    #[arg(long, value_name = "URL")]
    pub(crate) issuer: Option<String>,

    /// How long to wait for you to log in
    #[arg(long, value_name = "DURATION", default_value = "5m", value_parser = span)]
    pub(crate) timeout: Duration,

    #[command(flatten)]
    pub(crate) output: OutputArgs,
}

/// Remove the stored login of an MCP server.
///
/// The authorization server is not told: a token stays valid there until it expires.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  proctor logout https://mcp.example.com/mcp

Exit codes: 0 removed, 2 no such login.")]
pub(crate) struct LogoutArgs {
    /// URL of the MCP server
    #[arg(value_name = "URL")]
    pub(crate) url: String,
}
