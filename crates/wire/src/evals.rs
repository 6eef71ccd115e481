//! The evals that a server ships: detecting and listing them, and shipping evals for a server that
//! doesn't support them.

pub mod serve;

use std::future::pending;

use mcp_evals::{CAPABILITY, LISTEN_KEY, Level, ListedEval, METHOD};
use proctor_record::json;
use serde_json::value::RawValue;
use serde_json::{Map, Value};

use crate::client::{Client, Era, ListError, ListLimits, ServerIdentity};

/// Where a server declares that it ships evals.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CapabilityLocation {
    /// Under `capabilities.evals`.
    Top,
    /// Under `capabilities.experimental.evals`.
    Experimental,
    /// A key of `capabilities.extensions`.
    Extension(String),
}

impl std::fmt::Display for CapabilityLocation {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Top => f.write_str("capabilities.evals"),
            Self::Experimental => f.write_str("capabilities.experimental.evals"),
            Self::Extension(key) => write!(f, "capabilities.extensions[\"{key}\"]"),
        }
    }
}

/// Returns all places where a server declares evals. If there are none, Proctor sends no
/// `evals/list`.
pub fn declared(identity: &ServerIdentity) -> Vec<CapabilityLocation> {
    places(&identity.capabilities)
}

/// Returns the places in these capabilities that declare evals.
fn places(capabilities: &Map<String, Value>) -> Vec<CapabilityLocation> {
    let inside = |key: &str| capabilities.get(key).and_then(Value::as_object);
    let is_declared = |value: Option<&Value>| value.is_some_and(Value::is_object);
    let mut places = Vec::new();
    if is_declared(capabilities.get(CAPABILITY)) {
        places.push(CapabilityLocation::Top);
    }
    if is_declared(inside("experimental").and_then(|all| all.get(CAPABILITY))) {
        places.push(CapabilityLocation::Experimental);
    }
    let extensions = inside("extensions").into_iter().flatten();
    let named = extensions.filter(|(key, value)| {
        key.rsplit('/').next() == Some(CAPABILITY) && is_declared(Some(value))
    });
    places.extend(named.map(|(key, _)| CapabilityLocation::Extension(key.clone())));
    places
}

/// Whether a server declares that it sends `list_changed` for evals.
pub fn tells_of_changes(identity: &ServerIdentity) -> bool {
    let capabilities = &identity.capabilities;
    let inside = |key: &str| capabilities.get(key).and_then(Value::as_object);
    let all = capabilities
        .get(CAPABILITY)
        .into_iter()
        .chain(inside("experimental").and_then(|all| all.get(CAPABILITY)))
        .chain(
            inside("extensions")
                .into_iter()
                .flatten()
                .filter(|(key, _)| key.rsplit('/').next() == Some(CAPABILITY))
                .map(|(_, value)| value),
        );
    all.into_iter()
        .any(|declared| declared.get("listChanged") == Some(&Value::Bool(true)))
}

/// Looks at a server at once, and again each time that it announces a changed list, until `look` returns a value. In the
/// stateless era a server announces only what it is asked for, so it is asked for changed evals. It is looked at again
/// when announcements can first arrive, since earlier ones are lost.
pub async fn on_changes<T>(client: &Client, mut look: impl AsyncFnMut() -> Option<T>) -> T {
    let mut signals = client.change_signals();
    let looking = async {
        loop {
            if let Some(value) = look().await {
                return value;
            }
            if signals.changed().await.is_err() {
                // The connection ended, so there is nothing more to see.
                return pending().await;
            }
        }
    };
    tokio::select! {
        biased;
        () = subscribed(client) => pending().await,
        value = looking => value,
    }
}

/// Subscribes to changed evals where a server requires it. Ends if the server refuses or ends the subscription.
async fn subscribed(client: &Client) {
    if client.identity().era == Era::Stateless {
        let wanted = Map::from_iter([(LISTEN_KEY.to_owned(), Value::Bool(true))]);
        let params = Map::from_iter([("notifications".to_owned(), Value::Object(wanted))]);
        // A server that can't notify is listed again before anything runs.
        let _ = client.request("subscriptions/listen", params).await;
    }
    pending::<()>().await;
}

/// One shipped eval, raw and parsed.
#[derive(Debug, Clone)]
pub struct RawEval {
    /// The eval as the server wrote it.
    pub raw: Box<RawValue>,
    pub item: ListedEval,
}

/// Lists all evals of a server, or those of one level. The server may ignore the level.
pub async fn list(
    client: &Client,
    level: Option<Level>,
    limits: &ListLimits,
) -> Result<Vec<ListedEval>, ListError> {
    let shipped = list_raw(client, level, limits).await?;
    Ok(shipped.into_iter().map(|shipped| shipped.item).collect())
}

/// Lists the evals like [`list`], each with its raw JSON.
pub async fn list_raw(
    client: &Client,
    level: Option<Level>,
    limits: &ListLimits,
) -> Result<Vec<RawEval>, ListError> {
    let mut params = Map::new();
    if let Some(level) = level {
        params.insert("level".to_owned(), level.as_str().into());
    }
    let listed = client.list_with(METHOD, "evals", &params, limits).await?;
    let read = listed.items.into_iter().map(|raw| {
        let value: Value = json::from_str(raw.get()).unwrap_or_default();
        RawEval {
            raw,
            item: ListedEval::from(value),
        }
    });
    // A malformed eval has no known level, and stays in the list so that it is reported.
    let meant = |shipped: &RawEval| {
        level.is_none_or(|level| {
            let eval = shipped.item.eval();
            eval.is_none_or(|eval| eval.level().is_none_or(|own| own == level))
        })
    };
    Ok(read.filter(meant).collect())
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use serde_json::value::to_raw_value;

    use super::*;
    use crate::client::Era;

    fn identity(capabilities: &Value) -> ServerIdentity {
        ServerIdentity {
            name: None,
            version: None,
            protocol: String::new(),
            era: Era::Handshake,
            capabilities: capabilities.as_object().cloned().unwrap_or_default(),
            instructions: None,
            raw: to_raw_value(capabilities).expect("JSON"),
        }
    }

    #[test]
    fn e2_the_capability_is_found_in_all_three_places() {
        let check = |capabilities: Value, expected: &[&str]| {
            let places = declared(&identity(&capabilities));
            let places: Vec<String> = places.iter().map(ToString::to_string).collect();
            assert_eq!(places, expected, "{capabilities}");
        };
        check(json!({}), &[]);
        check(json!({"tools": {}}), &[]);
        check(json!({"evals": {}}), &["capabilities.evals"]);
        check(json!({"evals": true}), &[]);
        check(
            json!({"experimental": {"evals": {"listChanged": true}}}),
            &["capabilities.experimental.evals"],
        );
        check(
            json!({"extensions": {"com.example/evals": {}, "com.example/other": {}, "evals": {}}}),
            &[
                "capabilities.extensions[\"com.example/evals\"]",
                "capabilities.extensions[\"evals\"]",
            ],
        );
    }

    #[test]
    fn e7_list_changed_support_is_detected() {
        let tells = |capabilities: Value| tells_of_changes(&identity(&capabilities));
        assert!(!tells(json!({"evals": {}})));
        assert!(tells(json!({"evals": {"listChanged": true}})));
        assert!(tells(
            json!({"extensions": {"a/evals": {"listChanged": true}}})
        ));
    }
}
