//! Where the files of a task set come from: the suite itself, or one of its sources.

use std::collections::BTreeMap;
use std::path::Path;

use super::super::TaskSource;
use super::super::eval_file::{SourceFile, TaskSetFile};
use super::super::files::{self, FileOrigin};
use super::Tasks;
use crate::hint::nearest_hint;
use crate::problem::{Code, Problem};

impl Tasks<'_> {
    /// The origin of a task set's files, and the mapping of their server names.
    pub(super) fn origin(
        &mut self,
        file: &TaskSetFile,
    ) -> Option<(FileOrigin, BTreeMap<String, String>)> {
        let Some(name) = &file.source else {
            return Some((FileOrigin::Own, BTreeMap::new()));
        };
        let Some(source) = self.find_source(name) else {
            let declared = self.config.sources.iter().map(|(n, _)| n.value.as_str());
            let message = format!("task set names unknown source `{}`", name.value);
            let hint = nearest_hint(&name.value, declared)
                .unwrap_or_else(|| "declare it under `config.sources`".to_owned());
            self.cx.report(
                name.span,
                Problem::error(Code::Reference, message).hint(hint),
            );
            return None;
        };
        let mapping = source.server_mapping.iter();
        let mapping = mapping
            .map(|(k, v)| (k.value.clone(), v.value.0.clone()))
            .collect();
        let Some(root) = self.loader.inputs.source_roots.get(&name.value) else {
            let unfetched = TaskSource {
                name: name.value.clone(),
                repo: source.repo.value.clone(),
                reference: source.reference.as_ref().map(|r| r.0.clone()),
            };
            if !self.unfetched.contains(&unfetched) {
                self.unfetched.push(unfetched);
                let message = format!(
                    "source `{}` has no checkout here, so its tasks were not checked",
                    name.value
                );
                let problem = Problem::warning(Code::Skipped, message);
                let hint = format!("pass a checkout with `--source {}=DIR`", name.value);
                self.cx.report(name.span, problem.hint(hint));
            }
            return None;
        };
        match root.canonicalize() {
            Ok(root) if root.is_dir() => Some((
                FileOrigin::Source {
                    name: name.value.clone(),
                    root,
                },
                mapping,
            )),
            _ => {
                let message = format!("`{}` is not a folder", root.display());
                self.cx
                    .report(name.span, Problem::error(Code::File, message));
                None
            }
        }
    }

    fn find_source(&self, name: &str) -> Option<&SourceFile> {
        let mut sources = self.config.sources.iter();
        sources.find(|(n, _)| n.value == name).map(|(_, s)| s)
    }

    /// The path of a task inside its suite or source, which goes into the case's id.
    pub(super) fn shown_path(&self, path: &Path, origin: &FileOrigin) -> String {
        match origin {
            FileOrigin::Own => {
                let folder = files::normalise(self.cx.source.folder());
                path.strip_prefix(folder)
                    .unwrap_or(path)
                    .display()
                    .to_string()
            }
            FileOrigin::Source { name, root } => {
                let inside = path.strip_prefix(root).unwrap_or(path);
                format!("{name}:{}", inside.display())
            }
        }
    }
}
