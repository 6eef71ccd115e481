//! Files that use every key of their format.

use proctor_core::suite::schema::FileKind;
use serde_json::{Value, json};

pub(crate) fn complete(kind: FileKind) -> Value {
    match kind {
        FileKind::Eval => complete_eval(),
        FileKind::Task => json!({
            "$schema": "x.json", "kind": "Task", "apiVersion": "mcpchecker/v1alpha2",
            "metadata": {"name": "n", "difficulty": "easy", "labels": {"a": "b"}, "parallel": true, "runs": 3, "description": "d", "category": "c", "annotations": {}},
            "spec": {
                "requires": [{"extension": "e", "as": "x"}, {"mcpServer": "s"}],
                "servers": ["s"],
                "limits": {"timeout": "1m", "cleanupTimeout": "1h30m", "maxTurns": 3, "maxTokens": 1000, "maxCostUsd": 0.5},
                "setup": [{"id": "a", "script": {"inline": "x", "env": {"A": 1}, "timeout": "5s", "continueOnError": true}}, {"x.do": {"any": [1]}}],
                "verify": [
                    {"http": {"url": "u", "method": "GET", "headers": {"A": "b"}, "body": {"json": {"a": 1}}, "timeout": "1s",
                        "expect": {"status": 200, "body": {"match": "x", "fields": [{"path": "a", "equals": 1, "type": "string", "match": "x", "exists": true}]}}}},
                    {"llmJudge": {"contains": "x", "reason": "r"}},
                ],
                "cleanup": [{"script": {"file": "a.sh"}}],
                "prompt": {"inline": "p"},
                "rows": [{"id": "a", "labels": {"a": "b"}, "any": [1]}], "rowsFrom": "rows.csv",
                "workspace": "fixture",
                "replies": {"s": {"elicitation": [{"when": {"message": "m"}, "action": "accept", "content": {"a": 1}}], "sampling": {"model": "openai:x"}, "roots": ["a"]}},
                "turns": [
                    {"prompt": {"inline": "p"}, "assertions": assertions()},
                    {"user": {"model": "openai:x", "goal": "g", "stop": "s", "maxTurns": 3}},
                ],
            },
        }),
        FileKind::Agent => json!({
            "$schema": "x.json", "kind": "Agent", "apiVersion": "mcpchecker/v1alpha1",
            "metadata": {"name": "n", "version": 1.0, "description": "d", "annotations": 1},
            "builtin": {"type": "claude-code", "model": "m", "baseUrl": "u", "apiKey": "K"},
            "acp": {"cmd": "c", "args": ["a", 1]},
            "commands": {"runPrompt": "r", "argTemplateMcpServer": "a", "argTemplateAllowedTools": "b", "allowedToolsJoinSeparator": ",", "dangerouslySkipPermissions": true, "useVirtualHome": true, "getVersion": "v"},
            "skills": {"mountPath": "p", "toolName": "t"}, "modelTap": false, "connects": "onUse", "env": {"A": "b"},
        }),
        FileKind::McpConfig => json!({"$schema": "x.json", "mcpServers": {
            "a": {"type": "stdio", "command": "c", "args": ["a", 1], "env": {"A": "b"}, "cwd": "d", "disabled": false, "alwaysAllow": ["t"], "enableAllTools": true,
                "elicitation": {"a": 1}, "sampling": "refuse", "roots": ["a"], "protocol": "handshake"},
            "b": {"type": "http", "url": "http://x", "headers": {"A": "b"}, "auth": {"login": true}, "elicitation": "decline", "sampling": {"model": "openai:x"}},
            "c": {"url": "http://x", "auth": {"command": "c", "args": ["a"], "env": {"A": "b"}}, "elicitation": [{"when": {"message": "m"}, "action": "accept", "content": {"a": 1}}]},
            "d": {"url": "http://x", "auth": {"clientId": "i", "clientSecret": "s", "tokenUrl": "t", "issuer": "i", "scopes": ["a"], "resource": "r"}},
        }}),
        FileKind::Selection => json!({
            "$schema": "x.json", "kind": "Selection", "apiVersion": "proctor/v1",
            "metadata": {"name": "n", "difficulty": "easy", "labels": {"a": "b"}, "parallel": true, "runs": 3, "description": "d", "category": "c", "annotations": {}},
            "spec": {
                "limits": {"timeout": "1m", "cleanupTimeout": "1h30m", "maxTurns": 3, "maxTokens": 1000, "maxCostUsd": 0.5},
                "rows": [
                    {"id": "a", "prompt": "p", "expect": "t", "not": ["u"], "arguments": {"a": {"$min": 1}}, "mode": "contains", "server": "s", "labels": {"a": "b"}},
                    {"messages": [{"role": "user", "content": "c"}], "expect": ["t", "u"]},
                ],
            },
        }),
        FileKind::Script => json!({
            "$schema": "x.json", "kind": "Script", "apiVersion": "proctor/v1",
            "metadata": {"name": "n", "description": "d", "annotations": 1},
            "rules": [
                {"when": {"turn": 1, "results": 0, "prompt": "p", "user": "u", "system": "s", "result": "r", "error": true,
                    "tool": "t", "toolPattern": "t", "mustCall": "v"},
                 "reply": {"text": "x", "thinking": "y", "delay": "1ms", "stop": "length", "usage": {"input": 1, "output": 2, "cached": 1, "reasoning": 1},
                    "calls": [{"tool": "t", "arguments": {"a": [1, "{result.x}"]}}, {"tool": "t", "malformed": "{"}]}},
                {"reply": {"refuse": "no"}},
                {"reply": {"error": {"kind": "rateLimit", "detail": "d", "retryAfter": "1s"}}},
            ],
        }),
    }
}

fn complete_eval() -> Value {
    let mut eval = json!({
        "$schema": "x.json", "kind": "Eval", "apiVersion": "mcpchecker/v1alpha2",
        "metadata": {"name": "n", "description": "d", "category": "c", "labels": {"a": 1}, "annotations": {"x": [1]}},
        "config": {
            "agents": [{"type": "builtin.llm-agent", "model": "openai:x", "modelTap": true}, {"type": "file", "path": "a.yaml"}],
            "mcpConfigFile": "mcp.yaml",
            "llmJudge": {"ref": {"type": "builtin.llm-agent", "model": "openai:x"}, "votes": 3},
            "defaultTaskLimits": {"timeout": "1m", "cleanupTimeout": "1h30m", "maxTurns": 3, "maxTokens": 1000, "maxCostUsd": 0.5},
            "extensions": {"e": {"package": "./e", "config": {"a": 1}, "env": {"A": "b"}}},
            "sources": {"s": {"repo": "r", "ref": "v1", "serverMapping": {"a": "b"}}},
            "skills": {"sources": [{"type": "path", "path": "skills"}]},
            "setup": [{"id": "seed", "script": {"inline": "true", "env": {"A": 1}, "timeout": "1m", "continueOnError": true}}],
            "cleanup": [{"http": {"url": "u", "method": "GET", "headers": {"A": "b"}, "body": {"json": {"a": 1}}, "timeout": "1s",
                "expect": {"status": 200, "body": {"match": "x", "fields": [{"path": "a", "equals": 1, "type": "string", "match": "x", "exists": true}]}}}}],
            "cleanupTimeout": "1m",
            "preflight": false,
            "isolation": "trial",
            "workspace": "fixture",
            "gates": {"minPassRate": 0.9, "minLowerBound": "80%", "passHat": {"k": 3, "rate": 0.5}, "maxErrors": 2, "noRegression": "base.run"},
            "knownFailures": [{"case": "list-*", "agent": "codex", "reason": "#12", "until": "2026-12-31"}],
            "taskSets": [
                {"path": "a.yaml", "source": "s", "servers": ["s"], "labelSelector": {"a": "b"}, "pass": "4/5", "assertions": assertions()},
                {"glob": "*.yaml"},
                {"evals": {"server": "s", "level": "execution"}},
                {"selection": "routing.yaml", "server": "s"},
            ],
        },
    });
    // In one expression, the macro would be too deep.
    eval["config"]["surface"] = json!({"lock": "surface.lock.json", "allow": ["safe", "review", "breaking"], "maxSchemaTokens": 12000});
    eval["config"]["lint"] = json!({"off": [{"rule": "heavy-tool", "reason": "r", "tool": "t"}]});
    eval
}

fn assertions() -> Value {
    let tool = json!({
        "server": "s", "tool": "t", "toolPattern": "t.*",
        "arguments": {"a": {"$min": 1}, "z": {"$max": 2}, "b": [1, {"c": {"$not": null}}]},
        "result": {"content": {"$contains": {"text": {"$match": "x"}}}, "d": {"$approx": {"value": 1, "tolerance": 0.5}}, "e": {"$type": ["string", "null"]}, "f": {"$oneOf": [1, 2]}, "g": {"$exact": {"$x": 1}}, "h": {"$unordered": [1]}},
        "isError": false, "maxDuration": "1s", "times": {"min": 1, "max": 2},
    });
    json!({
        "toolsUsed": [tool], "requireAny": [tool], "toolsNotUsed": [{"server": "s"}], "minToolCalls": 1, "maxToolCalls": 5,
        "resourcesRead": [{"server": "s", "uri": "u", "uriPattern": "u"}], "resourcesNotRead": [{"server": "s"}],
        "promptsUsed": [{"server": "s", "prompt": "p", "promptPattern": "p"}], "promptsNotUsed": [{"server": "s"}],
        "callOrder": [{"type": "tool", "server": "s", "name": "t"}], "noDuplicateCalls": true,
        "calls": {"mode": "inOrder", "list": [tool]},
        "skillsLoaded": [{"skill": "a", "skillPattern": "b"}], "skillsNotLoaded": [{"skill": "a"}],
    })
}
