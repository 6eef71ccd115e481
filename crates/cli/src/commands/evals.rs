//! `proctor evals`: lists, runs, writes, validates and serves the evals that servers ship.

mod init;
mod list;
mod run;
#[cfg(test)]
mod samples;
pub(super) mod screen;
mod serve;
pub(super) mod servers;
mod validate;

use crate::args::EvalsCommand;
use crate::exit::Exit;

pub(crate) fn run(command: &EvalsCommand) -> anyhow::Result<Exit> {
    match command {
        EvalsCommand::List(args) => list::run(args),
        EvalsCommand::Run(args) => run::run(args),
        EvalsCommand::Init(args) => init::run(args),
        EvalsCommand::Serve(args) => serve::run(args),
        EvalsCommand::Validate(args) => validate::run(args),
    }
}
