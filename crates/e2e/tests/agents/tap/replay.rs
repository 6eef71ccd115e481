//! Runs of agents that are heard again, without anybody to ask.

use super::*;
