//! Finds the available tool that a script names.
//!
//! Its main type is [`ToolNaming`]. Agents add the server's name to a tool's name in different ways, so
//! a script with full names would work with only one agent.

/// How the available tools are named.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ToolNaming {
    /// As Proctor's own loop does: `tool`, or `server__tool`.
    Own,
    /// As some agent does: `mcp__server__tool`, `mcp_server_tool`, `server-tool` and others.
    OfAgent,
}

/// The result of a search for a tool.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum ToolLookup<'r> {
    One(&'r str),
    /// Ambiguous: several tools match.
    Several(Vec<&'r str>),
    Nothing,
}

impl ToolNaming {
    /// Finds a tool among the available ones.
    pub(super) fn find<'r>(self, offered: &[&'r str], name: &str) -> ToolLookup<'r> {
        if let Some(same) = offered.iter().find(|tool| **tool == name) {
            return ToolLookup::One(same);
        }
        match self {
            Self::Own => match offered.iter().find(|tool| same_tool(tool, name)) {
                Some(tool) => ToolLookup::One(tool),
                None => ToolLookup::Nothing,
            },
            Self::OfAgent => of_agent(offered, name),
        }
    }
}

/// The closest kind of match decides, and it must be unique. A server's name that
/// the agent does not use is ignored.
fn of_agent<'r>(offered: &[&'r str], name: &str) -> ToolLookup<'r> {
    let tail = name.split_once("__").map(|(_, tail)| tail);
    for name in [Some(name), tail].into_iter().flatten() {
        let kinds: [&dyn Fn(&str) -> bool; 3] = [
            &|tool| fold(tool) == fold(name),
            &|tool| ends_behind(&legal(tool), &legal(name), "__"),
            &|tool| ends_behind(&fold(tool), &fold(name), "_"),
        ];
        for is_alike in kinds {
            let alike: Vec<&str> = offered.iter().copied().filter(|t| is_alike(t)).collect();
            match alike[..] {
                [] => {}
                [one] => return ToolLookup::One(one),
                _ => return ToolLookup::Several(alike),
            }
        }
    }
    ToolLookup::Nothing
}

fn ends_behind(tool: &str, name: &str, between: &str) -> bool {
    !name.is_empty()
        && tool
            .strip_suffix(name)
            .is_some_and(|before| before.ends_with(between))
}

/// The name with `_` for every character that is not a letter or digit.
fn legal(name: &str) -> String {
    let legal = |c: char| if c.is_ascii_alphanumeric() { c } else { '_' };
    name.chars().map(legal).collect()
}

/// The same, with several in a row as one.
fn fold(name: &str) -> String {
    let mut folded = String::new();
    for c in legal(name).chars() {
        if c != '_' || !folded.ends_with('_') {
            folded.push(c);
        }
    }
    folded
}

/// Whether an available name refers to a tool: by the same name, or with its server's name (`fs__read`
/// for `read`). Characters that providers do not take are offered as `_`, and a name that does not
/// start with a letter behind `t_`.
pub(super) fn same_tool(offered: &str, name: &str) -> bool {
    if offered == name {
        return true;
    }
    let legal = |c: char| {
        if c.is_ascii_alphanumeric() || c == '-' {
            c
        } else {
            '_'
        }
    };
    let name: String = name.chars().map(legal).collect();
    let starts_legally = name.starts_with(|c: char| c.is_ascii_alphabetic());
    offered
        .strip_suffix(&*name)
        .is_some_and(|before| match before {
            "" => true,
            "t_" => !starts_legally,
            server => server.len() > 2 && server.ends_with("__"),
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(offered: &[&str], name: &str, expected: &[&str]) {
        let found = match ToolNaming::OfAgent.find(offered, name) {
            ToolLookup::One(one) => vec![one],
            ToolLookup::Several(several) => several,
            ToolLookup::Nothing => Vec::new(),
        };
        assert_eq!(found, expected, "{name} in {offered:?}");
    }

    #[test]
    fn a_tool_is_found_behind_any_agents_prefix() {
        for offered in [
            "echo",
            "mcp__ev__echo",
            "mcp_ev_echo",
            "ev__echo",
            "ev_echo",
            "ev-echo",
            "ev.echo",
        ] {
            let others = ["Bash", offered, "myecho", "echo_twice"];
            check(&others, "echo", &[offered]);
        }
        check(&["mcp_ev_get_sum"], "get-sum", &["mcp_ev_get_sum"]);
        check(&["ev_get-sum"], "get_sum", &["ev_get-sum"]);
    }

    #[test]
    fn the_closest_likeness_wins() {
        check(&["a__echo", "echo"], "echo", &["echo"]);
        check(&["x_get_sum", "get-sum"], "get_sum", &["get-sum"]);
        check(&["shell_echo", "mcp__ev__echo"], "echo", &["mcp__ev__echo"]);
    }

    #[test]
    fn the_servers_name_decides_between_several() {
        let offered = ["mcp__a__read", "mcp__b__read"];
        check(&offered, "read", &offered);
        check(&offered, "b__read", &["mcp__b__read"]);
        check(&["a_read", "b_read"], "read", &["a_read", "b_read"]);
        check(&["mcp_a_read", "mcp_b_read"], "a__read", &["mcp_a_read"]);
        // The agent calls the server otherwise.
        check(&["mcp__x__read"], "a__read", &["mcp__x__read"]);
    }

    #[test]
    fn what_is_not_on_offer_is_not_found() {
        check(&["mcp__ev__echo"], "no-such-tool", &[]);
        check(&["myecho"], "echo", &[]);
        check(&[], "echo", &[]);
        check(&["x__"], "", &[]);
        check(&["x__"], "a__", &[]);
    }
}
