//! An agent whose call only lenient servers read: it was executed, so no trial may pass without it.

use proctor_record::event::FindingKind;

use super::commands::AGENT;
use super::*;

/// A server on Python's own JSON, which takes `NaN`.
const SERVER: &str = r#"
import json, sys
for line in sys.stdin:
    message = json.loads(line)
    results = {
        "initialize": {"protocolVersion": "2025-06-18", "capabilities": {"tools": {}}, "serverInfo": {"name": "s", "version": "1"}},
        "tools/list": {"tools": [{"name": "echo", "inputSchema": {"type": "object"}}]},
        "tools/call": {"content": [{"type": "text", "text": "done"}]},
    }
    if "id" in message:
        answer = {"jsonrpc": "2.0", "id": message["id"]}
        if message["method"] in results: answer["result"] = results[message["method"]]
        else: answer["error"] = {"code": -32601, "message": "no such method"}
        print(json.dumps(answer), flush=True)
"#;

#[test]
fn a_call_with_nan_leaves_no_negative_check_green() {
    for assertions in [
        json!({"toolsNotUsed": [{"server": "ev", "tool": "echo"}]}),
        json!({"maxToolCalls": 0}),
        json!({"toolsUsed": [{"server": "ev", "tool": "echo"}]}),
    ] {
        let server = json!({"command": "python3", "args": ["-c", SERVER]});
        let suite = SuiteFixture::on(RULES, &json!({"ev": server}));
        let agent = json!({"type": "file", "path": "agent.yaml"});
        let task = json!({"assertions": assertions});
        suite.eval(&json!({"agent": agent}), &task);
        suite.task("say-hello", &json!({}));
        let script = suite.path("agent.py").display().to_string();
        suite.write(
            "agent.py",
            &AGENT.replace("{\"text\": prompt}", "{\"text\": float(\"nan\")}"),
        );
        let agent = json!({
            "kind": "Agent",
            "metadata": {"name": "any-command"},
            "commands": {
                "argTemplateMcpServer": "{{ .File }}",
                "runPrompt": format!("python3 {script} {{{{ .McpServerFileArgs }}}} \"{{{{ .Prompt }}}}\""),
                "useVirtualHome": true,
            },
        });
        suite.write("agent.yaml", &agent.to_string());
        let seen = run(suite.check(&[]), &std::env::var("PATH").unwrap());
        let ended = ended(&seen);
        let reason = ended.reason.clone().unwrap_or_default();
        assert_eq!(ended.outcome, Outcome::Errored, "{assertions}: {reason}");
        assert!(
            reason.contains("may be a `tools/call` of `ev` `echo`"),
            "{reason}"
        );
        let found = folded(&seen).findings;
        let kinds: Vec<FindingKind> = found.iter().map(|one| one.kind).collect();
        assert_eq!(kinds, [FindingKind::ClientMessage], "{found:?}");
    }
}
