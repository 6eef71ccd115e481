//! The `evals` primitive of MCP: evaluations that a server ships alongside its tools, and any client
//! can list and run.
//!
//! What goes over the wire is described in `SPEC.md`, beside this crate's sources. For a server:
//!
//! - [`Eval`] and the types below it are the data. They keep fields that they do not know.
//! - [`EvalFile`] reads evals from JSON, one broken eval at a time; [`validate`] says all that is wrong.
//! - [`Suite`] answers `evals/list`: pages, cursors and the level filter.
//! - [`splice`] puts the capability into a message that an SDK has already written.
//! - The module `rmcp`, behind the feature of that name, does all of it in a server built on the Rust SDK.
//!
//! For a client there are [`ListResult`], and the exact-match rules in [`matching`].
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
//! `exact-numbers` asks for. Without it, integers of 64 bits are exact and the rest are floats.

// Whoever writes a server reads these pages.
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
