//! The arguments of `proctor schema`.

use clap::{Args, ValueEnum};

/// Print the JSON Schema of a file format, for editors.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  proctor schema eval
  mkdir -p .proctor && proctor schema eval > .proctor/eval.schema.json

Then start eval.yaml with this line:
  # yaml-language-server: $schema=.proctor/eval.schema.json")]
pub(crate) struct SchemaArgs {
    /// File format
    pub(crate) kind: SchemaKind,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
pub(crate) enum SchemaKind {
    /// Eval files (suites)
    Eval,
    /// Task files
    Task,
    /// Selection files: prompts, and the tools to choose for them
    Selection,
    /// Agent files
    Agent,
    /// MCP configs
    McpConfig,
    /// Scripts (`scripted:FILE`), the rules of scripted models
    Scripted,
    /// Evals files, for servers that ship evals
    Evals,
    /// `proctor.yaml`, with the profiles of `proctor check`
    Profiles,
}
