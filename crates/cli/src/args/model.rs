//! The arguments of `proctor model`.

use std::path::PathBuf;

use clap::{Args, Subcommand};

use super::OutputArgs;

/// Serve scripted models.
#[derive(Debug, Subcommand)]
#[command(after_help = "Examples:
  proctor model serve model.yaml --port 8900")]
pub(crate) enum ModelCommand {
    Serve(ModelServeArgs),
}

/// Serve a scripted model over HTTP, so that any agent can run on a script instead of an LLM.
///
/// FILE is a script (`kind: Script`), as for `scripted:FILE`. Proctor serves it on this machine only, over
/// the APIs of OpenAI (Chat Completions, Responses), Anthropic (Messages) and Gemini, with and without
/// streaming. Any key and any model name work.
///
/// `echo` in a script also matches an agent's prefixed names such as `mcp__ev__echo`, `mcp_ev_echo` or
/// `ev-echo`; write `ev__echo` if several servers have that tool. The server is stateless: it derives the turn
/// from the tool results in each request. Side requests of an agent, such as for a title, get a fixed reply.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  proctor model serve model.yaml
  proctor model serve model.yaml --port 8900 --verbose

  ANTHROPIC_BASE_URL=http://127.0.0.1:8900 ANTHROPIC_API_KEY=any ENABLE_TOOL_SEARCH=false \\
    claude -p 'say hello' --mcp-config mcp.json --allowedTools mcp__ev

Runs until Ctrl-C. Requests that it can't parse or that match no rule get an error response and a
line on stderr.

Exit codes: 0 stopped by Ctrl-C or SIGTERM, 2 invalid script or port in use.")]
pub(crate) struct ModelServeArgs {
    /// Script to serve
    #[arg(value_name = "FILE")]
    pub(crate) file: PathBuf,

    /// Port to listen on; 0 chooses a free one
    #[arg(long, value_name = "PORT", default_value_t = 0)]
    pub(crate) port: u16,

    /// Log every request to stderr
    #[arg(short, long)]
    pub(crate) verbose: bool,

    #[command(flatten)]
    pub(crate) output: OutputArgs,
}
