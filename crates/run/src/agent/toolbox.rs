//! The tools of the built-in agent: those of all servers under unique names, and helper tools for
//! resources and prompts.
//!
//! Its main type is [`Toolbox`]. The model is told of a call that can't be made; only a lost or
//! broken server ends the work.

mod helpers;

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use proctor_core::suite::server::AllowedTools;
use proctor_record::event::FindingKind;
use proctor_record::hint::{listed, nearest};
use proctor_record::json;
use proctor_record::model::{Arguments, Media, Tool, ToolCall, ToolResult, Tools};
use serde_json::{Map, Value, json};

use self::helpers::Helper;
use super::names::assign;
use super::rendering;
use crate::replies::SamplerGuard;
use crate::together::together;
use proctor_wire::client::{CallError, Client, ListError, ListLimits};
use proctor_wire::worker;

/// The server name that prefixes a helper tool, if its name is not unique.
const OWN: &str = "proctor";

pub struct ConnectedServer {
    /// Its name in the suite.
    pub name: String,
    pub client: Client,
    pub allowed: AllowedTools,
    /// Answers the server's sampling requests, as long as the server is connected.
    pub sampling: Option<SamplerGuard>,
}

/// The tools that an agent can call.
pub struct Toolbox {
    servers: Vec<ConnectedServer>,
    offer: Arc<ToolOffer>,
}

/// The tools of servers under unique names.
#[derive(Debug, Default)]
struct ToolOffer {
    tools: Tools,
    routes: HashMap<String, ToolRoute>,
}

/// The target of a tool name.
#[derive(Debug, Clone)]
enum ToolRoute {
    Tool { server: usize, tool: String },
    Helper(Helper),
}

/// A server that became unusable.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the server `{server}` failed while the agent worked: {reason}")]
pub struct ServerLoss {
    pub server: String,
    pub reason: String,
}

/// A call of the agent, for progress events.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ToolCallNotice {
    pub server: String,
    /// The name of the tool, the URI of the resource, or the name of the prompt.
    pub name: String,
}

/// The offers of a run so far, so that trials on the same lists of tools share one.
#[derive(Debug, Default)]
pub struct KnownOffers(Mutex<Vec<(Vec<OfferSource>, Arc<ToolOffer>)>>);

/// All that an offer depends on: what one server lists, word for word.
#[derive(Debug, PartialEq)]
struct OfferSource {
    server: String,
    has_resources: bool,
    has_prompts: bool,
    tools: Vec<String>,
}

impl KnownOffers {
    /// More lists than this are not the same in many trials.
    const MOST: usize = 16;

    fn find(&self, sources: &[OfferSource]) -> Option<Arc<ToolOffer>> {
        let known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let found = known.iter().find(|(known, _)| known == sources);
        found.map(|(_, offer)| offer.clone())
    }

    fn add(&self, sources: Vec<OfferSource>, offer: &Arc<ToolOffer>) {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if known.len() < Self::MOST {
            known.push((sources, offer.clone()));
        }
    }
}

impl Toolbox {
    /// A toolbox with servers and without tools.
    pub fn bare(servers: Vec<ConnectedServer>) -> Self {
        Self {
            servers,
            offer: Arc::default(),
        }
    }

    /// Lists the tools of all servers. With `helpers`, it adds tools for resources and prompts.
    pub async fn open(
        servers: Vec<ConnectedServer>,
        helpers: bool,
        known: &KnownOffers,
    ) -> Result<Self, (String, ListError)> {
        let mut sources = Vec::new();
        for server in &servers {
            let mut tools = Vec::new();
            if offers(&server.client, "tools") {
                let listed = server.client.list_tools(&ListLimits::default()).await;
                let listed = listed.map_err(|error| (server.name.clone(), error))?;
                let texts = listed.items.into_iter().map(Box::<str>::from);
                tools.extend(texts.map(String::from));
            }
            sources.push(OfferSource {
                server: server.name.clone(),
                has_resources: helpers && offers(&server.client, "resources"),
                has_prompts: helpers && offers(&server.client, "prompts"),
                tools,
            });
        }
        if let Some(offer) = known.find(&sources) {
            return Ok(Self { servers, offer });
        }
        let mut found: Vec<(usize, Value)> = Vec::new();
        let mut are_named = true;
        for (at, source) in sources.iter().enumerate() {
            for text in &source.tools {
                let tool: Value = json::from_str(text).unwrap_or_default();
                if tool.get("name").is_some_and(Value::is_string) {
                    found.push((at, tool));
                } else {
                    are_named = false;
                    let detail = "`tools/list` contains a tool without a name";
                    servers[at].client.note(FindingKind::Protocol, detail);
                }
            }
        }
        let offer = Arc::new(ToolOffer::of(&sources, found));
        // Each trial reports a tool without a name.
        if are_named {
            known.add(sources, &offer);
        }
        Ok(Self { servers, offer })
    }

    /// The tools as models see them.
    pub fn tools(&self) -> &Tools {
        &self.offer.tools
    }

    pub fn servers(&self) -> &[ConnectedServer] {
        &self.servers
    }

    /// The servers' instructions for models.
    pub fn instructions(&self) -> Option<String> {
        let texts: Vec<String> = self
            .servers
            .iter()
            .filter_map(|server| {
                let text = server.client.identity().instructions.as_deref()?.trim();
                let name = &server.name;
                (!text.is_empty()).then(|| format!("Instructions of the server `{name}`:\n{text}"))
            })
            .collect();
        (!texts.is_empty()).then(|| texts.join("\n\n"))
    }

    /// The name under which models see a server's tool.
    pub fn name_of(&self, server: &str, tool: &str) -> Option<&str> {
        let found = self.offer.routes.iter().find(|(_, route)| match route {
            ToolRoute::Tool {
                server: at,
                tool: own,
            } => own == tool && self.servers[*at].name == server,
            ToolRoute::Helper(_) => false,
        });
        found.map(|(name, _)| name.as_str())
    }

    /// The notice for a call; `None` if the tool is unknown.
    pub fn called(&self, call: &ToolCall) -> Option<ToolCallNotice> {
        let (server, name) = match self.offer.routes.get(&call.name)? {
            ToolRoute::Tool { server, tool } => {
                (self.servers[*server].name.as_str(), tool.as_str())
            }
            ToolRoute::Helper(helper) => ("", helper.name()),
        };
        Some(ToolCallNotice {
            server: server.to_owned(),
            name: name.to_owned(),
        })
    }

    /// Makes a call. Problems with the call are returned as its result, for the model.
    pub async fn call(&self, call: &ToolCall) -> Result<ToolResult, ServerLoss> {
        let mut shown = Vec::new();
        let outcome = match (self.offer.routes.get(&call.name), &call.arguments) {
            (None, _) => Err(self.unknown(&call.name)),
            (_, Arguments::Malformed { reason, .. }) => Err(format!(
                "the arguments of `{}` are not a JSON object: {reason}",
                call.name
            )),
            (Some(ToolRoute::Tool { server, tool }), Arguments::Object(arguments)) => {
                self.call_tool(*server, tool, arguments, &mut shown).await?
            }
            (Some(ToolRoute::Helper(helper)), Arguments::Object(arguments)) => {
                self.help(*helper, arguments).await?
            }
        };
        let is_error = outcome.is_err();
        let text = outcome.unwrap_or_else(|error| error);
        Ok(ToolResult {
            id: call.id.clone(),
            name: call.name.clone(),
            text,
            is_error,
            media: shown,
        })
    }

    async fn call_tool(
        &self,
        server: usize,
        tool: &str,
        arguments: &Map<String, Value>,
        shown: &mut Vec<Media>,
    ) -> Result<Result<String, String>, ServerLoss> {
        let connected = &self.servers[server];
        if let AllowedTools::Only(allowed) = &connected.allowed
            && !allowed.iter().any(|name| name == tool)
        {
            return Ok(Err(format!(
                "the tool `{tool}` of the server `{}` is not allowed",
                connected.name
            )));
        }
        let called = connected.client.call_tool(tool, arguments.clone()).await;
        model_result(
            connected,
            called.map(|result| {
                worker::on_body(result.raw.get().len(), || {
                    let text = rendering::tool_result(&result.raw);
                    shown.extend(rendering::tool_media(&result.raw));
                    if result.is_error { Err(text) } else { Ok(text) }
                })
            }),
        )
    }

    fn unknown(&self, name: &str) -> String {
        let known = || self.offer.tools.iter().map(|tool| tool.name.as_str());
        match nearest(name, known()) {
            Some(near) => format!("unknown tool `{name}`; did you mean `{near}`?"),
            None => format!("unknown tool `{name}`; available: {}", listed(known())),
        }
    }

    /// Closes the connections to all servers at the same time.
    pub async fn close(self) {
        let servers = self.servers.into_iter();
        together(servers.map(|connected| connected.client.close())).await;
    }
}

impl ToolOffer {
    fn of(sources: &[OfferSource], found: Vec<(usize, Value)>) -> Self {
        let mut helpers = Vec::new();
        if sources.iter().any(|source| source.has_resources) {
            helpers.extend([Helper::ListResources, Helper::ReadResource]);
        }
        if sources.iter().any(|source| source.has_prompts) {
            helpers.extend([Helper::ListPrompts, Helper::GetPrompt]);
        }
        let servers: Vec<&str> = sources.iter().map(|s| s.server.as_str()).collect();
        let wanted: Vec<(&str, &str)> = found
            .iter()
            .map(|(at, tool)| (servers[*at], name_of(tool)))
            .chain(helpers.iter().map(|helper| (OWN, helper.name())))
            .collect();
        let mut names = assign(&wanted).into_iter();
        let mut tools = Vec::new();
        let mut routes = HashMap::new();
        for ((server, found), name) in found.into_iter().zip(names.by_ref()) {
            let tool = name_of(&found).to_owned();
            tools.push(offered(&name, found));
            routes.insert(name, ToolRoute::Tool { server, tool });
        }
        for (helper, name) in helpers.into_iter().zip(names) {
            tools.push(helper.tool(&name, &servers));
            routes.insert(name, ToolRoute::Helper(helper));
        }
        Self {
            tools: tools.into(),
            routes,
        }
    }
}

/// Whether a server declares a capability.
fn offers(client: &Client, what: &str) -> bool {
    client.identity().capabilities.contains_key(what)
}

fn name_of(tool: &Value) -> &str {
    tool.get("name").and_then(Value::as_str).unwrap_or_default()
}

fn offered(name: &str, mut tool: Value) -> Tool {
    let text = |key: &str| tool.get(key).and_then(Value::as_str).map(str::to_owned);
    Tool {
        name: name.to_owned(),
        description: text("description").or_else(|| text("title")),
        schema: tool
            .get_mut("inputSchema")
            .map_or_else(|| json!({}), Value::take),
    }
}

/// The result of a call as the model sees it; a lost or broken server is an error.
fn model_result(
    connected: &ConnectedServer,
    called: Result<Result<String, String>, CallError>,
) -> Result<Result<String, String>, ServerLoss> {
    match called {
        Ok(result) => Ok(result),
        // A server that sends malformed messages instead of an answer has broken the protocol.
        Err(error @ CallError::TimedOut { .. }) => match malformed_message(&connected.client) {
            Some(detail) => Err(ServerLoss {
                server: connected.name.clone(),
                reason: format!("{error}, and it broke the protocol: {detail}"),
            }),
            None => Ok(Err(error.to_string())),
        },
        Err(
            error @ (CallError::Rpc(_)
            | CallError::TooLarge { .. }
            | CallError::Http { .. }
            | CallError::InputRefused(_)),
        ) => Ok(Err(error.to_string())),
        Err(
            error @ (CallError::Gone { .. }
            | CallError::Broken(_)
            | CallError::Malformed(_)
            | CallError::Unauthorized(_)),
        ) => Err(ServerLoss {
            server: connected.name.clone(),
            reason: error.to_string(),
        }),
    }
}

/// A malformed message that the server sent instead of an answer, if any.
fn malformed_message(client: &Client) -> Option<String> {
    let mut findings = client.findings();
    findings.extend(client.connection_findings());
    let found = findings.into_iter().find(|(kind, ..)| {
        matches!(
            kind,
            FindingKind::Malformed | FindingKind::UnknownId | FindingKind::Protocol
        )
    });
    found.map(|(_, detail, _)| detail)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn source(server: &str, tools: &[&str]) -> OfferSource {
        OfferSource {
            server: server.to_owned(),
            has_resources: false,
            has_prompts: false,
            tools: tools.iter().map(ToString::to_string).collect(),
        }
    }

    #[test]
    fn an_offer_is_shared_only_if_all_that_it_depends_on_is_the_same() {
        let known = KnownOffers::default();
        let one = || vec![source("a", &["{\"name\":\"x\"}", "{\"name\":\"y\"}"])];
        let offer = Arc::new(ToolOffer::default());
        assert!(known.find(&one()).is_none());
        known.add(one(), &offer);
        assert!(Arc::ptr_eq(&known.find(&one()).unwrap(), &offer));
        let others = [
            vec![],
            vec![source("b", &["{\"name\":\"x\"}", "{\"name\":\"y\"}"])],
            vec![source("a", &["{\"name\":\"y\"}", "{\"name\":\"x\"}"])],
            vec![source("a", &["{\"name\":\"x\"}"])],
            vec![source("a", &["{\"name\":\"x\"}", "{\"name\": \"y\"}"])],
            one().into_iter().chain([source("b", &[])]).collect(),
            one()
                .into_iter()
                .map(|source| OfferSource {
                    has_resources: true,
                    ..source
                })
                .collect(),
            one()
                .into_iter()
                .map(|source| OfferSource {
                    has_prompts: true,
                    ..source
                })
                .collect(),
        ];
        for other in others {
            assert!(known.find(&other).is_none(), "{other:?}");
        }
    }

    #[test]
    fn only_some_offers_are_kept() {
        let known = KnownOffers::default();
        let at = |number: usize| vec![source(&number.to_string(), &[])];
        for number in 0..2 * KnownOffers::MOST {
            known.add(at(number), &Arc::default());
        }
        assert!(known.find(&at(0)).is_some());
        assert!(known.find(&at(KnownOffers::MOST)).is_none());
    }
}
