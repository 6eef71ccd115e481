//! The arguments of `proctor model`.

use std::path::PathBuf;

use clap::{Args, Subcommand};

use super::OutputArgs;

/// Models that Proctor plays itself.
#[derive(Debug, Subcommand)]
pub(crate) enum ModelCommand {
    Serve(ModelServeArgs),
}

/// Serve a scripted model over HTTP, so that any agent can be run on rules instead of an LLM.
///
/// The file is a script (`kind: Script`), as `scripted:FILE` takes it. It is served on this machine
/// only, in the words of OpenAI's Chat Completions and Responses, Anthropic's Messages and Gemini,
/// streaming or not. Any key and any model name will do.
///
/// A script says `echo`, and the agent's `mcp__ev__echo`, `mcp_ev_echo`, `ev-echo` and the like are
/// meant; `ev__echo` decides between several. Nothing is kept of a conversation: how far it has come is
/// told by the tool results in it. What an agent asks for itself, such as a title, gets a harmless answer.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  proctor model serve model.yaml
  proctor model serve model.yaml --port 8900 --verbose

  ANTHROPIC_BASE_URL=http://127.0.0.1:8900 ANTHROPIC_API_KEY=any ENABLE_TOOL_SEARCH=false \\
    claude -p 'say hello' --mcp-config mcp.json --allowedTools mcp__ev

It goes on until Ctrl-C. What is not understood, or has no rule, is told on stderr, and to whoever
asked as an error.

Exit codes: 0 ended by Ctrl-C or SIGTERM, 2 the script is wrong or the port is taken.")]
pub(crate) struct ModelServeArgs {
    /// The script
    #[arg(value_name = "FILE")]
    pub(crate) file: PathBuf,

    /// The port; one that is free if not given
    #[arg(long, value_name = "PORT", default_value_t = 0)]
    pub(crate) port: u16,

    /// Tell of every question on stderr
    #[arg(short, long)]
    pub(crate) verbose: bool,

    #[command(flatten)]
    pub(crate) output: OutputArgs,
}
