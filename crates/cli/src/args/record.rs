//! The arguments of `proctor record`.

use std::path::PathBuf;

use clap::Args;

use super::{OutputArgs, header};

/// Record a session: a proxy between any client and any server that records every message.
///
/// Put it before the server's command in the client's configuration. The proxy is transparent: it changes
/// no message, and the server gets the whole environment. Each session gets its own run folder; show it
/// with `proctor result view`. For a server with a URL, --url prints a local URL to use instead.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  proctor record -- npx -y @modelcontextprotocol/server-everything
  proctor record --url https://example.com/mcp --header 'Authorization: Bearer …'
  proctor record --http -- uvx mcp-server-git      for a client that takes only a URL

The printed URL contains a new token each time. For a permanent configuration, use
--port 8931 --no-token.

In Claude Code's .mcp.json:
  {\"mcpServers\": {\"git\": {\"command\": \"proctor\",
    \"args\": [\"record\", \"--out\", \"/home/me/runs\", \"--\", \"uvx\", \"mcp-server-git\"]}}}
In goose:
  goose run --with-extension 'proctor record -- uvx mcp-server-git' -t '…'

Clients start servers in different working directories: pass an absolute path to --out.

Exit codes: that of the server (128 plus the signal number if a signal ended it), 2 usage error,
3 recording failed, or the server did not start. With --url and --http: 0 stopped.")]
pub(crate) struct RecordArgs {
    /// Folder for recordings; each session gets its own folder in it
    #[arg(long, value_name = "DIR")]
    pub(crate) out: Option<PathBuf>,

    /// Name of the recording; default: the name of the command
    #[arg(long, value_name = "NAME")]
    pub(crate) name: Option<String>,

    /// URL of a server; prints a local URL to use instead, and serves it until Ctrl-C
    #[arg(long, value_name = "URL", conflicts_with = "command")]
    pub(crate) url: Option<String>,

    /// Send this header to --url, as `NAME: VALUE` (repeatable)
    #[arg(long = "header", value_name = "HEADER", requires = "url", value_parser = header)]
    pub(crate) headers: Vec<(String, String)>,

    /// Serve the command's server at a local URL instead of stdin and stdout
    #[arg(long, conflicts_with = "url", requires = "command")]
    pub(crate) http: bool,

    /// Port of the local URL; a free one by default
    #[arg(
        long,
        value_name = "PORT",
        default_value = "0",
        hide_default_value = true
    )]
    pub(crate) port: u16,

    /// Print a URL without a token: any process on this machine can connect
    #[arg(long)]
    pub(crate) no_token: bool,

    #[command(flatten)]
    pub(crate) output: OutputArgs,

    /// Command that starts the server, after `--`
    #[arg(last = true, value_name = "COMMAND", required_unless_present = "url")]
    pub(crate) command: Vec<String>,
}
