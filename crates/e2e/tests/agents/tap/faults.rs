//! Providers that are not there, say no, or say nothing.

use super::*;
