//! Titles in permission requests of custom agents.

use super::*;

const ACP: Acp<'_> = Acp::Program {
    cmd: "x",
    args: &[],
};

/// A server that has listed these tools.
fn listing(name: &str, tools: &[&str], allowed: AllowedTools) -> AgentServer {
    AgentServer {
        tools: tools.iter().map(|tool| (*tool).to_owned()).collect(),
        ..server(name, allowed)
    }
}

/// Requests permission for a call, and returns whether it is allowed, and the agent's report.
fn ask(servers: &[AgentServer], title: &str, kind: &str) -> (bool, AgentReport) {
    let mut talk = AcpDialogue::opened(ACP, &assignment(servers.to_vec()));
    let call = json!({"toolCallId": "1", "kind": kind, "title": title});
    let params = json!({"sessionId": "s", "toolCall": call, "options": [
        {"optionId": "y", "kind": "allow_once"}, {"optionId": "n", "kind": "reject_once"}]});
    let request = json!({"jsonrpc": "2.0", "id": 9, "method": "session/request_permission",
        "params": params});
    talk.line(&request.to_string());
    let is_allowed = talk.last()["result"]["outcome"]["optionId"] == "y";
    (is_allowed, talk.end().0)
}

fn allowed(servers: &[AgentServer], title: &str) {
    let (is_allowed, report) = ask(servers, title, "other");
    assert!(is_allowed, "{title}: {:?}", report.refused);
    assert_eq!((report.denied, report.refused), (Vec::new(), Vec::new()));
}

/// Checks that a title is refused, and that the reason contains these texts.
fn refused(servers: &[AgentServer], title: &str, kind: &str, parts: &[&str]) {
    let (is_allowed, report) = ask(servers, title, kind);
    assert!(!is_allowed, "{title}");
    let reason = report.refused.join("\n");
    assert!(reason.contains(&format!("`{title}`")), "{reason}");
    for part in parts {
        assert!(reason.contains(part), "{part}: {reason}");
    }
}

#[test]
fn the_name_of_a_tool_is_enough_where_all_tools_are_allowed() {
    let servers = [listing("ev", &["echo", "get-sum"], AllowedTools::All)];
    for title in ["echo", "Echo", "get-sum", "get_sum", "ev/echo", "ev.echo"] {
        allowed(&servers, title);
    }
    for title in ["mcp__ev__echo", "ev__echo", "echo (ev MCP Server)"] {
        allowed(&servers, title);
    }
    // A tool that the server added later.
    allowed(&servers, "ev/new");
}

#[test]
fn no_part_of_a_title_grants_another_tool() {
    let tools = ["delete", "delete_all", "all"];
    let servers = [listing("ev", &tools, only(&["delete"]))];
    allowed(&servers, "delete");
    for title in [
        "delete_all",
        "delete all",
        "ev/delete_all",
        "mcp__ev__delete_all",
        "all",
    ] {
        refused(
            &servers,
            title,
            "other",
            &["not allowed", "accepted titles: `delete`"],
        );
    }
    let parts = ["does not match an allowed tool", "`delete`", "`ev/delete`"];
    for title in [
        "please delete",
        "delete everything",
        "delete()",
        "undelete",
        "",
        "evdelete",
    ] {
        refused(&servers, title, "other", &parts);
    }
}

#[test]
fn a_title_that_may_mean_tools_of_two_servers_needs_both_allowed() {
    let tools = ["echo", "sum"];
    let both = [
        listing("a", &tools, AllowedTools::All),
        listing("b", &tools, AllowedTools::All),
    ];
    allowed(&both, "echo");
    let one = [
        listing("a", &tools, AllowedTools::All),
        listing("b", &tools, only(&["sum"])),
    ];
    allowed(&one, "a/echo");
    allowed(&one, "sum");
    let parts = [
        "ambiguous between `a/echo`, `b/echo`",
        "`b/echo` is not allowed",
        "as in `a/echo`",
    ];
    refused(&one, "echo", "other", &parts);
}

#[test]
fn a_server_whose_name_begins_with_another_s_is_not_that_server() {
    let known = [
        listing("fs", &["list"], AllowedTools::All),
        listing("fs_admin", &["list", "delete"], only(&["list"])),
    ];
    allowed(&known, "fs_admin_list");
    refused(&known, "fs_admin_delete", "other", &["`fs_admin/delete`"]);
    let unknown = [
        server("fs", AllowedTools::All),
        server("fs_admin", only(&["list"])),
    ];
    refused(&unknown, "fs_admin_delete", "other", &[]);
    // Two tools with similar names.
    let alike = [listing("ev", &["get-sum", "get_sum"], only(&["get-sum"]))];
    refused(&alike, "get_sum", "other", &["`ev/get_sum` is not allowed"]);
    let foreign = [listing(
        "ev",
        &["\u{8aad}\u{3080}", "\u{6d88}\u{3059}"],
        only(&["\u{8aad}\u{3080}"]),
    )];
    allowed(&foreign, "\u{8aad}\u{3080}");
    refused(&foreign, "\u{6d88}\u{3059}", "other", &["not allowed"]);
}

#[test]
fn a_command_is_not_a_tool_whatever_its_title() {
    let servers = [listing("ev", &["echo"], AllowedTools::All)];
    for kind in ["execute", "edit", "delete", "move", "switch_mode"] {
        let own = format!("the kind `{kind}`");
        refused(&servers, "echo", kind, &[&own, "kind `other`"]);
    }
    for kind in ["read", "search", "think", "fetch", "other"] {
        assert!(ask(&servers, "echo", kind).0, "{kind}");
    }
}

#[test]
fn a_long_title_is_cut_and_few_refusals_are_told() {
    let servers = [listing("ev", &["echo"], AllowedTools::All)];
    let (_, report) = ask(&servers, &"\u{e4}".repeat(10_000), "other");
    assert!(report.refused[0].len() < 1_000, "{:?}", report.refused);
    let mut talk = AcpDialogue::opened(ACP, &assignment(servers.to_vec()));
    for at in 0..100 {
        let call = json!({"toolCallId": format!("{at}"), "title": format!("run {at}")});
        let params = json!({"toolCall": call, "options": []});
        let request = json!({"jsonrpc": "2.0", "id": at, "method": "session/request_permission",
            "params": params});
        talk.line(&request.to_string());
    }
    assert_eq!(talk.end().0.refused.len(), 3);
}
