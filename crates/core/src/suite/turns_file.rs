//! The file format of `turns` in a task: what the user says after the agent's first answer.
//!
//! Its main type is [`UserTurnFile`].

use proctor_record::problem::WithSpan;

use super::eval_file::AssertionsFileOrRows;
use super::task_file::TextSourceFile;
use crate::decode::{LooseText, PositiveInteger, RequiredKey, record};

record! {
    /// A further part of the conversation: a message of the user, or a user that a model plays.
    pub struct UserTurnFile one_of ["prompt", "user"] {
        /// The next message of the user.
        "prompt" => prompt: Option<WithSpan<TextSourceFile>>,
        /// A model that plays the user, and writes messages until its goal is reached.
        "user" => user: Option<UserModelFile>,
        /// The assertions to check on the calls of this turn only.
        "assertions" => assertions: Option<WithSpan<AssertionsFileOrRows>>,
    }
}

record! {
    /// A model that plays the user.
    pub struct UserModelFile {
        /// The model, as `provider:model-id`.
        "model" => model: RequiredKey<WithSpan<String>>,
        /// What the user wants from the agent.
        "goal" => goal: RequiredKey<WithSpan<LooseText>>,
        /// When the user ends the conversation. By default when the goal is reached, or can't be reached.
        "stop" => stop: Option<WithSpan<LooseText>>,
        /// The maximum number of messages, 10 by default. A user that is not done by then ends the trial as timed out.
        "maxTurns" => max_turns: Option<PositiveInteger>,
    }
}
