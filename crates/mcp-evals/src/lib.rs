//! The `evals` primitive of MCP: evaluations that a server ships alongside its tools, and any client
//! can list and run.
//!
//! `SPEC.md`, beside this crate's sources, describes the wire format. For a server:
//!
//! - [`Eval`] and the types below it are the data. They keep unknown fields.
//! - [`EvalFile`] reads evals from JSON, including malformed ones; [`validate`] reports all problems.
//! - [`Suite`] answers `evals/list`: pages, cursors and the level filter.
//! - [`splice`] inserts the capability into a message that an SDK has serialized.
//! - The module `rmcp`, behind the feature `rmcp`, does all of this for a server built on the Rust SDK.
//!
//! For a client: [`ListResult`], and the exact-match rules in [`matching`].
//!
//! ```
//! use mcp_evals::{Eval, Expected, Input, ListParams, Message, Suite};
//! use serde_json::json;
//!
//! let evals = vec![
//!     Eval::new(
//!         "adds-two-numbers",
//!         "Adds two numbers",
//!         Input::execution("add", json!({"a": 1, "b": 2})),
//!         Expected::content(json!([{"type": "text", "text": "3"}])),
//!     ),
//!     Eval::new(
//!         "picks-add",
//!         "Picks `add` for a sum",
//!         Input::invocation([Message::user("What is 17 + 25?")]),
//!         Expected::call("add", json!({"a": 17, "b": 25})),
//!     ),
//! ];
//! let suite = Suite::new(evals)?;
//! let page = suite.page(&ListParams::default())?;
//! assert_eq!(page.evals.len(), 2);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! Numbers keep every digit if `serde_json` is built with `arbitrary_precision`, which the feature
//! `exact-numbers` enables. Without it, integers of 64 bits are exact and other numbers are floats.

// Authors of servers read these pages.
#![warn(missing_docs)]

mod capability;
mod eval;
mod expected;
mod fields;
mod file;
mod input;
mod keys;
mod list;
pub mod matching;
mod message;
#[cfg(feature = "rmcp")]
pub mod rmcp;
mod schema;
pub mod splice;
mod suite;
mod validate;

pub use capability::{CAPABILITY, Capability, EXTENSION, LIST_CHANGED, LISTEN_KEY, METHOD};
pub use eval::{Eval, GradingType, Level};
pub use expected::{ExactMatch, Expected, LlmJudge};
pub use fields::ShapeFault;
pub use file::{EvalFile, FileError};
pub use input::{ExecutionInput, Input, InvocationInput, ScenarioInput};
pub use keys::{EVAL_KEYS, expected_keys, input_keys};
pub use list::{ListParams, ListResult, ListedEval, MalformedEval};
pub use message::{
    Content, Contents, MediaContent, Message, Role, TextContent, ToolResult, ToolUse,
};
pub use schema::{eval_schema, schema};
pub use suite::{DEFAULT_PAGE_SIZE, INVALID_PARAMS, InvalidSuite, PageError, Suite};
pub use validate::{
    EvalFinding, EvalStatus, FindingRule, Severity, ValidationReport, validate, validate_with_tools,
};
