//! The arguments of `proctor completions` and `proctor man`, which packages of Proctor call.

use std::path::PathBuf;

use clap::{Args, ValueEnum};

/// Print the script for tab completion, which also completes the names of runs and trials.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  echo 'source <(proctor completions bash)' >> ~/.bashrc
  echo 'source <(proctor completions zsh)' >> ~/.zshrc
  proctor completions fish > ~/.config/fish/completions/proctor.fish
  proctor completions powershell >> $PROFILE
  proctor completions elvish >> ~/.config/elvish/rc.elv")]
pub(crate) struct CompletionsArgs {
    /// Shell
    pub(crate) shell: ShellName,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
pub(crate) enum ShellName {
    Bash,
    Zsh,
    Fish,
    #[value(name = "powershell")]
    PowerShell,
    Elvish,
}

/// Write a man page for each command.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  proctor man ~/.local/share/man/man1
  proctor man man1 && man -l man1/proctor-check.1

Overwrites the pages of an earlier version.")]
pub(crate) struct ManArgs {
    /// Folder to write to; it is created if it doesn't exist
    #[arg(value_name = "DIR")]
    pub(crate) folder: PathBuf,
}
