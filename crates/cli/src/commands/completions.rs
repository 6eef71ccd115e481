//! `proctor completions`: the script that makes a shell complete commands, runs and trials.

use crate::args::{CompletionsArgs, ShellName};
use crate::completion;
use crate::exit::Exit;
use crate::output;

pub(crate) fn run(args: &CompletionsArgs) -> anyhow::Result<Exit> {
    let shell = match args.shell {
        ShellName::Bash => "bash",
        ShellName::Zsh => "zsh",
        ShellName::Fish => "fish",
        ShellName::PowerShell => "powershell",
        ShellName::Elvish => "elvish",
    };
    output::result(&completion::registration(shell)?)?;
    Ok(Exit::Ok)
}
