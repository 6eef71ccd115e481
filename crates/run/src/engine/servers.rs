//! Compares the servers of a run with those of the earlier part of a resumed run.

use proctor_record::event::ServerSeen;
use proctor_record::redact::Redactor;

/// Why a run can't be resumed with this server: it changed since the run started.
pub(super) fn change(
    before: &[ServerSeen],
    now: &ServerSeen,
    redactor: &Redactor,
) -> Option<String> {
    // The record contains the redacted form.
    let text = |text: &Option<String>| Some(redactor.text(text.as_deref()?).into_owned());
    let now = ServerSeen {
        server: redactor.text(&now.server).into_owned(),
        name: text(&now.name),
        version: text(&now.version),
        protocol: redactor.text(&now.protocol).into_owned(),
        ..now.clone()
    };
    let before = before.iter().rfind(|seen| seen.server == now.server)?;
    let changes = now.changes_since(before);
    (!changes.is_empty()).then(|| {
        format!(
            "the server `{}` changed since the run started: {}; start a new run",
            now.server,
            changes.join(", ")
        )
    })
}
