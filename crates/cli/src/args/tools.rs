//! The arguments of `proctor tools` and `proctor lint`.

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use proctor_core::lint::{LintRule, LintSeverity, SwitchedOffRule};
use proctor_record::event::ChangeClass;

use super::ServerArgs;

/// Show what a server offers; lock it in a file, or compare it with one.
///
/// Shows the server's version, capabilities, tools, resources and prompts, and the findings of `proctor lint`.
///
/// `--lock` writes all that clients and models depend on to a file, one line per leaf, to review in a diff.
/// `--against` compares servers with such a file: each change is breaking (something that worked no longer
/// works), review (a person should look at it) or safe. No model is asked.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  proctor tools -- npx -y @modelcontextprotocol/server-everything
  proctor tools --url http://localhost:8080/mcp
  proctor tools --config mcp-config.yaml --server files -o json | jq '.tools[].name'
  proctor tools --config mcp-config.yaml --lock surface.lock.json
  proctor tools --config mcp-config.yaml --against surface.lock.json -o markdown

Exit codes: 0 listed, locked, or all changes are allowed; 1 changes that are not allowed, or a protocol
problem with --strict; 2 usage error or unusable lock; 3 the server could not be reached or did not
answer.")]
pub(crate) struct ToolsArgs {
    /// Write what the servers offer to this file; without --server, all servers of --config
    #[arg(long, value_name = "FILE", conflicts_with = "against")]
    pub(crate) lock: Option<PathBuf>,

    /// Compare the servers with this file, which --lock wrote
    #[arg(long, value_name = "FILE")]
    pub(crate) against: Option<PathBuf>,

    /// Changes that are allowed with --against
    #[arg(
        long,
        value_name = "CLASSES",
        requires = "against",
        value_delimiter = ',',
        default_value = "safe,review",
        value_parser = class
    )]
    pub(crate) allow: Vec<ChangeClass>,

    /// Highest estimated number of tokens of all tools in a model request, with --against
    #[arg(long, value_name = "N", requires = "against", value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) max_schema_tokens: Option<u64>,

    #[command(flatten)]
    pub(crate) server: ServerArgs,

    /// Output format
    #[arg(short, long, value_name = "FORMAT", default_value = "text")]
    pub(crate) output: ToolsFormat,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum ToolsFormat {
    /// Text for people
    Text,
    /// One JSON document, for scripts
    Json,
    /// With --against: a comment for a pull request
    Markdown,
    /// With --against: annotations for a GitHub workflow
    Github,
}

fn class(word: &str) -> Result<ChangeClass, String> {
    let known = ChangeClass::ALL.map(ChangeClass::word).join(", ");
    ChangeClass::parse(word).ok_or_else(|| format!("write one of: {known}"))
}

/// Find what makes the tools of a server hard to use or unsafe for a model.
///
/// Lists the tools, and calls none. Checks names, descriptions, schemas, annotations and size, and looks for
/// hidden characters and orders to the model. docs/lint.md has all rules with their reasons.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  proctor lint -- npx -y @modelcontextprotocol/server-everything
  proctor lint --config mcp-config.yaml
  proctor lint eval.yaml                        the suite's servers; `config.lint` switches rules off
  proctor lint --off 'heavy-tool=the schema is generated' --url http://localhost:8080/mcp

Exit codes: 0 no finding of the severity of --fail-on, 1 findings, 2 usage error, 3 a server could not be
reached or did not answer.")]
pub(crate) struct LintArgs {
    /// Eval file whose servers are checked
    #[arg(value_name = "FILE", conflicts_with_all = ["url", "config", "command"])]
    pub(crate) file: Option<PathBuf>,

    /// Switch a rule off, with the reason (repeatable)
    #[arg(long, value_name = "RULE=REASON", value_parser = switched_off)]
    pub(crate) off: Vec<SwitchedOffRule>,

    /// The lowest severity that fails the command
    #[arg(long, value_name = "SEVERITY", default_value = "error")]
    pub(crate) fail_on: FailOn,

    #[command(flatten)]
    pub(crate) server: ServerArgs,

    /// Output format
    #[arg(short, long, value_name = "FORMAT", default_value = "text")]
    pub(crate) output: LintFormat,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum LintFormat {
    /// Text for people
    Text,
    /// One JSON document, for scripts
    Json,
    /// Annotations for a GitHub workflow
    Github,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum FailOn {
    Error,
    Warning,
    Note,
}

impl FailOn {
    pub(crate) fn severity(self) -> LintSeverity {
        match self {
            Self::Error => LintSeverity::Error,
            Self::Warning => LintSeverity::Warning,
            Self::Note => LintSeverity::Note,
        }
    }
}

fn switched_off(text: &str) -> Result<SwitchedOffRule, String> {
    let (rule, reason) = text.split_once('=').unwrap_or((text, ""));
    let rule = LintRule::parse(rule).ok_or_else(|| {
        let known: Vec<&str> = LintRule::ALL.iter().map(|rule| rule.id()).collect();
        format!("unknown rule; known: {}", known.join(", "))
    })?;
    if reason.trim().is_empty() {
        return Err("add the reason: `RULE=REASON`".to_owned());
    }
    Ok(SwitchedOffRule {
        rule,
        reason: reason.trim().to_owned(),
        tool: None,
    })
}
