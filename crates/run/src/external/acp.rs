//! Agents that speak the Agent Client Protocol.

use super::{Acp, Assignment, Post, Told, Unfit, WorkError};
use crate::model::Format;

impl Acp<'_> {
    /// The program, as it is called.
    pub(crate) fn program(&self) -> &str {
        match self {
            Self::Preset(name) => name,
            Self::Program { cmd, .. } => cmd,
        }
    }

    /// How the program is installed, if that is known.
    pub(crate) fn install(self) -> Option<&'static str> {
        None
    }

    /// The arguments with which the program prints its version, if they are known.
    pub(crate) fn version(self) -> Option<&'static [&'static str]> {
        None
    }

    /// What it can speak to its model, best first. None: it can't be told where its model is.
    pub(crate) fn formats(self) -> &'static [Format] {
        &[]
    }

    /// The variables of the user's that it reads its keys and its model from.
    pub(crate) fn variables(self) -> &'static [&'static str] {
        &[]
    }

    /// Where it looks for skills, and its tool that loads one, if that is known.
    pub(crate) fn skills(self) -> Option<(&'static str, &'static str)> {
        None
    }
}

pub(crate) async fn work(_: Acp<'_>, _: &Assignment, _: &Post<'_>) -> Result<Told, WorkError> {
    std::future::ready(Err(Unfit::Template(
        "speaks ACP, which is not there yet".to_owned(),
    )
    .into()))
    .await
}
