//! Everything that a server lists, page by page, within limits.

use std::collections::BTreeSet;
use std::time::Duration;

use proctor_core::event::FindingKind;
use serde_json::value::RawValue;
use serde_json::{Map, Value};
use tokio::time::Instant;

use super::{CallError, Client, meta};

/// How much of a list is read.
#[derive(Debug, Clone, Copy)]
pub struct Caps {
    /// Pages.
    pub pages: usize,
    /// Items.
    pub items: usize,
    /// Bytes of all items.
    pub bytes: usize,
    /// Time for all pages.
    pub time: Duration,
}

impl Default for Caps {
    fn default() -> Self {
        Self {
            pages: 1_000,
            items: 100_000,
            bytes: 64 << 20,
            time: Duration::from_mins(5),
        }
    }
}

/// A whole list.
#[derive(Debug, Clone, Default)]
pub struct Listed {
    /// The items, untouched.
    pub items: Vec<Box<RawValue>>,
    /// How many pages they came in.
    pub pages: usize,
}

/// Why a list could not be read to its end.
#[derive(Debug, Clone, thiserror::Error)]
pub enum ListError {
    /// A page could not be had.
    #[error("`{method}` failed: {source}")]
    Call {
        /// The list.
        method: String,
        /// Why.
        source: CallError,
    },
    /// A page is none.
    #[error("`{method}` gave a page without a list `{key}`")]
    NoList {
        /// The list.
        method: String,
        /// What should be in it.
        key: String,
    },
    /// The list goes on too long.
    #[error("`{method}` gave more than {limit}, and was not read to its end")]
    TooLong {
        /// The list.
        method: String,
        /// Which limit.
        limit: String,
    },
    /// The list goes round in circles.
    #[error("`{method}` gave the cursor `{cursor}` twice, and would never end")]
    Circle {
        /// The list.
        method: String,
        /// The cursor.
        cursor: String,
    },
}

impl Client {
    /// All tools.
    pub async fn list_tools(&self, caps: &Caps) -> Result<Listed, ListError> {
        let listed = self.list("tools/list", "tools", caps).await?;
        let mut marked = std::collections::BTreeMap::new();
        for tool in &listed.items {
            let Ok(tool) = serde_json::from_str::<Value>(tool.get()) else {
                continue;
            };
            let arguments = meta::header_arguments(&tool);
            if let (Some(name), false) = (
                tool.get("name").and_then(Value::as_str),
                arguments.is_empty(),
            ) {
                marked.insert(name.to_owned(), arguments);
            }
        }
        *self
            .header_arguments
            .lock()
            .unwrap_or_else(std::sync::PoisonError::into_inner) = marked;
        Ok(listed)
    }

    /// All pages of a list, whatever it lists.
    pub async fn list(&self, method: &str, key: &str, caps: &Caps) -> Result<Listed, ListError> {
        let mut listed = Listed::default();
        let mut cursors = BTreeSet::new();
        let mut cursor: Option<String> = None;
        let mut bytes = 0;
        let started = Instant::now();
        loop {
            let mut params = Map::new();
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
            // An empty cursor is a cursor like any other.
            let Some(next) = next else { return Ok(listed) };
            let limit = [
                (listed.pages >= caps.pages, format!("{} pages", caps.pages)),
                (
                    listed.items.len() > caps.items,
                    format!("{} items", caps.items),
                ),
                (bytes > caps.bytes, format!("{} bytes", caps.bytes)),
                (
                    started.elapsed() > caps.time,
                    format!("{} of waiting", proctor_core::duration::render(caps.time)),
                ),
            ];
            if let Some((_, limit)) = limit.into_iter().find(|(reached, _)| *reached) {
                return Err(self.endless(ListError::TooLong {
                    method: method.to_owned(),
                    limit,
                }));
            }
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
        self.peer
            .tap()
            .finding(FindingKind::Pagination, error.to_string());
        error
    }

    fn page(
        &self,
        method: &str,
        key: &str,
        page: &RawValue,
    ) -> Result<(Vec<Box<RawValue>>, Option<String>), ListError> {
        let fields: Result<std::collections::BTreeMap<String, Box<RawValue>>, _> =
            serde_json::from_str(page.get());
        let fields = fields.unwrap_or_default();
        let items = fields
            .get(key)
            .and_then(|raw| serde_json::from_str(raw.get()).ok());
        let Some(items) = items else {
            let error = ListError::NoList {
                method: method.to_owned(),
                key: key.to_owned(),
            };
            self.peer
                .tap()
                .finding(FindingKind::Protocol, error.to_string());
            return Err(error);
        };
        let next = fields
            .get("nextCursor")
            .and_then(|raw| serde_json::from_str(raw.get()).ok());
        Ok((items, next.flatten()))
    }
}
