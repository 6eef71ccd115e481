//! Whether servers keep a contract.
//!
//! Main types: [`SurfaceContract`] is what is allowed, [`ContractJudgement`] what was found.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use proctor_record::event::{ChangeClass, SurfaceChange, SurfaceCompared};

use super::content::SurfaceContent;
use super::lock::SurfaceLock;

/// What may change about the servers of a suite.
#[derive(Debug, Clone, PartialEq)]
pub struct SurfaceContract {
    /// The file of the lock.
    pub path: PathBuf,
    pub lock: Arc<SurfaceLock>,
    /// The classes of changes that are allowed.
    pub allow: Vec<ChangeClass>,
    /// The highest estimated number of tokens of all tools in a model request.
    pub max_schema_tokens: Option<u64>,
}

/// The servers, compared with their lock.
#[derive(Debug, Clone, PartialEq)]
pub struct ContractJudgement {
    /// One entry per server, also for servers without a change.
    pub compared: Vec<SurfaceCompared>,
    pub allow: Vec<ChangeClass>,
    /// The estimated tokens of all tools in a model request.
    pub schema_tokens: u64,
    pub max_schema_tokens: Option<u64>,
}

impl SurfaceContract {
    /// Compares servers with the lock. With `is_whole`, they are all servers that the lock is about. The error says
    /// why the comparison is inconclusive.
    pub fn judge(
        &self,
        offered: &BTreeMap<String, SurfaceContent>,
        is_whole: bool,
    ) -> Result<ContractJudgement, String> {
        if let Some(reason) = self.lock.unknown_list(offered) {
            return Err(reason);
        }
        Ok(ContractJudgement {
            compared: self.lock.compare(offered, is_whole),
            allow: self.allow.clone(),
            schema_tokens: offered.values().map(SurfaceContent::schema_tokens).sum(),
            max_schema_tokens: self.max_schema_tokens,
        })
    }
}

impl ContractJudgement {
    pub fn is_kept(&self) -> bool {
        self.refused() == 0 && self.overweight().is_none()
    }

    /// All changes, each with its server.
    pub fn changes(&self) -> impl Iterator<Item = (&str, &SurfaceChange)> {
        self.compared.iter().flat_map(|compared| {
            let server = compared.server.as_str();
            compared.changes.iter().map(move |change| (server, change))
        })
    }

    pub fn is_allowed(&self, change: &SurfaceChange) -> bool {
        self.allow.contains(&change.class)
    }

    /// The number of changes that are not allowed.
    pub fn refused(&self) -> usize {
        let changes = self.changes();
        changes
            .filter(|(_, change)| !self.is_allowed(change))
            .count()
    }

    /// The number of changes of a class.
    pub fn count(&self, class: ChangeClass) -> usize {
        let changes = self.changes();
        changes.filter(|(_, change)| change.class == class).count()
    }

    /// The sentence for tools that weigh more than is allowed.
    pub fn overweight(&self) -> Option<String> {
        let most = self.max_schema_tokens?;
        (self.schema_tokens > most).then(|| {
            format!(
                "the tools weigh about {} tokens in each model request, and the contract allows {most}",
                self.schema_tokens
            )
        })
    }

    /// The result as one sentence.
    pub fn sentence(&self) -> String {
        let refused = match self.refused() {
            0 => None,
            1 => Some("1 change is not allowed".to_owned()),
            several => Some(format!("{several} changes are not allowed")),
        };
        let broken: Vec<String> = refused.into_iter().chain(self.overweight()).collect();
        match (broken.is_empty(), self.changes().count()) {
            (false, _) => format!("the surface contract is broken: {}", broken.join("; ")),
            (true, 0) => "no changes".to_owned(),
            (true, 1) => "1 change, which is allowed".to_owned(),
            (true, several) => format!("{several} changes, all allowed"),
        }
    }
}

/// One change as one line.
pub fn line(server: &str, change: &SurfaceChange) -> String {
    let SurfaceChange {
        class,
        place,
        message,
        witness,
    } = change;
    let place = if place.is_empty() {
        server.to_owned()
    } else {
        format!("{server}/{place}")
    };
    let example = witness.as_ref().map_or(String::new(), |witness| {
        format!("; {}", example(place.as_str(), witness))
    });
    format!("{}: {place}: {message}{example}", class.word())
}

/// The witness of a change at a place, with its meaning.
pub fn example(place: &str, witness: &serde_json::Value) -> String {
    let meaning = if place.contains("/output") {
        "now possible"
    } else {
        "no longer valid"
    };
    format!("{meaning}: {}", proctor_record::json::brief(witness))
}
