//! Task sets that name a selection file.

use std::collections::BTreeMap;

use proctor_record::problem::{Code, Problem, WithSpan};

use super::super::Case;
use super::super::eval_file::TaskSetFile;
use super::super::files::FileOrigin;
use super::super::load::Namer;
use super::super::resolve_assertions::ServerScope;
use super::super::resolve_selection::{self, SelectionScope};
use super::super::selection_file::SelectionFile;
use super::super::server_list::ServerList;
use super::Tasks;
use crate::decode::Decode;

impl Tasks<'_> {
    /// Adds the rows of a selection file that have the labels of the task set.
    pub(super) fn add_selection(
        &mut self,
        set: &WithSpan<TaskSetFile>,
        written: &WithSpan<String>,
        origin: &FileOrigin,
        servers: ServerScope<'_>,
    ) {
        if set.assertions.is_some() {
            let message = "`assertions` has no effect on a selection: no tool is called";
            let problem = Problem::error(Code::Conflict, message);
            let hint = "write `expect`, `not` and `arguments` in its rows";
            self.cx.report(set.span, problem.hint(hint));
        }
        let list = set.servers.as_ref();
        let list = list.map(|list| ServerList::resolve("task set", list, servers, self.cx));
        let Some(cases) = self.rows_of(set, written, origin, servers) else {
            return;
        };
        for (list, case) in list.iter().zip(cases.first()) {
            for problem in ServerList::problems(&list.names, case) {
                self.cx.report(list.span, problem);
            }
        }
        let labels: BTreeMap<&str, &str> = set
            .label_selector
            .iter()
            .map(|(key, value)| (key.value.as_str(), value.0.as_str()))
            .collect();
        let has = |case: &Case, (key, value): (&&str, &&str)| {
            case.labels.get(*key).map(String::as_str) == Some(*value)
        };
        let before = self.selections.len();
        for mut case in cases {
            if !labels.iter().all(|label| has(&case, label)) {
                continue;
            }
            case.pass = set.pass.map(|pass| pass.value);
            case.servers = list.as_ref().map(|list| list.names.clone());
            self.selections.push(case);
        }
        let (known, added) = self.selections.split_at(before);
        let is_known = |case: &&Case| known.iter().any(|other| other.id == case.id);
        if let Some(case) = added.first().filter(is_known) {
            let message = format!("two task sets have the row `{}`", case.name);
            self.cx
                .report(written.span, Problem::error(Code::Conflict, message));
        }
        if added.is_empty() && !labels.is_empty() {
            let message = "no row of this set has the labels";
            self.cx
                .report(set.span, Problem::error(Code::Vacuous, message));
        }
    }

    fn rows_of(
        &self,
        set: &TaskSetFile,
        written: &WithSpan<String>,
        origin: &FileOrigin,
        servers: ServerScope<'_>,
    ) -> Option<Vec<Case>> {
        let server = set.server.as_ref();
        let server = server.map(|server| servers.resolve("task set", server, self.cx));
        let folder = match origin {
            FileOrigin::Own => self.cx.source.folder(),
            FileOrigin::Source { root, .. } => root,
        };
        let path = match origin.resolve(folder, &written.value) {
            Ok(path) => path,
            Err(problem) => {
                self.cx.report(written.span, problem);
                return None;
            }
        };
        let opened = self.loader.open_named(&path, written.span, self.cx)?;
        let namer = Namer::new(self.cx, written.span);
        let is_selection = self.loader.expect_kind(&opened, "Selection", Some(&namer));
        is_selection.then_some(())?;
        let inner = self.loader.context(&opened);
        let file = SelectionFile::decode(&opened.root, &inner)?;
        resolve_selection::resolve(
            &file,
            &SelectionScope {
                cx: &inner,
                origin,
                servers,
                server,
                shown_path: self.shown_path(&path, origin),
            },
        )
    }
}
