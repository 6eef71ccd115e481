//! What this machine has for Proctor, what is missing, and how to mend it: the checks of `proctor doctor`.
//!
//! Its main type is [`Diagnosis`]. What is missing is only a failure if Proctor or the suite needs it. No model is
//! asked, no key is sent or shown, and no task runs.

mod containment;
mod folder;
mod installed;
mod models;
mod suite;

use std::path::PathBuf;

use proctor_core::suite::Suite;
use proctor_wire::client::Timeouts;

use super::Engine;

/// The result of one check.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Diagnosis {
    pub area: DiagnosisArea,
    /// The thing that was checked.
    pub name: String,
    pub state: DiagnosisState,
    pub detail: String,
    /// What to do about it: mostly a command.
    pub remedy: Option<String>,
}

/// The heading under which a check is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DiagnosisArea {
    Proctor,
    Programs,
    Agents,
    Models,
    Folder,
    Suite,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DiagnosisState {
    Ok,
    /// Absent or unusable, but not required.
    Missing,
    /// Required, and absent or unusable.
    Failed,
}

/// What to check.
#[derive(Debug, Clone)]
pub struct DiagnosisOptions {
    /// The folder that runs are recorded below.
    pub folder: PathBuf,
    /// Variables for the suite's servers and for agents from files.
    pub pass_env: Vec<String>,
    pub timeouts: Timeouts,
    /// Whether to connect to the APIs of models.
    pub reach_models: bool,
}

impl DiagnosisArea {
    pub fn word(self) -> &'static str {
        match self {
            Self::Proctor => "proctor",
            Self::Programs => "programs",
            Self::Agents => "agents",
            Self::Models => "models",
            Self::Folder => "folder",
            Self::Suite => "suite",
        }
    }
}

impl DiagnosisState {
    pub fn word(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Missing => "missing",
            Self::Failed => "failed",
        }
    }
}

impl Diagnosis {
    pub fn new(
        area: DiagnosisArea,
        name: impl Into<String>,
        state: DiagnosisState,
        detail: impl Into<String>,
    ) -> Self {
        Self {
            area,
            name: name.into(),
            state,
            detail: detail.into(),
            remedy: None,
        }
    }

    /// Adds what to do about it.
    #[must_use]
    pub fn mended_by(self, remedy: impl Into<String>) -> Self {
        Self {
            remedy: Some(remedy.into()),
            ..self
        }
    }
}

impl Engine {
    /// Checks this machine and, if there is one, all that a suite needs: its sources, agents, judge and servers.
    pub async fn diagnose(
        &self,
        suite: Option<&Suite>,
        options: &DiagnosisOptions,
    ) -> Vec<Diagnosis> {
        let mut all = vec![containment::version(&self.program)];
        all.push(containment::contains(self).await);
        all.extend(folder::check(&options.folder));
        all.extend(installed::programs(self).await);
        all.extend(installed::agents(self).await);
        all.extend(models::check(self, options.reach_models).await);
        if let Some(suite) = suite {
            all.extend(suite::check(self, suite, options).await);
        }
        all
    }
}
