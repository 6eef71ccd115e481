//! The server side of `evals/list`: pages, cursors, and the level filter.
//!
//! Its main type is [`Suite`]. A cursor names the last eval that was sent, by its index and its id, so
//! that a client in the middle of a list misses little when evals change.

use serde_json::Value;

use crate::eval::{Eval, Level};
use crate::fields::ShapeFault;
use crate::list::{ListParams, ListResult, ListedEval};
use crate::validate::{ValidationReport, validate};

/// The default number of evals per page.
pub const DEFAULT_PAGE_SIZE: usize = 100;

/// The JSON-RPC code for an unknown cursor or level.
pub const INVALID_PARAMS: i64 = -32602;

/// The params of `evals/list` are invalid. The code on the wire is [`INVALID_PARAMS`].
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PageError {
    /// The cursor is unknown.
    #[error("unknown cursor `{0}`")]
    Cursor(String),
    /// The params have the wrong shape.
    #[error("invalid params: {0}")]
    Params(String),
}

impl PageError {
    /// The JSON-RPC code of the error.
    pub fn code(&self) -> i64 {
        INVALID_PARAMS
    }
}

/// The evals that a server ships.
#[derive(Debug, Clone, PartialEq)]
pub struct Suite {
    items: Vec<ListedEval>,
    page_size: usize,
}

impl Default for Suite {
    fn default() -> Self {
        Self::of_items(Vec::new())
    }
}

impl Suite {
    /// Validates the evals of a server. The error contains all problems.
    pub fn new(evals: Vec<Eval>) -> Result<Self, InvalidSuite> {
        let items: Vec<ListedEval> = evals.into_iter().map(ListedEval::from).collect();
        let report = validate(&items);
        if report.is_valid() {
            Ok(Self::of_items(items))
        } else {
            Err(InvalidSuite(report))
        }
    }

    pub(crate) fn of_items(items: Vec<ListedEval>) -> Self {
        Self {
            items,
            page_size: DEFAULT_PAGE_SIZE,
        }
    }

    /// The same suite, in pages of `size` evals, at least one.
    #[must_use]
    pub fn with_page_size(mut self, size: usize) -> Self {
        self.page_size = size.max(1);
        self
    }

    /// The evals, in the order in which they are listed.
    pub fn items(&self) -> &[ListedEval] {
        &self.items
    }

    /// The page that `params` request.
    pub fn page(&self, params: &ListParams) -> Result<ListResult, PageError> {
        let start = match params.cursor.as_deref() {
            // No page ends with the empty cursor, so it can only be meant as the beginning.
            None | Some("") => 0,
            Some(cursor) => self.after(cursor)?,
        };
        let mut wanted = self
            .items
            .iter()
            .enumerate()
            .skip(start)
            .filter(|(_, item)| {
                params
                    .level
                    .is_none_or(|level| level_of(item) == Some(level))
            });
        let page: Vec<(usize, &ListedEval)> = wanted.by_ref().take(self.page_size).collect();
        let next_cursor = wanted
            .next()
            .and_then(|_| page.last())
            .map(|(index, item)| cursor(*index, item));
        Ok(ListResult {
            evals: page.into_iter().map(|(_, item)| item.clone()).collect(),
            next_cursor,
            ..ListResult::default()
        })
    }

    /// The page that the raw params of a request ask for.
    pub fn answer(&self, params: Option<&Value>) -> Result<ListResult, PageError> {
        let Some(params) = params else {
            return self.page(&ListParams::default());
        };
        let mut faults = Vec::new();
        let params = ListParams::read(params.clone(), "", &mut faults).ok_or_else(|| {
            let texts: Vec<String> = faults.iter().map(ShapeFault::to_string).collect();
            PageError::Params(texts.join("; "))
        })?;
        self.page(&params)
    }

    /// The index after the eval that a cursor names, or after its old index if it is gone.
    fn after(&self, cursor: &str) -> Result<usize, PageError> {
        let unknown = || PageError::Cursor(cursor.to_owned());
        let (place, mark) = cursor.split_once('-').ok_or_else(unknown)?;
        let is_hex = |text: &str| text.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f'));
        if mark.len() != 16 || !is_hex(mark) || !is_hex(place) {
            return Err(unknown());
        }
        let place = usize::from_str_radix(place, 16).map_err(|_| unknown())?;
        let is_it = |item: &ListedEval| id_mark(item) == mark;
        if self.items.get(place).is_some_and(is_it) {
            return Ok(place + 1);
        }
        let moved = self.items.iter().position(is_it);
        Ok(moved.map_or(place, |place| place + 1).min(self.items.len()))
    }
}

/// Evals that a server must not ship: invalid ones, or several with the same id.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("invalid evals:\n{0}")]
pub struct InvalidSuite(pub ValidationReport);

fn level_of(item: &ListedEval) -> Option<Level> {
    item.eval()?.level()
}

fn cursor(place: usize, item: &ListedEval) -> String {
    format!("{place:x}-{}", id_mark(item))
}

/// A short form of an id, which may be of any length: its 64-bit FNV-1a hash.
fn id_mark(item: &ListedEval) -> String {
    let id = item.id().unwrap_or_default();
    let hash = id.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3)
    });
    format!("{hash:016x}")
}
