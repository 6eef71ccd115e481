//! Resolves `config.sources`: which repository, which commit, and whether its files are here.

use std::collections::BTreeSet;
use std::path::PathBuf;

use proctor_record::problem::{Code, Problem, Span};

use super::eval_file::{EvalConfig, SourceFile};
use super::load::Loader;
use super::source::{self, Repository, SourceState, TaskSource};
use crate::decode::Context;

/// The sources that task sets name.
pub(super) fn load(loader: &Loader<'_>, config: &EvalConfig, cx: &Context<'_>) -> Vec<TaskSource> {
    let sets = config.task_sets.get().map(|sets| &sets.value[..]);
    let named = sets.unwrap_or_default().iter();
    let named: BTreeSet<&str> = named
        .filter_map(|set| Some(&*set.source.as_ref()?.value))
        .collect();
    let mut all = Vec::new();
    for (name, file) in config.sources.iter() {
        let is_used = named.contains(&*name.value);
        all.extend(resolve(loader, &name.value, file, cx).filter(|_| is_used));
    }
    all
}

fn resolve(
    loader: &Loader<'_>,
    name: &str,
    file: &SourceFile,
    cx: &Context<'_>,
) -> Option<TaskSource> {
    let repo = &file.repo.value;
    let reference = file.reference.as_ref().map(|text| text.value.0.as_str());
    let repository = Repository::parse(repo, cx.source.folder());
    let repository = repository.map_err(|(message, hint)| {
        let problem = Problem::error(Code::Value, message);
        cx.report(file.repo.span, problem.hint(hint));
    });
    if let (Some(text), Some(written)) = (reference, &file.reference)
        && !source::is_reference(text)
    {
        let message = format!("invalid reference `{text}`");
        let problem = Problem::error(Code::Value, message);
        cx.report(
            written.span,
            problem.hint("write the name of a branch or tag, or the full id of a commit"),
        );
        return None;
    }
    let state = match loader.inputs.source_roots.get(name) {
        Some(root) => SourceState::Given(root.clone()),
        None => source::look_up(repo, reference, loader.lock(cx), loader.inputs.env),
    };
    Some(TaskSource {
        name: name.to_owned(),
        repo: repo.clone(),
        repository: repository.ok()?,
        reference: reference.map(str::to_owned),
        state,
    })
}

/// The folder of a source that a task set names at `span`, without symbolic links.
pub(super) fn root(source: &TaskSource, span: Span, cx: &Context<'_>) -> Option<PathBuf> {
    let Some(root) = source.root() else {
        let absence = source.absence().unwrap_or_default();
        let message = format!("{absence}, so its tasks were not checked");
        let problem = Problem::warning(Code::Skipped, message);
        let hint = format!(
            "run `proctor sources fetch`, or pass a checkout with `--source {}=DIR`",
            source.name
        );
        cx.report(span, problem.hint(hint));
        return None;
    };
    match root.canonicalize() {
        Ok(root) if root.is_dir() => Some(root),
        _ => {
            let message = format!("`{}` is not a folder", root.display());
            cx.report(span, Problem::error(Code::File, message));
            None
        }
    }
}
