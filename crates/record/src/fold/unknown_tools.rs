//! The names of tools that a model called although it was not offered them.
//!
//! The main type is [`UnknownToolCalls`].

use std::collections::{BTreeSet, HashMap};

use serde::Deserialize;

use crate::event::{Body, ModelAsked, ModelReplied, Purpose};
use crate::record::Blobs;

use super::turns::read;

/// How many names are kept.
const NAMES: usize = 20;

/// A fold of called but unknown names in progress.
#[derive(Debug, Clone, Default)]
pub(super) struct UnknownToolCalls {
    /// The tools of the latest request, for any purpose.
    offered: Option<BTreeSet<String>>,
    /// The tools of each agent request that has no reply yet.
    asked: HashMap<u64, BTreeSet<String>>,
    names: Vec<String>,
}

#[derive(Deserialize)]
pub(super) struct ToolName {
    pub(super) name: String,
}

#[derive(Deserialize)]
struct NamedCalls {
    #[serde(default)]
    calls: Vec<ToolName>,
}

impl UnknownToolCalls {
    pub(super) fn offered(&mut self, tools: &Body, blobs: &Blobs) {
        let tools = read::<Vec<ToolName>>(tools, blobs);
        self.offered = tools.map(|tools| tools.into_iter().map(|tool| tool.name).collect());
    }

    pub(super) fn asked(&mut self, asked: &ModelAsked) {
        if let (Purpose::Agent, Some(offered)) = (asked.purpose, &self.offered) {
            self.asked.insert(asked.ask, offered.clone());
        }
    }

    pub(super) fn replied(&mut self, replied: &ModelReplied, blobs: &Blobs) {
        let Some(offered) = self.asked.remove(&replied.ask) else {
            return;
        };
        let Some(turn) = read::<NamedCalls>(&replied.turn, blobs) else {
            return;
        };
        for ToolName { name } in turn.calls {
            let is_new = !offered.contains(&name) && !self.names.contains(&name);
            if is_new && self.names.len() < NAMES {
                self.names.push(name);
            }
        }
    }

    pub(super) fn into_names(self) -> Vec<String> {
        self.names
    }
}
