//! The guard as a program of its own, which starts faster than `proctor` does.

use std::ffi::OsString;
use std::process::ExitCode;

use proctor_contain::guard;

fn main() -> ExitCode {
    let args: Vec<OsString> = std::env::args_os().skip(1).collect();
    match args.split_first() {
        Some((first, rest)) if first == guard::COMMAND => guard::run(rest),
        Some((first, [])) if first == guard::host::COMMAND => guard::host::run(),
        _ => guard::explain(),
    }
}
