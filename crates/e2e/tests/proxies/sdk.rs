//! The official SDK clients, through every proxy.
