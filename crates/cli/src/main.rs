//! The command line program: parses the arguments, runs the command, and returns the exit code.

mod args;
mod commands;
mod completion;
mod demo;
mod exit;
mod output;
mod pager;
mod snippet;
mod threads;

use clap::Parser;
use proctor_contain::{guard, process};
use proctor_wire::relay;

use crate::args::{CliArguments, Command, JudgeCommand, ModelCommand};
use crate::exit::{Exit, ReportedExit};

/// What `proctor --version` prints.
const VERSION: &str = concat!("proctor ", env!("CARGO_PKG_VERSION"), "\n");

fn main() -> std::process::ExitCode {
    // The guard's commands come first: they close all files that the process inherited.
    if std::env::args_os()
        .nth(1)
        .is_some_and(|first| first == guard::COMMAND)
    {
        return guard::run(&std::env::args_os().skip(2).collect::<Vec<_>>());
    }
    if std::env::args_os()
        .nth(1)
        .is_some_and(|first| first == guard::host::COMMAND)
    {
        return guard::host::run();
    }
    // An agent waits for the relay when it starts a server, so it must start fast.
    if std::env::args_os()
        .nth(1)
        .is_some_and(|first| first == relay::COMMAND)
    {
        return relay::run(&std::env::args_os().skip(2).collect::<Vec<_>>());
    }
    if std::env::args_os()
        .nth(1)
        .is_some_and(|first| first == demo::COMMAND)
    {
        let words: Vec<_> = std::env::args_os().skip(2).collect();
        let served = demo::serve(&words, std::io::stdin().lock(), std::io::stdout().lock());
        return if served.is_ok() {
            Exit::Ok
        } else {
            Exit::Failed
        }
        .into();
    }
    // Scripts and `proctor doctor` ask often, and need neither a thread nor the other arguments.
    let words: Vec<_> = std::env::args_os().skip(1).take(2).collect();
    if matches!(&words[..], [word] if ["--version", "-V", "version"].iter().any(|v| word == v)) {
        return exit_code(output::result(VERSION).map(|()| Exit::Ok));
    }
    completion::answer();
    let done = threads::main_thread(run);
    process::end_hosts();
    match done {
        Ok(exit) => exit,
        Err(error) => {
            output::error(&error, &commands::known_secrets());
            Exit::Usage.into()
        }
    }
}

/// Runs the command that the arguments name.
fn run() -> std::process::ExitCode {
    std::panic::set_hook(Box::new(|panic| {
        let text = output::bug(&panic.to_string(), &commands::known_secrets());
        // If stderr is closed, there is no other place to report it.
        let _ = output::message(&text);
    }));
    let arguments = match CliArguments::try_parse() {
        Ok(arguments) => arguments,
        Err(error) => return refuse(&error),
    };
    output::set_colours(arguments.color);
    let done = match arguments.command {
        Command::Check(args) => commands::check::run(&args),
        Command::Validate(args) => commands::validate::run(&args),
        Command::List(args) => commands::list::run(&args),
        Command::Tools(args) => commands::tools::run(&args),
        Command::Lint(args) => commands::lint::run(&args),
        Command::Call(args) => commands::call::run(&args),
        Command::Login(args) => commands::login::run(&args),
        Command::Logout(args) => commands::login::logout(&args),
        // It exits with the code of the server.
        Command::Record(args) => match commands::record::run(&args) {
            Ok(code) => return code,
            Err(error) => Err(error),
        },
        Command::Result(command) => commands::result::run(&command),
        Command::View(args) => commands::viewer::run(&args),
        Command::Agents(args) => commands::agents::run(&args),
        Command::Sources(command) => commands::sources::run(&command),
        Command::Extensions(command) => commands::extensions::run(&command),
        Command::Evals(command) => commands::evals::run(&command),
        Command::Judge(JudgeCommand::Calibrate(args)) => commands::judge::calibrate(&args),
        Command::Model(ModelCommand::Serve(args)) => commands::model::serve(&args),
        Command::Schema(args) => commands::schema::run(&args),
        Command::Completions(args) => commands::completions::run(&args),
        Command::Init(args) => commands::init::run(&args),
        Command::Doctor(args) => commands::doctor::run(&args),
        Command::Man(args) => commands::man::run(&args),
        Command::Version => output::result(VERSION).map(|()| Exit::Ok),
    };
    exit_code(done)
}

/// The exit code of a command, after its error is shown.
fn exit_code(done: anyhow::Result<Exit>) -> std::process::ExitCode {
    match done {
        Ok(exit) => exit.into(),
        // The reader closed the pipe.
        Err(error) if output::is_broken_pipe(&error) => Exit::Ok.into(),
        Err(error) => {
            if let Some(ReportedExit(exit)) = error.downcast_ref() {
                return (*exit).into();
            }
            output::error(&error, &commands::known_secrets());
            Exit::Usage.into()
        }
    }
}

/// Prints help and version to stdout, and usage errors, which quote the arguments, redacted to stderr.
fn refuse(error: &clap::Error) -> std::process::ExitCode {
    let text = error.render().ansi().to_string();
    // If the stream is closed, there is no other place to report it.
    if error.use_stderr() {
        let _ = output::message(&commands::known_secrets().text(&text));
        Exit::Usage.into()
    } else {
        let _ = output::result(&text);
        Exit::Ok.into()
    }
}
