//! The arguments of `proctor extensions`.

use std::path::PathBuf;

use clap::{Args, Subcommand};

use super::OutputArgs;

/// Show and fetch the extension packages of a suite: programs that add step types.
#[derive(Debug, Subcommand)]
#[command(after_help = "Examples:
  proctor extensions list eval.yaml
  proctor extensions fetch eval.yaml")]
pub(crate) enum ExtensionsCommand {
    /// Show the released extensions of suites, their pinned releases, and whether they are in the cache
    ///
    /// Uses no network.
    #[command(after_help = "Examples:
  proctor extensions list eval.yaml
  proctor extensions list eval.yaml -o json | jq -r '.extensions[].release'

Exit codes: 0 listed, 2 usage or configuration error.")]
    List(ExtensionsListArgs),
    /// Fetch the released extensions that are not in the cache
    ///
    /// A package must have the digest that `proctor.lock` has. Without one, Proctor shows the release, its digest and
    /// who signed it, and asks; then it pins the digest. A published signature that is not valid is refused.
    ///
    /// `PROCTOR_GITHUB_URL` names another host than github.com: GitHub Enterprise, or a mirror.
    /// `PROCTOR_SIGSTORE_ROOT` names another trusted root for signatures than that of sigstore.dev.
    #[command(after_help = "Examples:
  proctor extensions fetch eval.yaml
  proctor extensions fetch eval.yaml --yes
  proctor extensions fetch eval.yaml --update --name k8s
  PROCTOR_GITHUB_URL=https://mirror.example.com proctor extensions fetch eval.yaml

Exit codes: 0 fetched, 2 usage error, no consent or not fetched, 130 interrupted.")]
    Fetch(ExtensionsFetchArgs),
}

#[derive(Debug, Args)]
pub(crate) struct ExtensionsListArgs {
    /// Eval files of suites
    #[arg(required = true, value_name = "FILE")]
    pub(crate) files: Vec<PathBuf>,

    #[command(flatten)]
    pub(crate) output: OutputArgs,
}

#[derive(Debug, Args)]
pub(crate) struct ExtensionsFetchArgs {
    /// Eval file of the suite
    #[arg(value_name = "FILE")]
    pub(crate) file: PathBuf,

    /// Only the extension with this alias (repeatable)
    #[arg(long = "name", value_name = "ALIAS")]
    pub(crate) names: Vec<String>,

    /// Pin what the releases contain now, also the latest release of packages without a tag
    #[arg(long)]
    pub(crate) update: bool,

    /// Pin new packages without asking for consent
    #[arg(short, long)]
    pub(crate) yes: bool,
}
