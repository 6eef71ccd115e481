//! Compares the servers of a run with the suite's surface lock, before any model is asked.

use std::collections::BTreeMap;

use proctor_core::contract::{SurfaceContent, SurfaceContract, line};
use proctor_core::printable::printable;
use proctor_record::event::{Surface, SurfaceCompared};
use proctor_record::json;
use proctor_record::redact::Redactor;

use crate::preflight::PreflightReport;

/// The servers of a run, compared with the lock.
pub(super) struct JudgedSurfaces {
    pub(super) compared: Vec<SurfaceCompared>,
    /// One line per change, to show.
    pub(super) lines: Vec<String>,
    /// Why the run must not start, if it must not.
    pub(super) refused: Option<String>,
}

/// Compares all servers. The error says why the comparison is inconclusive.
pub(super) fn judge(
    contract: &SurfaceContract,
    looked: &[PreflightReport],
    redactor: &Redactor,
) -> Result<JudgedSurfaces, String> {
    let mut offered = BTreeMap::new();
    for report in looked {
        let server = &report.seen.server;
        let content = SurfaceContent::of(&redacted(&report.surface, redactor));
        let content = content.map_err(|error| format!("the server `{server}`: {error}"))?;
        offered.insert(server.clone(), content);
    }
    let judged = contract.judge(&offered, true)?;
    let path = contract.path.display();
    let lines = judged.changes().map(|(server, change)| {
        let line = redactor.text(&line(server, change)).into_owned();
        printable(&line).into_owned()
    });
    Ok(JudgedSurfaces {
        lines: lines.collect(),
        refused: (!judged.is_kept()).then(|| {
            format!(
                "{} (`{path}`); no model was asked; if the change is meant, write the lock again with `proctor \
                 tools --lock`",
                judged.sentence()
            )
        }),
        compared: judged.compared,
    })
}

/// The surface as the lock has it: without secrets.
pub(super) fn redacted(surface: &Surface, redactor: &Redactor) -> Surface {
    let text = serde_json::to_string(surface).unwrap_or_default();
    match redactor.text(&text) {
        std::borrow::Cow::Borrowed(_) => surface.clone(),
        std::borrow::Cow::Owned(text) => json::from_str(&text).unwrap_or_else(|_| surface.clone()),
    }
}
