//! The tools and shipped evals of servers.
//!
//! Its main type is [`ServerOffer`]. Proctor requests evals only from servers that declare them.

use std::collections::HashMap;

use mcp_evals::{
    Eval, EvalFinding, EvalStatus, Input, Level, ListedEval, Severity, ValidationReport,
    validate_with_tools,
};
use proctor_core::suite::Server;
use proctor_record::json;
use proctor_wire::client::{Client, ConnectOptions, ListError, ListLimits};
use proctor_wire::evals::{self, CapabilityLocation, RawEval};
use serde_json::Value;
use serde_json::value::RawValue;

/// The tools and evals of a server, with the findings about them.
#[derive(Debug)]
pub struct ServerOffer {
    pub server: Server,
    /// Where the server declares its evals; empty if it ships none.
    pub places: Vec<CapabilityLocation>,
    /// The tools as the server wrote them.
    pub tools: Vec<Value>,
    /// The requested level.
    pub level: Option<Level>,
    /// The evals of that level, and those whose level is unknown.
    pub evals: Vec<ListedEval>,
    /// The same evals as the server wrote them.
    pub raw: Vec<Box<RawValue>>,
    pub report: ValidationReport,
    /// Whether the server declares that it notifies clients of changed evals.
    pub tells_of_changes: bool,
}

/// Why the offer of a server is unknown.
#[derive(Debug, thiserror::Error)]
pub enum GatherError {
    /// The server failed to start.
    #[error("{0}")]
    StartFailed(String),
    /// The server did not list its tools or evals.
    #[error("the server `{server}`: {source}")]
    NoList {
        server: String,
        #[source]
        source: ListError,
    },
}

/// The user's selection of evals.
#[derive(Debug, Clone, Default)]
pub struct EvalSelection {
    pub level: Option<Level>,
    /// The ids to select; empty for all.
    pub ids: Vec<String>,
    /// Whether to select only execution evals of read-only tools, and scenarios on servers with
    /// only such tools.
    pub only_read_only: bool,
}

/// The selected evals of one server.
#[derive(Debug)]
pub struct EvalPlan<'a> {
    pub offer: &'a ServerOffer,
    pub evals: Vec<&'a Eval>,
}

/// Surveys servers one after another.
pub async fn gather(
    servers: &[Server],
    level: Option<Level>,
    options: &ConnectOptions,
    caps: &ListLimits,
) -> Result<Vec<ServerOffer>, GatherError> {
    let mut offers = Vec::new();
    for server in servers {
        offers.push(look(server, level, options, caps).await?);
    }
    Ok(offers)
}

/// Connects to a server, lists its offer, and closes the connection.
pub async fn look(
    server: &Server,
    level: Option<Level>,
    options: &ConnectOptions,
    caps: &ListLimits,
) -> Result<ServerOffer, GatherError> {
    let client = Client::connect(server, options)
        .await
        .map_err(|error| GatherError::StartFailed(error.naming(&server.name)))?;
    let offer = ask(server, level, &client, caps).await;
    client.close().await;
    offer
}

/// Lists the tools and evals of a connected server.
pub async fn ask(
    server: &Server,
    level: Option<Level>,
    client: &Client,
    caps: &ListLimits,
) -> Result<ServerOffer, GatherError> {
    let failed = |source| GatherError::NoList {
        server: server.name.clone(),
        source,
    };
    let tools = list_tools(client, caps).await.map_err(failed)?;
    let places = evals::declared(client.identity());
    let shipped = if places.is_empty() {
        Vec::new()
    } else {
        let listed = evals::list_raw(client, level, caps).await;
        listed.map_err(failed)?
    };
    let (raw, evals): (Vec<_>, Vec<_>) = shipped
        .into_iter()
        .map(|RawEval { raw, item }| (raw, item))
        .unzip();
    Ok(ServerOffer {
        server: server.clone(),
        report: validate_with_tools(&evals, &tools),
        tells_of_changes: evals::tells_of_changes(client.identity()),
        places,
        tools,
        level,
        evals,
        raw,
    })
}

/// Lists the tools of a connected server only.
pub async fn offer_of_tools(
    server: &Server,
    client: &Client,
    caps: &ListLimits,
) -> Result<ServerOffer, GatherError> {
    let listed = list_tools(client, caps).await;
    let tools = listed.map_err(|source| GatherError::NoList {
        server: server.name.clone(),
        source,
    })?;
    Ok(ServerOffer {
        server: server.clone(),
        places: Vec::new(),
        tools,
        level: None,
        evals: Vec::new(),
        raw: Vec::new(),
        report: ValidationReport::default(),
        tells_of_changes: false,
    })
}

async fn list_tools(client: &Client, caps: &ListLimits) -> Result<Vec<Value>, ListError> {
    if !client.identity().capabilities.contains_key("tools") {
        return Ok(Vec::new());
    }
    let listed = client.list_tools(caps).await?;
    // A tool that is nested too deeply to parse is still known by its text.
    let read = |raw: &RawValue| json::from_str(raw.get()).unwrap_or_else(|_| raw.get().into());
    Ok(listed.items.iter().map(|raw| read(raw)).collect())
}

impl ServerOffer {
    /// The offer of a server that declares its evals at the top level and lists these.
    pub fn of(server: Server, tools: Vec<Value>, evals: Vec<ListedEval>) -> Self {
        Self {
            server,
            places: vec![CapabilityLocation::Top],
            level: None,
            report: validate_with_tools(&evals, &tools),
            tools,
            evals,
            raw: Vec::new(),
            tells_of_changes: false,
        }
    }

    /// The offer with the evals of one level, if it is given, and those whose level is unknown.
    #[must_use]
    pub(super) fn of_level(mut self, level: Option<Level>) -> Self {
        let fits = |item: &ListedEval| {
            let own = item.eval().and_then(Eval::level);
            level.is_none() || own.is_none() || own == level
        };
        let kept: Vec<bool> = self.evals.iter().map(fits).collect();
        let mut of_evals = kept.iter();
        self.evals.retain(|_| of_evals.next() == Some(&true));
        let mut of_raw = kept.iter();
        self.raw.retain(|_| of_raw.next() == Some(&true));
        self.report = validate_with_tools(&self.evals, &self.tools);
        self.level = level;
        self
    }

    /// Whether the server declares evals.
    pub fn ships_evals(&self) -> bool {
        !self.places.is_empty()
    }

    /// The evals that can be run.
    pub fn runnable(&self) -> impl Iterator<Item = &Eval> {
        let valid = self
            .statuses()
            .filter(|(_, status)| *status == EvalStatus::Valid);
        valid.filter_map(|(index, _)| self.evals[index].eval())
    }

    /// The invalid evals, by index, with their findings.
    pub fn invalid(&self) -> impl Iterator<Item = (usize, Vec<&EvalFinding>)> {
        self.with(EvalStatus::Invalid, Severity::Error)
    }

    /// The evals of unknown types, by index, with their findings.
    pub fn skipped(&self) -> impl Iterator<Item = (usize, Vec<&EvalFinding>)> {
        self.with(EvalStatus::Skipped, Severity::Skip)
    }

    fn with(
        &self,
        wanted: EvalStatus,
        severity: Severity,
    ) -> impl Iterator<Item = (usize, Vec<&EvalFinding>)> {
        let those = self.statuses().filter(move |(_, status)| *status == wanted);
        those.map(move |(index, _)| {
            let about = self.findings_of(index).iter();
            let about = about.filter(|finding| finding.severity == severity);
            (index, about.collect())
        })
    }

    /// The status of each eval, by index.
    pub fn statuses(&self) -> impl Iterator<Item = (usize, EvalStatus)> {
        (0..self.evals.len()).map(|index| {
            let has = |severity| {
                let mut about = self.findings_of(index).iter();
                about.any(|finding| finding.severity == severity)
            };
            let status = if has(Severity::Skip) {
                EvalStatus::Skipped
            } else if has(Severity::Error) {
                EvalStatus::Invalid
            } else {
                EvalStatus::Valid
            };
            (index, status)
        })
    }

    /// The findings about one eval, by binary search, since there may be many.
    fn findings_of(&self, index: usize) -> &[EvalFinding] {
        let all = &self.report.findings;
        let start = all.partition_point(|finding| finding.index < index);
        let end = all.partition_point(|finding| finding.index <= index);
        &all[start..end]
    }

    pub fn tool(&self, name: &str) -> Option<&Value> {
        let named = |tool: &&Value| tool.get("name").and_then(Value::as_str) == Some(name);
        self.tools.iter().find(named)
    }

    /// The declared effect of each tool; the worst one if several tools share a name.
    pub fn effects(&self) -> HashMap<&str, Effect> {
        let mut effects = HashMap::new();
        for tool in &self.tools {
            let name = tool.get("name").and_then(Value::as_str).unwrap_or("");
            let effect = Effect::of(tool);
            let known = effects.entry(name).or_insert(effect);
            *known = effect.min(*known);
        }
        effects
    }

    /// The runnable evals that a selection matches.
    pub fn plan(&self, choice: &EvalSelection) -> EvalPlan<'_> {
        let effects = self.effects();
        let is_meant = |eval: &&Eval| {
            let is_level = choice.level.is_none_or(|level| eval.level() == Some(level));
            let is_named = choice.ids.is_empty() || choice.ids.contains(&eval.id);
            is_level && is_named && (!choice.only_read_only || only_reads(eval, &effects))
        };
        EvalPlan {
            offer: self,
            evals: self.runnable().filter(is_meant).collect(),
        }
    }
}

/// Whether all tools that an eval may call declare that they only read.
fn only_reads(eval: &Eval, effects: &HashMap<&str, Effect>) -> bool {
    match &eval.input {
        Input::Execution(input) => effects.get(input.tool_name.as_str()) == Some(&Effect::ReadOnly),
        Input::Scenario(_) => effects.values().all(|effect| *effect == Effect::ReadOnly),
        // Invocation evals make no calls.
        Input::Invocation(_) | Input::Other(_) => true,
    }
}

/// The effect that a tool declares, unverified.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Effect {
    Destructive,
    /// The tool declares too little.
    Unknown,
    /// It changes things but destroys nothing.
    Additive,
    ReadOnly,
}

impl Effect {
    /// Reads the annotations of a tool.
    pub fn of(tool: &Value) -> Self {
        let hint = |key: &str| tool.get("annotations")?.get(key)?.as_bool();
        match (hint("readOnlyHint"), hint("destructiveHint")) {
            // Even if the tool also declares that it is read-only.
            (_, Some(true)) => Self::Destructive,
            (Some(true), _) => Self::ReadOnly,
            (_, Some(false)) => Self::Additive,
            (_, None) => Self::Unknown,
        }
    }
}

#[cfg(test)]
pub(crate) mod tests;
