//! Looks at the servers in a trial, if the run has no preflight.

use std::collections::BTreeMap;
use std::sync::PoisonError;

use proctor_record::event::{Actor, Blame};
use proctor_wire::recorder::Recorder;

use super::Trial;
use crate::preflight::{look, misfits, unknown_names};

impl Trial {
    /// The tools that servers listed before the agent starts, by server.
    pub(super) fn tools(&self) -> &BTreeMap<String, Vec<String>> {
        self.listed.get().unwrap_or(&self.context.tools)
    }

    /// Starts each server once and compares its lists with the case, unless the preflight did.
    pub(super) async fn look_at_servers(&self) -> Result<(), (Blame, String)> {
        let context = &self.context;
        if context.suite.preflight {
            return Ok(());
        }
        let (mut looked, mut tools) = (Vec::new(), BTreeMap::new());
        for server in &self.servers() {
            let recorder = Recorder::nothing().redacting(self.recorder.redactor());
            let options =
                context.connect_options(Actor::Preflight, recorder, Some(self.folder.values()));
            let probe = look(server, &options).await;
            let probe = probe.map_err(|error| (Blame::Server, error.to_string()))?;
            probe.client.close().await;
            tools.insert(server.name.clone(), probe.report.offered.tools.clone());
            looked.push(probe.report);
        }
        let seen = context.seen.lock();
        let mut seen = seen.unwrap_or_else(PoisonError::into_inner);
        for report in &looked {
            let server = report.seen.server.clone();
            seen.entry(server).or_insert_with(|| report.seen.clone());
        }
        drop(seen);
        let case = || std::iter::once(self.case());
        if let Some(misfit) = misfits(case(), &looked).into_iter().next() {
            return Err((Blame::Suite, misfit));
        }
        let warnings = unknown_names(case(), &looked);
        let mut known = context
            .warnings
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        known.extend(warnings);
        // A trial looks once.
        let _ = self.listed.set(tools);
        Ok(())
    }
}
