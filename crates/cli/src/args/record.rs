//! The arguments of `proctor record`.

use std::path::PathBuf;

use clap::Args;

use super::{OutputArgs, header};

/// Record a session: stand between any client and any server, and keep every message.
///
/// Put it in front of the server's command in the client's configuration. Neither side notices: what
/// passes through is not changed, and the server gets the whole environment. Each session is a run
/// folder of its own, which `proctor result view` shows. For a server at an address, --url prints an
/// address on this machine to be used instead.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  proctor record -- npx -y @modelcontextprotocol/server-everything
  proctor record --url https://example.com/mcp --header 'Authorization: Bearer …'
  proctor record --http -- uvx mcp-server-git      the same for a client that takes only a URL

The address that is printed has a token in it, which is another one each time. For a configuration
that stays: --port 8931 --no-token.

In Claude Code's .mcp.json:
  {\"mcpServers\": {\"git\": {\"command\": \"proctor\",
    \"args\": [\"record\", \"--out\", \"/home/me/runs\", \"--\", \"uvx\", \"mcp-server-git\"]}}}
In goose:
  goose run --with-extension 'proctor record -- uvx mcp-server-git' -t '…'

Clients start servers in folders of their own choice: name an absolute one with --out.

Exit codes: the server's own (128 and the number of a signal that ended it), 2 usage, 3 the record
could not be kept, or the server not started. With --url and --http: 0 when it was stopped.")]
pub(crate) struct RecordArgs {
    /// Where recordings are kept: each session gets a folder of its own in it
    #[arg(long, value_name = "DIR")]
    pub(crate) out: Option<PathBuf>,

    /// What the recording is called; the name of the command, unless it is given
    #[arg(long, value_name = "NAME")]
    pub(crate) name: Option<String>,

    /// The address of a server: prints one to use instead, and serves it until Ctrl-C
    #[arg(long, value_name = "URL", conflicts_with = "command")]
    pub(crate) url: Option<String>,

    /// A header to send to --url, as `NAME: VALUE`; may be repeated
    #[arg(long = "header", value_name = "HEADER", requires = "url", value_parser = header)]
    pub(crate) headers: Vec<(String, String)>,

    /// Offer the command's server at an address, instead of stdin and stdout
    #[arg(long, conflicts_with = "url", requires = "command")]
    pub(crate) http: bool,

    /// The port of that address; a free one, unless it is given
    #[arg(
        long,
        value_name = "PORT",
        default_value = "0",
        hide_default_value = true
    )]
    pub(crate) port: u16,

    /// Let every process on this machine in, without the token that is part of the address
    #[arg(long)]
    pub(crate) no_token: bool,

    /// How the address is printed
    #[command(flatten)]
    pub(crate) output: OutputArgs,

    /// The command that starts the server, after `--`
    #[arg(last = true, value_name = "COMMAND", required_unless_present = "url")]
    pub(crate) command: Vec<String>,
}
