//! `proctor check --profile`: adds the values of a profile to the command line, and parses it again.
//!
//! So a profile can say what flags can say, and nothing else. A flag on the command line wins, also over a key
//! for a flag that excludes it, such as `jobs` if `--parallel` is given.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use anyhow::Context;
use clap::parser::ValueSource;
use clap::{Arg, ArgMatches, CommandFactory, Parser};
use proctor_core::profile::{self, PROFILES_FILE, Profile, ProfileValue};
use proctor_record::event::PlannedProfile;
use proctor_record::problem::{Code, Problem, Problems};

use crate::args::{CheckArgs, CliArguments, Command};
use crate::commands::refused::RefusedRun;
use crate::commands::{drawn, tally};
use crate::exit::Exit;
use crate::output;

/// The arguments with the values of a profile.
pub(super) fn apply(args: &CheckArgs, name: &str) -> anyhow::Result<CheckArgs> {
    let mut problems = Problems::default();
    let profile =
        find(&args.files, &mut problems).and_then(|file| profile::load(&file, name, &mut problems));
    let Some(profile) = profile else {
        output::message(&drawn(&problems))?;
        let first = problems.iter().next();
        let first = first.map_or(String::new(), |problem| format!(": {}", problem.message));
        return Err(RefusedRun {
            exit: Exit::Usage,
            message: format!("profile `{name}`: {}{first}", tally(&problems)),
            problems: problems
                .iter()
                .filter_map(|problem| serde_json::to_value(problem).ok())
                .collect(),
            is_documented: false,
        }
        .into());
    };
    merged(&profile, &std::env::args_os().collect::<Vec<_>>())
}

/// The file with the profiles of all suites.
pub(super) fn find(files: &[PathBuf], problems: &mut Problems) -> Option<PathBuf> {
    let mut found: Option<(PathBuf, &Path)> = None;
    for path in files {
        let folder = super::watch::folder_of(path);
        // A path that does not exist is reported with the suite.
        let folder = folder.canonicalize().unwrap_or(folder);
        let Some(file) = profile::find(&folder) else {
            let message = format!("no `{PROFILES_FILE}` in `{}` or above it", folder.display());
            let problem = Problem::error(Code::File, message);
            problems.push(problem.hint(format!(
                "write `profiles: {{NAME: {{runs: 3}}}}` to `{PROFILES_FILE}` beside the suite"
            )));
            return None;
        };
        match &found {
            Some((known, first)) if *known != file => {
                let message = format!(
                    "`{}` and `{}` have different profiles: `{}` and `{}`",
                    first.display(),
                    path.display(),
                    known.display(),
                    file.display()
                );
                problems.push(Problem::error(Code::Conflict, message));
                return None;
            }
            Some(_) => {}
            None => found = Some((file, path)),
        }
    }
    found.map(|(file, _)| file)
}

/// Parses the command line with the values that it does not set itself.
fn merged(profile: &Profile, words: &[OsString]) -> anyhow::Result<CheckArgs> {
    let shown = || format!("profile `{}` in `{}`", profile.name, profile.file.display());
    let given = CliArguments::command()
        .try_get_matches_from(words)
        .with_context(shown)?;
    let given = given
        .subcommand_matches("check")
        .context("profiles are for `proctor check`")?;
    let mut added = Vec::new();
    let mut overridden = Vec::new();
    for value in &profile.values {
        if is_given(given, &value.key) {
            overridden.push(value.key.clone());
        } else {
            added.extend(flags(value));
        }
    }
    let at = words.iter().position(|word| word == "check");
    let at = at.context("profiles are for `proctor check`")? + 1;
    let (before, after) = words.split_at(at);
    let all = before.iter().cloned().chain(added).chain(after.to_vec());
    let parsed = CliArguments::try_parse_from(all);
    // The text of the error has its own prefix, and the usage of a command line that was not typed.
    let parsed = parsed.map_err(|error| {
        let text = error.render().to_string();
        let line = text.lines().next().unwrap_or_default();
        anyhow::anyhow!("{}", line.trim_start_matches("error: ").to_owned())
    });
    let Command::Check(mut args) = parsed.with_context(shown)?.command else {
        anyhow::bail!("profiles are for `proctor check`");
    };
    let file = std::path::absolute(&profile.file)?;
    let values = profile.values.iter();
    args.applied_profile = Some(PlannedProfile {
        name: profile.name.clone(),
        file: file.display().to_string(),
        values: values
            .map(|value| (value.key.clone(), value.texts.join(", ")))
            .collect(),
        overridden,
    });
    Ok(*args)
}

/// The flag of a key: `budgetUsd` is `--budget-usd`.
fn flag(key: &str) -> String {
    match key {
        "labels" => "label-selector".to_owned(),
        "agents" => "agent".to_owned(),
        _ => {
            let mut flag = String::new();
            for letter in key.chars() {
                if letter.is_ascii_uppercase() {
                    flag.push('-');
                }
                flag.push(letter.to_ascii_lowercase());
            }
            flag
        }
    }
}

/// Whether the command line has the flag of a key, or one that excludes it.
fn is_given(given: &ArgMatches, key: &str) -> bool {
    let command = CliArguments::command();
    let Some(check) = command.find_subcommand("check") else {
        return false;
    };
    let flag = flag(key);
    let is_of_flag = |arg: &&Arg| arg.get_long() == Some(&flag);
    let Some(arg) = check.get_arguments().find(is_of_flag) else {
        return false;
    };
    let excluded = check.get_arg_conflicts_with(arg);
    let mut all = std::iter::once(arg).chain(excluded);
    all.any(|arg| given.value_source(arg.get_id().as_str()) == Some(ValueSource::CommandLine))
}

/// The words for the command line.
fn flags(value: &ProfileValue) -> Vec<OsString> {
    let flag = flag(&value.key);
    let word = |text: &String| match text.as_str() {
        "false" if is_switch(&flag) => None,
        "true" if is_switch(&flag) => Some(format!("--{flag}").into()),
        text => Some(format!("--{flag}={text}").into()),
    };
    value.texts.iter().filter_map(word).collect()
}

/// Whether a flag has no value.
fn is_switch(flag: &str) -> bool {
    let command = CliArguments::command();
    let check = command.find_subcommand("check");
    let mut flags = check.into_iter().flat_map(clap::Command::get_arguments);
    flags.any(|arg| arg.get_long() == Some(flag) && !arg.get_action().takes_values())
}

#[cfg(test)]
mod tests {
    use proctor_core::decode::Decode;
    use proctor_core::profile::ProfileFile;

    use super::*;

    fn profile(values: &[(&str, &str)]) -> Profile {
        Profile {
            name: "pr".to_owned(),
            file: PathBuf::from("proctor.yaml"),
            values: values
                .iter()
                .map(|(key, text)| ProfileValue {
                    key: (*key).to_owned(),
                    texts: vec![(*text).to_owned()],
                })
                .collect(),
        }
    }

    fn merge(values: &[(&str, &str)], words: &[&str]) -> anyhow::Result<CheckArgs> {
        let words = ["proctor", "check"].iter().chain(words).map(OsString::from);
        merged(&profile(values), &words.collect::<Vec<_>>())
    }

    #[test]
    fn every_key_is_a_flag() {
        let command = CliArguments::command();
        let check = command.find_subcommand("check").unwrap();
        for key in ProfileFile::KEYS {
            let flag = flag(key);
            let mut flags = check.get_arguments();
            assert!(flags.any(|arg| arg.get_long() == Some(&flag)), "{key}");
        }
    }

    #[test]
    fn the_command_line_wins() {
        let values = [
            ("runs", "5"),
            ("jobs", "8"),
            ("failFast", "true"),
            ("strict", "false"),
        ];
        let args = merge(&values, &["a.yaml"]).unwrap();
        assert_eq!((args.plan.runs, args.run.jobs), (Some(5), Some(8)));
        assert!(args.run.fail_fast && !args.run.strict);
        let args = merge(&values, &["-n", "2", "-p", "3", "--", "a.yaml"]).unwrap();
        assert_eq!((args.plan.runs, args.run.jobs), (Some(2), None));
        assert_eq!(args.run.parallel, 3);
        let applied = args.applied_profile.unwrap();
        assert_eq!(applied.overridden, ["runs", "jobs"]);
        assert_eq!(applied.values["runs"], "5");
    }

    #[test]
    fn values_that_no_flag_takes_are_errors_that_name_the_profile() {
        for values in [
            &[("taskTimeout", "0s")][..],
            &[("jobs", "2"), ("parallel", "2")],
        ] {
            let error = merge(values, &["a.yaml"]).unwrap_err();
            let text = format!("{error:#}");
            assert!(text.contains("profile `pr` in `proctor.yaml`"), "{text}");
        }
    }
}
