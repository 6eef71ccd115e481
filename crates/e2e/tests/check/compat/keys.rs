//! The document that scripts read, key by key: those of mcpchecker's result file, with their types.
//! Readers in Python and jq tell capitals apart.

use std::collections::BTreeSet;

use proctor_e2e::suite::SuiteFixture;
use serde_json::{Value, json};

use super::document;
use crate::COMMAND_AGENT;

/// The keys of every document. What an agent or a server wrote is not looked into.
const KEYS: &[&str] = &[
    "summary.agent.name: string",
    "summary.agent.type: string",
    "summary.evals.names[]: string",
    "summary.evals.taskSets[].glob: string",
    "summary.evals.taskSets[].labelSelector: map",
    "summary.judge.model: string",
    "summary.judge.name: string",
    "summary.judge.type: string",
    "summary.mcpServers[].command: string",
    "summary.mcpServers[].name: string",
    "summary.mcpServers[].tools[].description: string",
    "summary.mcpServers[].tools[].inputSchema: map",
    "summary.mcpServers[].tools[].name: string",
    "summary.mcpServers[].type: string",
    "summary.parallelWorkers: number",
    "summary.runs: number",
    "summary.timeout.defaultTask: string",
    "results[].agentOutput.Error: string",
    "results[].agentOutput.Steps[].message: string",
    "results[].agentOutput.Steps[].success: bool",
    "results[].agentOutput.Steps[].type: string",
    "results[].agentOutput.Success: bool",
    "results[].agentOutput.agentDetails.outputSteps[].content: string",
    "results[].agentOutput.agentDetails.outputSteps[].toolCall.kind: string",
    "results[].agentOutput.agentDetails.outputSteps[].toolCall.rawInput: map",
    "results[].agentOutput.agentDetails.outputSteps[].toolCall.rawOutput: map",
    "results[].agentOutput.agentDetails.outputSteps[].toolCall.status: string",
    "results[].agentOutput.agentDetails.outputSteps[].toolCall.title: string",
    "results[].agentOutput.agentDetails.outputSteps[].type: string",
    "results[].agentOutput.agentDetails.toolCalls[].kind: string",
    "results[].agentOutput.agentDetails.toolCalls[].rawInput: map",
    "results[].agentOutput.agentDetails.toolCalls[].rawOutput: map",
    "results[].agentOutput.agentDetails.toolCalls[].status: string",
    "results[].agentOutput.agentDetails.toolCalls[].title: string",
    "results[].allAssertionsPassed: bool",
    "results[].assertionResults.toolsUsed.details[]: string",
    "results[].assertionResults.toolsUsed.passed: bool",
    "results[].callHistory.ToolCalls[].name: string",
    "results[].callHistory.ToolCalls[].request.Extra: null",
    "results[].callHistory.ToolCalls[].request.Params.arguments: map",
    "results[].callHistory.ToolCalls[].request.Params.name: string",
    "results[].callHistory.ToolCalls[].request.Session: null",
    "results[].callHistory.ToolCalls[].result: map",
    "results[].callHistory.ToolCalls[].serverName: string",
    "results[].callHistory.ToolCalls[].success: bool",
    "results[].callHistory.ToolCalls[].timestamp: string",
    "results[].callHistory.ToolCalls[].tokens.inputTokens: number",
    "results[].callHistory.ToolCalls[].tokens.outputTokens: number",
    "results[].callHistory.ToolCalls[].tokens.totalTokens: number",
    "results[].callHistory.PromptGets: empty list",
    "results[].callHistory.ResourceReads: empty list",
    "results[].cleanupOutput.Error: string",
    "results[].cleanupOutput.Steps: empty list",
    "results[].cleanupOutput.Success: bool",
    "results[].difficulty: string",
    "results[].parallel: bool",
    "results[].runIndex: number",
    "results[].setupOutput.Error: string",
    "results[].setupOutput.Steps: empty list",
    "results[].setupOutput.Success: bool",
    "results[].taskName: string",
    "results[].taskOutput: string",
    "results[].taskPassed: bool",
    "results[].taskPath: string",
    "results[].totalRuns: number",
    "results[].verifyOutput.Error: string",
    "results[].verifyOutput.Steps[].error: string",
    "results[].verifyOutput.Steps[].message: string",
    "results[].verifyOutput.Steps[].outputs: map",
    "results[].verifyOutput.Steps[].success: bool",
    "results[].verifyOutput.Steps[].type: string",
    "results[].verifyOutput.Success: bool",
];

/// The keys of `tokenEstimate`, which stands at two places.
const TOKENS: &[&str] = &[
    "inputTokens: number",
    "mcpSchemaTokens: number",
    "messageTokens: number",
    "outputTokens: number",
    "promptGetInputTokens: number",
    "promptGetOutputTokens: number",
    "promptTokens: number",
    "resourceInputTokens: number",
    "resourceOutputTokens: number",
    "source: string",
    "thinkingTokens: number",
    "toolInputTokens: number",
    "toolOutputTokens: number",
    "totalTokens: number",
];

/// What a provider has counted.
const ACTUAL: &[&str] = &[
    "actual.inputTokens: number",
    "actual.outputTokens: number",
    "actual.totalTokens: number",
];

/// Keys whose values are somebody else's words.
const FOREIGN: &[&str] = &[
    "arguments",
    "inputSchema",
    "rawInput",
    "rawOutput",
    "outputs",
    "labelSelector",
    "result",
];

fn keys(value: &Value, path: &str, found: &mut BTreeSet<String>) {
    let last = path.rsplit('.').next().unwrap_or(path);
    let word = match value {
        Value::Null => "null",
        Value::Bool(_) => "bool",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(items) if items.is_empty() => "empty list",
        Value::Object(_) if FOREIGN.contains(&last) => "map",
        Value::Array(items) => {
            return items
                .iter()
                .for_each(|item| keys(item, &format!("{path}[]"), found));
        }
        Value::Object(members) => {
            let dot = if path.is_empty() { "" } else { "." };
            for (key, member) in members.iter().filter(|(key, _)| *key != "proctor") {
                keys(member, &format!("{path}{dot}{key}"), found);
            }
            return;
        }
    };
    found.insert(format!("{path}: {word}"));
}

/// The keys that a document must have: neither more nor fewer.
fn expected(more: &[&str], tokens: &[&[&str]]) -> BTreeSet<String> {
    let mut all: BTreeSet<String> = KEYS.iter().chain(more).map(ToString::to_string).collect();
    for place in [
        "results[].tokenEstimate",
        "results[].agentOutput.agentDetails.tokenEstimate",
    ] {
        let keys = tokens.iter().flat_map(|keys| keys.iter());
        all.extend(keys.map(|key| format!("{place}.{key}")));
    }
    all
}

fn suite(agent: &Value) -> SuiteFixture {
    let rules = "  - when: {mustCall: verdict}
    reply: {calls: [{tool: verdict, arguments: {reason: told, evidence: ['it says echo'], verdict: pass}}]}
  - when: {results: 0}
    reply: {calls: [{tool: echo, arguments: {text: echo}}]}
  - reply: {text: 'it says {result}'}
";
    let suite = SuiteFixture::new(rules, &[]);
    suite.write("agent.py", COMMAND_AGENT);
    let verify =
        json!([{"script": {"inline": "echo fine"}}, {"llmJudge": {"contains": "it says"}}]);
    suite.task("echo", &json!({"verify": verify}));
    let text = std::fs::read_to_string(suite.path("tasks/echo.yaml")).unwrap();
    let mut task: Value = serde_json::from_str(&text).unwrap();
    task["metadata"]["labels"] = json!({"suite": "a"});
    suite.write("tasks/echo.yaml", &task.to_string());
    let judge = json!({"ref": {"type": "builtin.llm-agent", "model": "scripted:model.yaml"}});
    suite.eval(
        &json!({"agent": agent, "llmJudge": judge, "defaultTaskLimits": {"timeout": "5m"}}),
        &json!({"labelSelector": {"suite": "a"}, "assertions": {"toolsUsed": [{"server": "fixture", "tool": "echo"}]}}),
    );
    suite
}

#[track_caller]
fn check(document: &Value, more: &[&str], tokens: &[&[&str]]) {
    let mut found = BTreeSet::new();
    keys(document, "", &mut found);
    let expected = expected(more, tokens);
    let missing: Vec<_> = expected.difference(&found).collect();
    let unknown: Vec<_> = found.difference(&expected).collect();
    assert!(
        missing.is_empty() && unknown.is_empty(),
        "missing: {missing:#?}\nunknown: {unknown:#?}"
    );
}

#[test]
fn the_document_of_a_built_in_agent_has_the_keys_of_the_format() {
    let suite = suite(&json!({"type": "builtin.llm-agent", "model": "scripted:model.yaml"}));
    let all = document(&suite.check(&["-o", "json", "--parallel", "2"]).run(), 0);
    let more = [
        "summary.agent.model: string",
        "results[].taskJudgeReason: string",
    ];
    let judge = [
        "results[].judgeTokenUsage.inputTokens: number",
        "results[].judgeTokenUsage.outputTokens: number",
        "results[].judgeTokenUsage.totalTokens: number",
    ];
    check(&all, &[&more[..], &judge].concat(), &[TOKENS, ACTUAL]);
    assert_eq!(all["summary"]["agent"]["type"], "builtin.llm-agent");
    assert_eq!(all["summary"]["parallelWorkers"], 2);
    assert_eq!(all["summary"]["timeout"]["defaultTask"], "5m");
    let entry = &all["results"][0];
    assert_eq!(entry["tokenEstimate"]["source"], "actual");
    assert!(
        entry["taskPath"].as_str().unwrap().starts_with('/'),
        "{}",
        entry["taskPath"]
    );
    let kinds: Vec<&Value> = entry["agentOutput"]["Steps"]
        .as_array()
        .unwrap()
        .iter()
        .map(|step| &step["type"])
        .collect();
    assert_eq!(kinds, ["tool_call", "message"]);
    for phase in [
        "setupOutput",
        "agentOutput",
        "verifyOutput",
        "cleanupOutput",
    ] {
        assert_eq!(entry[phase]["Success"], true, "{phase}: {entry}");
    }
}

#[test]
fn the_document_of_an_external_agent_has_the_keys_of_the_format() {
    let suite = suite(&json!({"type": "file", "path": "agent.yaml"}));
    let script = suite.path("agent.py").display().to_string();
    let run =
        format!("python3 {script} {{{{ .McpServerFileArgs }}}} {{{{ printf \"%q\" .Prompt }}}}");
    let commands = json!({"argTemplateMcpServer": "{{ .File }}", "runPrompt": run});
    let agent = json!({"kind": "Agent", "metadata": {"name": "any"}, "commands": commands});
    suite.write("agent.yaml", &agent.to_string());
    let all = document(&suite.check(&["-o", "json"]).run(), 0);
    let more = [
        "summary.agent.command: string",
        "summary.agent.path: string",
        "results[].taskJudgeReason: string",
        "results[].judgeTokenUsage.inputTokens: number",
        "results[].judgeTokenUsage.outputTokens: number",
        "results[].judgeTokenUsage.totalTokens: number",
    ];
    // Nobody has counted what this agent took.
    check(&all, &more, &[TOKENS]);
    assert_eq!(all["summary"]["agent"]["type"], "file");
    assert_eq!(all["results"][0]["tokenEstimate"]["source"], "estimated");
}

/// Neither the address of a server nor a request tells what it was reached with.
#[test]
fn the_document_holds_no_credentials() {
    let server = proctor_e2e::Fixture::http(&[]);
    let suite = suite(&json!({"type": "builtin.llm-agent", "model": "scripted:model.yaml"}));
    let address = server
        .url()
        .replace("http://", "http://ada:hunter2hunter2@");
    let mcp = json!({"url": format!("{address}?key=sesame-sesame"), "headers": {"Authorization": "Bearer open-sesame-1"}});
    suite.write(
        "mcp.json",
        &json!({"mcpServers": {"fixture": mcp}}).to_string(),
    );
    let seen = suite.check(&["-o", "json"]).run();
    let all = document(&seen, 0);
    assert_eq!(all["summary"]["mcpServers"][0]["url"], server.url());
    assert_eq!(all["summary"]["mcpServers"][0]["type"], "http");
    for secret in ["hunter2hunter2", "sesame"] {
        assert!(
            !seen.stdout.contains(secret),
            "{secret} is in {}",
            seen.stdout
        );
    }
}
