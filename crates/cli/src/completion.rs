//! Tab completion: a shell asks this program, which knows the names of runs and trials.
//!
//! Main functions: [`answer`], which a shell calls through a variable, and [`registration`], the script that tells
//! the shell to do so.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::path::Path;

use clap::{Arg, Command, CommandFactory};
use clap_complete::engine::{
    ArgValueCompleter, CompletionCandidate, PathCompleter, ValueCompleter,
};
use clap_complete::env::{CompleteEnv, Shells};
use proctor_core::{runs, trial_names};
use proctor_record::record::RunReader;
use proctor_run::engine::runs::RUNS;

use crate::args::CliArguments;

/// The variable that asks for completions. Its value is the name of the shell.
const VARIABLE: &str = "PROCTOR_COMPLETE";

/// Answers a shell that asks for completions, and ends the program. Does nothing otherwise.
pub(crate) fn answer() {
    if std::env::var_os(VARIABLE).is_some() {
        CompleteEnv::with_factory(command).var(VARIABLE).complete();
    }
}

/// The script that makes a shell ask this program.
pub(crate) fn registration(shell: &str) -> anyhow::Result<String> {
    let shells = Shells::builtins();
    let Some(completer) = shells.completer(shell) else {
        anyhow::bail!("no completion for the shell `{shell}`");
    };
    let mut script = Vec::new();
    completer.write_registration(VARIABLE, "proctor", "proctor", "proctor", &mut script)?;
    let script = String::from_utf8(script)?;
    Ok(match shell {
        "bash" => format!(
            "{BASH_COLONS}{}",
            script.replace("-F _clap_complete_proctor", "-F _proctor")
        ),
        _ => script,
    })
}

/// Bash splits words at colons, and replaces only what follows the last one. This function joins such words before it
/// asks, and takes from the answers what is typed already.
const BASH_COLONS: &str = r#"
_proctor() {
    if [[ $COMP_WORDBREAKS != *:* ]]; then
        _clap_complete_proctor "$@"
        return
    fi
    local joined=() last=-1 index=0 current=$2 rest=$COMP_LINE i word
    for i in "${!COMP_WORDS[@]}"; do
        word=${COMP_WORDS[i]}
        if [[ $last -ge 0 && $rest != [[:space:]]* && ( $word == :* || ${joined[last]} == *: ) ]]; then
            [[ $i -eq $COMP_CWORD ]] && current=${joined[last]}$2
            joined[last]+=$word
        else
            last=$((last + 1))
            joined[last]=$word
        fi
        [[ $i -eq $COMP_CWORD ]] && index=$last
        rest=${rest#"${rest%%[![:space:]]*}"}
        rest=${rest#"$word"}
    done
    # Behind a colon, bash names the colon as the word, and what follows as typed.
    [[ ${COMP_WORDS[COMP_CWORD]} == :* ]] && current=${joined[index]}
    local COMP_WORDS=("${joined[@]}") COMP_CWORD=$index
    _clap_complete_proctor "$1" "$current" "$3"
    local typed=${current%"${current##*:}"}
    COMPREPLY=("${COMPREPLY[@]#"$typed"}")
}
"#;

/// The commands, with completions wherever an argument is a run or a trial.
fn command() -> Command {
    with_names(CliArguments::command())
}

fn with_names(command: Command) -> Command {
    let command = command.mut_args(|arg| match value_name(&arg).as_deref() {
        Some("RUN" | "BASE" | "NEW") => arg.add(ArgValueCompleter::new(run_names)),
        Some("TRIAL") => arg.add(ArgValueCompleter::new(trials)),
        Some(_) | None => arg,
    });
    command.mut_subcommands(with_names)
}

fn value_name(arg: &Arg) -> Option<String> {
    let name = arg.get_value_names()?.first()?;
    Some(name.to_string())
}

/// The runs in `.proctor/runs`, newest first, and otherwise paths.
fn run_names(current: &OsStr) -> Vec<CompletionCandidate> {
    let typed = current.to_string_lossy();
    let mut names = vec!["latest".to_owned()];
    if let Ok(found) = runs::list(Path::new(RUNS)) {
        let found = found.iter().filter_map(|entry| entry.folder.file_name());
        names.extend(found.map(|name| name.to_string_lossy().into_owned()));
    }
    // A part of a name is a name too, but a shell only adds to what is typed.
    names.retain(|name| name.starts_with(typed.as_ref()));
    if names.is_empty() {
        return PathCompleter::any().complete(current);
    }
    names.into_iter().map(CompletionCandidate::new).collect()
}

/// The cases of the run that is typed already, or the numbers of a case's trials.
fn trials(current: &OsStr) -> Vec<CompletionCandidate> {
    let typed = unquoted(&current.to_string_lossy());
    let words = words();
    let [run, before @ ..] = &words[..] else {
        return Vec::new();
    };
    let mut names = names_of(run, &before.join(" ")).unwrap_or_default();
    names.retain(|name| name.starts_with(&typed));
    names.dedup();
    names.into_iter().map(CompletionCandidate::new).collect()
}

/// The words that follow the command, without flags and without the word that is being typed.
fn words() -> Vec<String> {
    let words = std::env::args().skip_while(|word| word != "--").skip(1);
    let mut words: Vec<String> = words.collect();
    words.pop();
    let is_command = |word: &String| ["view", "show", "regrade"].contains(&word.as_str());
    let start = words
        .iter()
        .position(is_command)
        .map_or(words.len(), |at| at + 1);
    let words = words.drain(start..).filter(|word| !word.starts_with('-'));
    words.map(|word| unquoted(&word)).collect()
}

/// A word as the shell would pass it: bash and zsh tell words as they are typed, with quotes and backslashes.
fn unquoted(word: &str) -> String {
    let mut out = String::new();
    let mut quote = None;
    let mut chars = word.chars();
    while let Some(c) = chars.next() {
        match (c, quote) {
            ('\\', None | Some('"')) => out.extend(chars.next()),
            ('\'' | '"', None) => quote = Some(c),
            (c, Some(open)) if c == open => quote = None,
            (c, _) => out.push(c),
        }
    }
    out
}

/// What may follow the words after the run: a case, the number of a trial, or the rest of a name with spaces.
fn names_of(run: &str, before: &str) -> Option<Vec<String>> {
    let folder = runs::resolve(Path::new(RUNS), Path::new(run)).ok()?;
    let run = RunReader::open(&folder).ok()?;
    let trials = trial_names::load(&run).ok()?;
    let mut names: Vec<String> = trials.iter().map(|trial| trial.case.clone()).collect();
    let several = trials.iter().any(|trial| trial.agent != trials[0].agent);
    if several {
        let agents = trials.iter().filter_map(|trial| {
            let agent = trial.agent.as_deref()?.split(" (").next()?;
            Some(format!("{agent}/{}", trial.case))
        });
        names.extend(agents.collect::<Vec<String>>());
    }
    names.sort();
    if before.is_empty() {
        return Some(names);
    }
    if !names.iter().any(|name| name == before) {
        let rests = names.iter().filter_map(|name| name.strip_prefix(before));
        let rests = rests.filter_map(|rest| rest.strip_prefix(' '));
        return Some(rests.map(str::to_owned).collect());
    }
    let chosen = trial_names::select(trials, before).ok()?;
    // Several agents have trials with the same number.
    let numbers: BTreeSet<u32> = chosen.iter().map(|trial| trial.repeat).collect();
    Some(numbers.iter().map(ToString::to_string).collect())
}

#[cfg(test)]
mod tests {
    use super::unquoted;

    #[test]
    fn words_lose_their_quotes() {
        let check = |typed: &str, expected: &str| assert_eq!(unquoted(typed), expected);
        check("plain-1", "plain-1");
        check(r"list\ a\ folder", "list a folder");
        check("'list a folder'", "list a folder");
        check(r#""it's \"x\"""#, "it's \"x\"");
        check("'list a", "list a");
    }
}
