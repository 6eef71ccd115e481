//! What a server offers, compared with what it offered before.
//!
//! Main types: [`SurfaceContent`], the canonical form of a surface, and [`SurfaceLock`], the file that stores it.
//! [`changes`] classifies every difference. A change that is not proved to be safe is never safe.

mod content;
mod items;
mod judgement;
mod leaves;
mod lock;
mod message;
mod proof;
mod schema;
mod witness;

use proctor_record::event::ChangeClass;

pub use self::content::{ContentError, SurfaceContent, tool_tokens};
pub use self::items::changes;
pub use self::judgement::{ContractJudgement, SurfaceContract, example, line};
pub use self::lock::{LockError, SurfaceLock};

/// The reason of an unlisted list if the server does not implement its method.
pub const NOT_IMPLEMENTED: &str = "the method is not implemented";

/// The classes of changes that a contract allows, if it does not say: everything but breaking changes.
pub const ALLOWED_BY_DEFAULT: [ChangeClass; 2] = [ChangeClass::Safe, ChangeClass::Review];
