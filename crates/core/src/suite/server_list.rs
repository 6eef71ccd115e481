//! The servers that a task or a task set lists: the agent gets no others.
//!
//! Its main type is [`ServerList`].

use proctor_record::event::CheckId;
use proctor_record::hint::{listed, nearest};
use proctor_record::problem::{Code, Problem, Span, WithSpan};

use super::resolve_assertions::ServerScope;
use super::step::Action;
use super::{Case, Step};
use crate::decode::{Context, NonEmpty};

/// Servers of the suite, and where they are listed.
#[derive(Debug, Clone)]
pub(super) struct ServerList {
    pub(super) names: Vec<String>,
    pub(super) span: Span,
}

impl ServerList {
    /// Resolves a list, and reports unknown servers.
    pub(super) fn resolve(
        what: &str,
        written: &NonEmpty<WithSpan<String>>,
        scope: ServerScope<'_>,
        cx: &Context<'_>,
    ) -> Self {
        let names = written.0.iter().map(|name| scope.resolve(what, name, cx));
        Self {
            names: names.collect(),
            span: written.0.first().map(|name| name.span).unwrap_or_default(),
        }
    }

    /// The assertions and steps of a case that name a server outside the list, as problems.
    pub(super) fn problems(names: &[String], case: &Case) -> Vec<Problem> {
        let mut problems = Vec::new();
        let is_absent = |server: &str| !names.iter().any(|name| name == server);
        for check in &case.checks {
            for server in check.servers().into_iter().filter(|name| is_absent(name)) {
                let place = case
                    .places
                    .iter()
                    .find(|place| place.check == CheckId::Assertion(check.name().into_owned()));
                let place = place.map_or(String::new(), |place| {
                    format!(" ({}:{})", place.path, place.line)
                });
                let what = format!("the assertion `{}`{place}", check.name());
                problems.push(problem(&what, server, names));
            }
        }
        let steps = case.setup.iter().chain(&case.verify).chain(&case.cleanup);
        for step in steps {
            if let Some(server) = server_of(step).filter(|server| is_absent(server)) {
                let what = format!("the step `{}` of `{}`", step.id, case.name);
                problems.push(problem(&what, server, names));
            }
        }
        problems
    }
}

fn server_of(step: &Step) -> Option<&str> {
    match &step.action {
        Action::CallTool(call) => Some(&call.server),
        Action::Script(_) | Action::Http(_) | Action::Judge(_) | Action::Extension { .. } => None,
    }
}

fn problem(what: &str, server: &str, names: &[String]) -> Problem {
    let known = || names.iter().map(String::as_str);
    let message = format!("{what} names the server `{server}`, which `servers` does not list");
    let hint = match nearest(server, known()) {
        Some(near) => format!("did you mean `{near}`? Otherwise add `{server}` to `servers`"),
        None => format!(
            "add `{server}` to `servers`, which lists {}",
            listed(known())
        ),
    };
    Problem::error(Code::Reference, message).hint(hint)
}
