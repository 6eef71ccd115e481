//! The task files that task sets name, each once.

use std::path::PathBuf;

use proctor_record::problem::{Code, Problem, Problems, Span};

use super::super::eval_file::TaskSetFile;
use super::super::files::{self, FileOrigin};
use super::super::load::{ParsedFile, kind_of};
use super::Tasks;
use crate::document;

/// A task file and the task sets that name it.
pub(super) struct TaskPath {
    pub(super) path: PathBuf,
    pub(super) sets: Vec<usize>,
    /// The first place that names it.
    pub(super) span: Span,
    /// Whether a glob found it. A glob may also match files that are not tasks.
    pub(super) swept: bool,
}

impl Tasks<'_> {
    pub(super) fn add_paths(&mut self, file: &TaskSetFile, set: usize) {
        let origin = self.sets[set].origin.clone();
        let folder = match &origin {
            FileOrigin::Own => self.cx.source.folder(),
            FileOrigin::Source { root, .. } => root,
        };
        let (found, written, swept) = match (&file.path, &file.glob) {
            (Some(path), _) => (
                origin.resolve(folder, &path.value).map(|p| vec![p]),
                path,
                false,
            ),
            (None, Some(glob)) => (origin.glob(folder, &glob.value), glob, true),
            (None, None) => return,
        };
        match found {
            Err(problem) => self.cx.report(written.span, problem),
            Ok(paths) if paths.is_empty() => {
                let message = format!("the glob `{}` matches no file", written.value);
                let problem = Problem::error(Code::Vacuous, message);
                let inside = folder.join(&written.value);
                let hint = files::submodule_hint(&inside)
                    .or_else(|| origin.missing_folder(folder, &written.value));
                self.cx.report(written.span, problem.maybe_hint(hint));
            }
            Ok(paths) => {
                for path in paths {
                    self.add_path(path, set, written.span, swept);
                }
            }
        }
    }

    fn add_path(&mut self, path: PathBuf, set: usize, span: Span, swept: bool) {
        if let Some(at) = self.index.get(&path) {
            let known = &mut self.paths[*at];
            known.sets.push(set);
            known.swept &= swept;
            return;
        }
        self.index.insert(path.clone(), self.paths.len());
        self.paths.push(TaskPath {
            path,
            sets: vec![set],
            span,
            swept,
        });
    }

    /// Opens a file that a glob matched, and skips it if it is not a task: globs of public suites
    /// also match the manifests that tasks apply.
    pub(super) fn open_swept(&self, task: &TaskPath) -> Option<ParsedFile> {
        let source = match files::read(&task.path) {
            Ok(source) => source,
            Err(problem) => {
                self.cx.report_elsewhere(problem);
                return None;
            }
        };
        let mut found = Problems::default();
        let parsed = document::parse(&source, &mut found);
        let is_task = |p: &document::Document| kind_of(&p.root) == Some("Task");
        if let Some(other) = parsed.as_ref().filter(|p| !is_task(p)) {
            let kind = kind_of(&other.root).map_or("no kind".to_owned(), |k| format!("kind `{k}`"));
            let message = format!("skipped a file of {kind}: not a task");
            let problem = Problem::warning(Code::Skipped, message).in_file(&task.path);
            self.cx.report_elsewhere(problem);
            return None;
        }
        self.loader.problems.borrow_mut().append(found);
        self.loader.one_map(source, parsed?)
    }
}
