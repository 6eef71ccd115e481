//! One module for each command.

pub(crate) mod call;
pub(crate) mod check;
pub(crate) mod evals;
pub(crate) mod init;
mod kept;
pub(crate) mod list;
pub(crate) mod model;
pub(crate) mod record;
mod runs;
pub(crate) mod schema;
mod secrets;
mod session;
mod stops;
pub(crate) mod tools;
pub(crate) mod validate;
pub(crate) mod view;

use proctor_core::problem::Problems;
use proctor_core::redact::Redactor;
use proctor_core::suite::Environment;

use crate::snippet;

/// The environment, as far as it is text.
fn environment() -> Environment {
    std::env::vars_os()
        .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)))
        .collect()
}

/// Hides the secrets of the environment, where no server is known that has others.
pub(crate) fn known_secrets() -> Redactor {
    Redactor::from_environment(&environment())
}

/// All problems, drawn.
fn drawn(problems: &Problems) -> String {
    let mut out = String::new();
    for problem in problems {
        out.push_str(&snippet::render(problem));
        out.push('\n');
    }
    if problems.dropped() > 0 {
        out.push_str(&format!(
            "{} more problems are not shown\n\n",
            problems.dropped()
        ));
    }
    out
}

/// `1 error, 2 warnings`, or `no problems`.
fn tally(problems: &Problems) -> String {
    let parts: Vec<String> = [
        (problems.errors(), "error"),
        (problems.warnings(), "warning"),
    ]
    .into_iter()
    .filter(|(count, _)| *count > 0)
    .map(|(count, word)| counted(count, word))
    .collect();
    if parts.is_empty() {
        "no problems".to_owned()
    } else {
        parts.join(", ")
    }
}

/// `1 case`, `2 cases`.
fn counted(count: usize, word: &str) -> String {
    let plural = if count == 1 { "" } else { "s" };
    format!("{count} {word}{plural}")
}
