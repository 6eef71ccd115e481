//! Real agents, through the proxies.
