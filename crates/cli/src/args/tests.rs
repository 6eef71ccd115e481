//! The help of every command has examples, and each of them is a command line that Proctor accepts.

use clap::{Command, CommandFactory};

use super::CliArguments;

/// All commands with their help, hidden ones too.
fn commands() -> Vec<(String, String)> {
    fn collect(command: &Command, name: &str, into: &mut Vec<(String, String)>) {
        let help = command.get_after_help().map(ToString::to_string);
        into.push((name.to_owned(), help.unwrap_or_default()));
        let below = command.get_subcommands();
        for command in below.filter(|it| it.get_name() != "help") {
            collect(command, &format!("{name} {}", command.get_name()), into);
        }
    }
    let mut all = Vec::new();
    collect(&CliArguments::command(), "proctor", &mut all);
    all
}

/// The lines below `Examples:`, which must be the first line.
fn examples(help: &str) -> Option<Vec<&str>> {
    let rest = help.strip_prefix("Examples:\n")?;
    let lines = rest.lines().take_while(|line| !line.is_empty());
    Some(lines.collect())
}

/// The commands of a line, in words: those that pipes and `&&` separate, without redirections, variables before
/// the command, and the explanation behind two spaces.
fn split(line: &str) -> Vec<Vec<String>> {
    let mut all = vec![Vec::new()];
    let (mut word, mut quote, mut spaces) = (None::<String>, None, 0);
    for c in line.trim_start().chars().chain([' ']) {
        spaces = if c == ' ' { spaces + 1 } else { 0 };
        match (c, quote) {
            (' ', None) if spaces == 2 => break,
            (' ', None) => match word.take().as_deref() {
                Some("|" | "&&") => all.push(Vec::new()),
                Some(whole) => all.last_mut().expect("never empty").push(whole.to_owned()),
                None => {}
            },
            ('\'' | '"', None) => {
                quote = Some(c);
                word.get_or_insert_default();
            }
            (c, Some(open)) if c == open => quote = None,
            (c, _) => word.get_or_insert_default().push(c),
        }
    }
    for command in &mut all {
        let is_variable = |word: &String| {
            let name = word.split_once('=').map_or("", |(name, _)| name);
            !name.is_empty() && name.chars().all(|c| c.is_ascii_uppercase() || c == '_')
        };
        while command.first().is_some_and(is_variable) {
            command.remove(0);
        }
        let redirected = command.iter().position(|word| word == ">" || word == ">>");
        command.truncate(redirected.unwrap_or(command.len()));
    }
    all
}

#[test]
fn lines_are_split_as_shells_do() {
    let check = |line: &str, expected: &[&[&str]]| assert_eq!(split(line), expected, "{line}");
    check(
        "  proctor list e.yaml  what runs",
        &[&["proctor", "list", "e.yaml"]],
    );
    check("a -r '^x  y|' > out.txt", &[&["a", "-r", "^x  y|"]]);
    check(
        "KEY=v a --header 'X: \"y\"' | jq .x && b",
        &[&["a", "--header", "X: \"y\""], &["jq", ".x"], &["b"]],
    );
}

#[test]
fn the_help_of_every_command_starts_with_examples_of_it() {
    for (name, help) in commands() {
        let lines = examples(&help)
            .unwrap_or_else(|| panic!("the help of `{name}` does not start with `Examples:`"));
        let is_of_it = |line: &&str| line.contains(&name);
        assert!(lines.iter().any(is_of_it), "{name}: {lines:?}");
    }
}

#[test]
fn every_example_is_accepted() {
    let mut accepted = 0;
    for (name, help) in commands() {
        for line in examples(&help).unwrap_or_default() {
            let parts = split(line);
            let own = parts
                .iter()
                .filter(|words| words.first().is_some_and(|it| it == "proctor"));
            let own: Vec<_> = own.collect();
            // `echo 'source <(proctor completions bash)'` is the only other way to call it.
            assert!(
                !own.is_empty() || line.contains("<(proctor "),
                "{name}: {line}"
            );
            for words in own {
                let parsed = CliArguments::command().try_get_matches_from(words);
                assert!(parsed.is_ok(), "{name}: {line}\n{}", parsed.unwrap_err());
                accepted += 1;
            }
        }
    }
    assert!(accepted > 100, "only {accepted} examples were found");
}
