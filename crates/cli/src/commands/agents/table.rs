//! The text output of `proctor agents`: a table, and below it what is missing.

use std::path::Path;

use anstyle::{AnsiColor, Style};
use proctor_core::printable::printable;
use proctor_record::hint::listed;
use proctor_run::external::{AgentKey, Survey};
use unicode_width::UnicodeWidthStr;

use super::super::counted;

const GOOD: Style = AnsiColor::Green.on_default().bold();
const BAD: Style = AnsiColor::BrightRed.on_default().bold();
const DOUBTFUL: Style = AnsiColor::BrightYellow.on_default().bold();

/// The terminal width from which the last two columns of the table fit.
const WIDE: usize = 120;

/// The column titles. Narrow terminals don't show the last two.
const COLUMNS: [&str; 6] = ["", "AGENT", "PROGRAM", "KEY", "TAP", "PATH"];

/// The widest cell of an agent, a program or a key; longer ones are cut.
const WIDEST: usize = 28;

/// Renders the survey of agents for the width of the terminal.
pub(super) fn render(surveys: &[Survey]) -> String {
    let width = terminal_size::terminal_size().map_or(80, |(width, _)| usize::from(width.0));
    render_for(surveys, width.max(40))
}

fn render_for(surveys: &[Survey], width: usize) -> String {
    let mut out = table(surveys, width);
    let missing: Vec<&Survey> = surveys.iter().filter(|s| !s.is_usable()).collect();
    if !missing.is_empty() {
        out.push_str("\nMissing:\n");
    }
    for survey in missing {
        out.push_str(&format!("  {}\n", printable(&survey.name)));
        for line in lacks(survey) {
            for line in line.lines() {
                push_wrapped(&printable(line), width, &mut out);
            }
        }
    }
    let count = |wanted: AgentState| surveys.iter().filter(|one| state(one) == wanted).count();
    let ready = count(AgentState::Ready);
    let all = counted(surveys.len(), "agent");
    let is = if ready == 1 { "is" } else { "are" };
    let unchecked = match count(AgentState::Unchecked) {
        0 => String::new(),
        unchecked => format!(", {unchecked} unchecked"),
    };
    out.push_str(&format!("\n{ready} of {all} {is} ready{unchecked}.\n"));
    let silent = |survey: &&Survey| state(survey) == AgentState::Unchecked && survey.is_silent;
    for survey in surveys.iter().filter(silent) {
        let name = printable(&survey.name).into_owned();
        out.push_str(&format!(
            "`{name}` was not started. To check it, set `getVersion` in its agent file.\n"
        ));
    }
    let untold: Vec<&str> = surveys
        .iter()
        .filter(|survey| !survey.can_be_told)
        .map(|survey| survey.name.as_str())
        .collect();
    if !untold.is_empty() {
        let names = printable(&listed(untold)).into_owned();
        let line = format!("`scripted:FILE` and `--model-tap` don't work with {names}.");
        out.push_str(&format!("{line}\n"));
    }
    if surveys
        .iter()
        .any(|survey| state(survey) == AgentState::NoKey)
    {
        out.push_str("Without a key, run an agent on a script: `--agent NAME=scripted:FILE`.\n");
    }
    out
}

/// The state of an agent, as the first column shows it.
#[derive(Clone, Copy, PartialEq, Eq)]
enum AgentState {
    Ready,
    /// Nothing is missing, but Proctor did not start the program.
    Unchecked,
    NoKey,
    NoProgram,
    Broken,
    Unfit,
}

fn state(survey: &Survey) -> AgentState {
    match &survey.program {
        _ if survey.is_usable() && survey.is_checked => AgentState::Ready,
        _ if survey.is_usable() => AgentState::Unchecked,
        Some(program) if program.path.is_none() => AgentState::NoProgram,
        _ if survey.broken.is_some() => AgentState::Broken,
        _ if matches!(survey.key, AgentKey::Wanted(_)) => AgentState::NoKey,
        _ => AgentState::Unfit,
    }
}

impl AgentState {
    fn word(self) -> &'static str {
        match self {
            Self::Ready => "ready",
            Self::Unchecked => "unchecked",
            Self::NoKey => "no key",
            Self::NoProgram => "missing",
            Self::Broken => "broken",
            Self::Unfit => "unfit",
        }
    }

    fn style(self) -> Style {
        match self {
            Self::Ready => GOOD,
            Self::NoKey | Self::Unchecked => DOUBTFUL,
            Self::NoProgram | Self::Broken | Self::Unfit => BAD,
        }
    }
}

fn table(surveys: &[Survey], width: usize) -> String {
    let columns = if width >= WIDE { 6 } else { 4 };
    let mut rows = vec![(Style::new(), COLUMNS.map(str::to_owned))];
    rows.extend(surveys.iter().map(|one| (state(one).style(), cells(one))));
    let widest = |at: usize| rows.iter().map(|(_, row)| row[at].width()).max();
    let widths: Vec<usize> = (0..columns).map(|at| widest(at).unwrap_or(0)).collect();
    let mut out = String::new();
    for (style, row) in &rows {
        let gap = |at: usize| " ".repeat(widths[at] - row[at].width() + 2);
        let mut rest = String::new();
        for (at, cell) in row.iter().enumerate().take(columns).skip(1) {
            rest.push_str(cell);
            rest.push_str(&gap(at));
        }
        let rest = cut(rest.trim_end(), width.saturating_sub(widths[0] + 2));
        let line = format!("{style}{}{style:#}{}{rest}", row[0], gap(0));
        out.push_str(line.trim_end());
        out.push('\n');
    }
    out
}

fn cells(survey: &Survey) -> [String; 6] {
    let (program, path) = match &survey.program {
        None => ("built in".to_owned(), String::new()),
        Some(program) => match &program.path {
            None => (format!("no {}", program.name), String::new()),
            Some(path) => {
                let version = program.version.as_deref().map(number);
                let version = version.map_or(String::new(), |number| format!(" {number}"));
                (format!("{}{version}", program.name), home(path))
            }
        },
    };
    let key = match &survey.key {
        AgentKey::NotNeeded => "not needed",
        AgentKey::Found(variable) => variable,
        AgentKey::Wanted(_) => "none",
        AgentKey::Own => "its own",
    };
    let tap = if survey.can_be_told { "yes" } else { "no" };
    [
        state(survey).word().to_owned(),
        cut(&printable(&survey.name), WIDEST),
        cut(&printable(&program), WIDEST),
        cut(&printable(key), WIDEST),
        tap.to_owned(),
        printable(&path).into_owned(),
    ]
}

/// The version number in the output of `--version`.
fn number(version: &str) -> &str {
    let is_number = |word: &&str| {
        let word = word.trim_start_matches('v');
        word.starts_with(|c: char| c.is_ascii_digit())
    };
    let found = version.split_whitespace().find(is_number);
    found.unwrap_or(version).trim_end_matches(['.', ',', ';'])
}

/// A path, with `~` for the user's home.
fn home(path: &Path) -> String {
    let home = std::env::var_os("HOME").filter(|home| !home.is_empty());
    let below = home.and_then(|home| path.strip_prefix(home).ok());
    match below {
        Some(below) => format!("~/{}", below.display()),
        None => path.display().to_string(),
    }
}

/// What an agent needs, and how to get it.
fn lacks(survey: &Survey) -> Vec<String> {
    let mut lines = Vec::new();
    if let Some(program) = survey.program.as_ref().filter(|p| p.path.is_none()) {
        lines.push(match program.install {
            Some(install) => install.to_owned(),
            None => format!("program `{}` not found", program.name),
        });
    }
    lines.extend(survey.broken.clone());
    if let AgentKey::Wanted(variables) = &survey.key {
        lines.push(format!("set {}", variables.join(" or ")));
    }
    if lines.is_empty() {
        lines.extend(survey.problem.clone());
    }
    lines
}

/// Appends a text, wrapped between words.
fn push_wrapped(text: &str, width: usize, out: &mut String) {
    const INDENT: &str = "    ";
    let mut line = INDENT.to_owned();
    for word in text.split(' ') {
        let is_empty = line.trim().is_empty();
        if !is_empty && line.width() + 1 + word.width() > width {
            out.push_str(&line);
            out.push('\n');
            line = format!("{INDENT}  {word}");
        } else {
            line.push_str(if is_empty { "" } else { " " });
            line.push_str(word);
        }
    }
    out.push_str(&line);
    out.push('\n');
}

/// The text, or its beginning with an ellipsis.
fn cut(text: &str, room: usize) -> String {
    if text.width() <= room {
        return text.to_owned();
    }
    let mut end = 0;
    for (at, c) in text.char_indices() {
        if text[..at + c.len_utf8()].width() + 1 > room {
            break;
        }
        end = at + c.len_utf8();
    }
    format!("{}…", &text[..end])
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use proctor_core::suite::Environment;
    use proctor_run::external::survey_known;

    use super::*;

    #[test]
    fn the_number_of_a_version_is_found() {
        for (said, number) in [
            ("2.1.205 (Claude Code)", "2.1.205"),
            ("codex-cli 0.144.6", "0.144.6"),
            ("GitHub Copilot CLI 1.0.70.", "1.0.70"),
            ("goose v1.40", "v1.40"),
            ("unknown", "unknown"),
        ] {
            assert_eq!(super::number(said), number);
        }
    }

    #[test]
    fn the_table_fits_any_width_and_lists_missing_programs() {
        let bin = tempfile::tempdir().unwrap();
        let claude = bin.path().join("claude");
        std::fs::write(&claude, "#!/bin/sh\n").unwrap();
        std::fs::set_permissions(&claude, std::fs::Permissions::from_mode(0o755)).unwrap();
        let pairs = [
            ("PATH", bin.path().display().to_string()),
            ("ANTHROPIC_API_KEY", "sk-secret".to_owned()),
            ("COPILOT_PROVIDER_API_KEY", "sk-secret".to_owned()),
        ];
        let env: Environment = pairs.map(|(name, value)| (name.to_owned(), value)).into();
        let surveys = survey_known(&env);
        for width in [40, 80, 200] {
            let text = anstream::adapter::strip_str(&render_for(&surveys, width)).to_string();
            let (table, rest) = text.split_once("\nMissing:\n").unwrap();
            for line in table.lines() {
                assert!(line.width() <= width, "{width}: {line}");
            }
            assert_eq!(width == 200, table.contains("/claude"), "{text}");
            assert!(table.contains("unchecked  claude-code"), "{text}");
            assert!(table.contains("missing    codex"), "{text}");
            assert!(!rest.contains("claude-code\n"), "{rest}");
            assert!(rest.contains("@openai/codex"), "{rest}");
            assert!(!text.contains("sk-secret"));
        }
    }
}
