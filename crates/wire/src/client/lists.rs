//! Paginated lists of a server, within limits.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::{Arc, OnceLock, PoisonError};
use std::time::Duration;

use proctor_record::event::FindingKind;
use proctor_record::hint::listed;
use proctor_record::json;
use serde_json::value::RawValue;
use serde_json::{Map, Value};
use tokio::time::Instant;

use super::{CallError, Client, meta};
use crate::worker::on_body;

/// The limits for reading a list.
#[derive(Debug, Clone, Copy)]
pub struct ListLimits {
    pub pages: usize,
    pub items: usize,
    /// The total size of all items.
    pub bytes: usize,
    /// The total time for all pages.
    pub time: Duration,
}

impl Default for ListLimits {
    fn default() -> Self {
        Self {
            pages: 1_000,
            items: 100_000,
            bytes: 64 << 20,
            time: Duration::from_mins(5),
        }
    }
}

/// A list that was read to its end.
#[derive(Debug, Clone, Default)]
pub struct FullList {
    /// The items of all pages, as the server sent them.
    pub items: Vec<Box<RawValue>>,
    pub pages: usize,
}

/// Why a list could not be read to its end.
#[derive(Debug, Clone, thiserror::Error)]
pub enum ListError {
    /// The request for a page failed.
    #[error("`{method}` failed: {source}")]
    Call { method: String, source: CallError },
    /// A page has no list.
    #[error("`{method}` returned a page without the list `{key}`")]
    NoList {
        method: String,
        /// The member that should hold the list.
        key: String,
    },
    /// The list exceeds a limit.
    #[error("`{method}` exceeded the limit of {limit}; the rest was not read")]
    TooLong { method: String, limit: String },
    /// The server repeats a cursor, so the pagination would never end.
    #[error("`{method}` returned the cursor `{cursor}` twice (endless pagination)")]
    Circle { method: String, cursor: String },
}

/// The tools of the last listing.
#[derive(Debug)]
pub(super) struct ListedTools {
    /// The tools as the server wrote them.
    items: Vec<Box<RawValue>>,
    /// Few clients need them.
    by_name: OnceLock<ToolsByName>,
}

/// The tools of a server, by name.
type ToolsByName = BTreeMap<String, KnownTool>;

/// A tool with a name.
#[derive(Debug, Clone)]
pub(super) struct KnownTool {
    /// The tool as the server wrote it.
    raw: Box<RawValue>,
    header_arguments: OnceLock<Vec<meta::HeaderArgument>>,
}

impl ListedTools {
    fn new(items: Vec<Box<RawValue>>) -> Self {
        Self {
            items,
            by_name: OnceLock::new(),
        }
    }

    pub(super) fn get(&self, name: &str) -> Option<&KnownTool> {
        self.by_name().get(name)
    }

    fn by_name(&self) -> &ToolsByName {
        let find = || {
            let known = self.items.iter().filter_map(|raw| {
                // Most of a tool is its schema, which few clients need.
                let members: HashMap<String, &RawValue> = json::from_str(raw.get()).ok()?;
                let name = json::from_str(members.get("name")?.get()).ok()?;
                let known = KnownTool {
                    header_arguments: OnceLock::new(),
                    raw: raw.clone(),
                };
                Some((name, known))
            });
            known.collect()
        };
        self.by_name.get_or_init(|| on_body(self.bytes(), find))
    }

    fn bytes(&self) -> usize {
        self.items.iter().map(|raw| raw.get().len()).sum()
    }

    /// Whether both list the same texts.
    fn is(&self, other: &Self) -> bool {
        let (items, others) = (self.items.iter(), other.items.iter());
        items.map(|raw| raw.get()).eq(others.map(|raw| raw.get()))
    }
}

impl KnownTool {
    /// The arguments that the stateless era repeats in headers.
    pub(super) fn header_arguments(&self) -> &[meta::HeaderArgument] {
        self.header_arguments.get_or_init(|| {
            let tool: Value = json::from_str(self.raw.get()).unwrap_or_default();
            meta::header_arguments(&tool)
        })
    }

    /// Whether both are the same tool, whatever the formatting of their JSON.
    fn is(&self, other: &Self) -> bool {
        let parsed = |tool: &Self| json::from_str::<Value>(tool.raw.get()).ok();
        self.raw.get() == other.raw.get()
            || parsed(self)
                .zip(parsed(other))
                .is_some_and(|(one, two)| proctor_record::json::equal(&one, &two))
    }
}

/// Returns which tools were added, removed and changed; `None` if there is no difference.
fn difference(old: &ListedTools, new: &ListedTools) -> Option<String> {
    if old.is(new) {
        return None;
    }
    let (old, new) = (old.by_name(), new.by_name());
    let names = |tools: Vec<&String>| listed(tools.into_iter().map(String::as_str));
    let added: Vec<&String> = new.keys().filter(|name| !old.contains_key(*name)).collect();
    let removed: Vec<&String> = old.keys().filter(|name| !new.contains_key(*name)).collect();
    let changed: Vec<&String> = new
        .iter()
        .filter(|(name, tool)| old.get(*name).is_some_and(|old| !old.is(tool)))
        .map(|(name, _)| name)
        .collect();
    let parts = [("added", added), ("removed", removed), ("changed", changed)];
    let parts: Vec<String> = parts
        .into_iter()
        .filter(|(_, tools)| !tools.is_empty())
        .map(|(word, tools)| format!("{word} {}", names(tools)))
        .collect();
    (!parts.is_empty()).then(|| parts.join("; "))
}

impl Client {
    /// Lists all tools. Adds a finding if they differ from the last listing.
    pub async fn list_tools(&self, limits: &ListLimits) -> Result<FullList, ListError> {
        let listed = self.list("tools/list", "tools", limits).await?;
        let tools = Arc::new(ListedTools::new(listed.items.clone()));
        let mut known = self.tools.lock().unwrap_or_else(PoisonError::into_inner);
        let old = known.replace(tools.clone());
        // Comparing long lists takes time.
        drop(known);
        let bytes = tools.bytes();
        if let Some(difference) = old.and_then(|old| on_body(bytes, || difference(&old, &tools))) {
            self.tap.finding(FindingKind::ToolsChanged, difference);
        }
        Ok(listed)
    }

    /// Returns the tools of the last listing, if there was one.
    pub(super) fn listed_tools(&self) -> Option<Arc<ListedTools>> {
        let tools = self.tools.lock().unwrap_or_else(PoisonError::into_inner);
        tools.clone()
    }

    /// Reads all pages of a list.
    pub async fn list(
        &self,
        method: &str,
        key: &str,
        limits: &ListLimits,
    ) -> Result<FullList, ListError> {
        self.list_with(method, key, &Map::new(), limits).await
    }

    /// Reads all pages of a list, with these parameters in every request.
    pub async fn list_with(
        &self,
        method: &str,
        key: &str,
        params: &Map<String, Value>,
        limits: &ListLimits,
    ) -> Result<FullList, ListError> {
        let mut listed = FullList::default();
        let mut cursors = BTreeSet::new();
        let mut cursor: Option<String> = None;
        let mut bytes = 0;
        let started = Instant::now();
        loop {
            let mut params = params.clone();
            if let Some(cursor) = &cursor {
                params.insert("cursor".to_owned(), cursor.as_str().into());
            }
            let page = self
                .request(method, params)
                .await
                .map_err(|source| ListError::Call {
                    method: method.to_owned(),
                    source,
                })?;
            let (items, next) = self.page(method, key, &page)?;
            listed.pages += 1;
            bytes += items.iter().map(|item| item.get().len()).sum::<usize>();
            listed.items.extend(items);
            let has_more = next.is_some();
            let limit = [
                (
                    has_more && listed.pages >= limits.pages,
                    format!("{} pages", limits.pages),
                ),
                (
                    listed.items.len() > limits.items,
                    format!("{} items", limits.items),
                ),
                (bytes > limits.bytes, format!("{} bytes", limits.bytes)),
                (
                    has_more && started.elapsed() > limits.time,
                    proctor_record::duration::render(limits.time),
                ),
            ];
            if let Some((_, limit)) = limit.into_iter().find(|(reached, _)| *reached) {
                return Err(self.endless(ListError::TooLong {
                    method: method.to_owned(),
                    limit,
                }));
            }
            // An empty cursor is valid.
            let Some(next) = next else { return Ok(listed) };
            if !cursors.insert(next.clone()) {
                return Err(self.endless(ListError::Circle {
                    method: method.to_owned(),
                    cursor: next,
                }));
            }
            cursor = Some(next);
        }
    }

    fn endless(&self, error: ListError) -> ListError {
        self.tap.finding(FindingKind::Pagination, error.to_string());
        error
    }

    fn page(
        &self,
        method: &str,
        key: &str,
        page: &RawValue,
    ) -> Result<(Vec<Box<RawValue>>, Option<String>), ListError> {
        let read = on_body(page.get().len(), || {
            let fields: BTreeMap<String, &RawValue> = json::from_str(page.get()).ok()?;
            let items: Vec<Box<RawValue>> = json::from_str(fields.get(key)?.get()).ok()?;
            let next = fields.get("nextCursor").map(|raw| raw.get());
            Some((items, next.and_then(|next| json::from_str(next).ok())))
        });
        let Some((items, next)) = read else {
            let error = ListError::NoList {
                method: method.to_owned(),
                key: key.to_owned(),
            };
            self.tap.finding(FindingKind::Protocol, error.to_string());
            return Err(error);
        };
        Ok((items, next.flatten()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(items: &[&str]) -> ListedTools {
        let raw = items
            .iter()
            .map(|item| RawValue::from_string((*item).to_owned()).unwrap());
        ListedTools::new(raw.collect())
    }

    #[test]
    fn changed_tools_are_listed() {
        let old = of(&[
            r#"{"name":"a","x":1}"#,
            r#"{"name":"b"}"#,
            r#"{"name":"c"}"#,
        ]);
        let new = of(&[
            r#"{"x":1.0, "name":"a"}"#,
            r#"{"name":"c","y":2}"#,
            r#"{"name":"d"}"#,
        ]);
        let expected = "added `d`; removed `b`; changed `c`";
        assert_eq!(difference(&old, &new).as_deref(), Some(expected));
        assert_eq!(difference(&old, &old), None);
    }
}
