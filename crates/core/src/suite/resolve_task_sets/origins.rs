//! Where the files of a task set come from: the suite itself, or one of its sources.

use std::collections::BTreeMap;
use std::path::Path;

use proctor_record::hint::nearest_hint;
use proctor_record::problem::{Code, Problem};

use super::super::eval_file::TaskSetFile;
use super::super::files::{self, FileOrigin};
use super::super::resolve_sources;
use super::Tasks;

impl Tasks<'_> {
    /// The origin of a task set's files, and the mapping of their server names.
    pub(super) fn origin(
        &mut self,
        file: &TaskSetFile,
    ) -> Option<(FileOrigin, BTreeMap<String, String>)> {
        let Some(name) = &file.source else {
            return Some((FileOrigin::Own, BTreeMap::new()));
        };
        let declared = || self.config.sources.iter();
        let Some((_, written)) = declared().find(|(n, _)| n.value == name.value) else {
            let message = format!("task set names unknown source `{}`", name.value);
            let hint = nearest_hint(&name.value, declared().map(|(n, _)| n.value.as_str()))
                .unwrap_or_else(|| "declare it under `config.sources`".to_owned());
            self.cx.report(
                name.span,
                Problem::error(Code::Reference, message).hint(hint),
            );
            return None;
        };
        let source = self.sources.iter().find(|s| s.name == name.value)?;
        if source.root().is_none() && !self.absent.insert(name.value.clone()) {
            return None;
        }
        let root = resolve_sources::root(source, name.span, self.cx)?;
        let mapping = written.server_mapping.iter();
        let mapping = mapping
            .map(|(k, v)| (k.value.clone(), v.value.0.clone()))
            .collect();
        let name = name.value.clone();
        Some((FileOrigin::Source { name, root }, mapping))
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
