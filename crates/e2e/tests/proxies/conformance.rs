//! The conformance suite, direct and through every proxy.
