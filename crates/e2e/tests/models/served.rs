//! A script behind `proctor model serve`: the vendors' own packages and our own adapters get the same
//! from it in every format, and faults are what they stand for.

use std::io::{BufRead, BufReader, Read, Write};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};

use proctor_core::model::{ModelMessage, ModelRequest, Reply, StopReason, Tool, ToolResult};
use proctor_core::problem::Problems;
use proctor_core::script::Script;
use proctor_core::suite::load_script;
use proctor_models::serve::{ModelServer, ServedReply, ServedRequest};
use proctor_models::{Model, ModelError, Settings};
use serde_json::{Value, json};

use super::sdk::{folder, run};
use super::{ALL, Provider, QUICK, SLOW, hello};

pub const SCRIPT: &str = "
kind: Script
rules:
  - when: {results: 0, prompt: 'add (\\d+) and (\\d+)'}
    reply:
      thinking: Both at once.
      text: 'I call two tools. é😀'
      calls:
        - {tool: add, arguments: {a: '{match.1}', list: [1, {deep: true}]}}
        - {tool: get-sum, arguments: {}}
      usage: {input: 1234, output: 56, cached: 34, reasoning: 6}
  - when: {results: 2}
    reply: {text: \"They gave {results.1} and {result}, on line one\\nand two.\", usage: {input: 2000, output: 20}}
";

fn script(text: &str) -> Script {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("model.yaml");
    std::fs::write(&path, text).unwrap();
    let mut problems = Problems::default();
    load_script(&path, &mut problems).unwrap_or_else(|| {
        panic!(
            "{:?}",
            problems.iter().map(ToString::to_string).collect::<Vec<_>>()
        )
    })
}

/// `proctor model serve`, as a user runs it.
pub struct RunningModelServer {
    child: Child,
    pub address: String,
    _folder: tempfile::TempDir,
}

impl RunningModelServer {
    pub fn start(script: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("model.yaml"), script).unwrap();
        let mut child = Command::new(proctor_e2e::proctor())
            .args(["model", "serve", "model.yaml", "--verbose", "-o", "json"])
            .current_dir(folder.path())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut out = BufReader::new(child.stdout.take().unwrap());
        let mut said = String::new();
        while !said.ends_with("\n}\n") {
            assert!(out.read_line(&mut said).unwrap() > 0, "{said}");
        }
        let said: Value = serde_json::from_str(&said).unwrap();
        let address = said["address"].as_str().unwrap().to_owned();
        assert_eq!(
            said["environment"]["OPENAI_BASE_URL"],
            format!("{address}/v1")
        );
        Self {
            child,
            address,
            _folder: folder,
        }
    }

    /// Ends it with Ctrl-C; gives what it said on stderr.
    pub fn end(mut self) -> String {
        let id = rustix::process::Pid::from_child(&self.child);
        rustix::process::kill_process(id, rustix::process::Signal::INT).unwrap();
        let stderr = self.child.stderr.take().unwrap();
        let said = std::io::read_to_string(stderr).unwrap();
        assert_eq!(self.child.wait().unwrap().code(), Some(0), "{said}");
        said
    }
}

impl Drop for RunningModelServer {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Runs the same conversation through every package, and prints what each made of it.
pub const CLIENTS: &str = r"
import OpenAI from 'openai';
import Anthropic from '@anthropic-ai/sdk';
import { GoogleGenAI } from '@google/genai';
const url = process.env.MODEL;
const apiKey = process.env.KEY ?? 'k';
const openai = new OpenAI({ apiKey, baseURL: url + '/v1', maxRetries: 0 });
const anthropic = new Anthropic({ apiKey, baseURL: url, maxRetries: 0 });
const google = new GoogleGenAI({ apiKey, httpOptions: { baseUrl: url } });
const schema = { type: 'object', properties: {} };
const names = ['mcp__calc__add', 'mcp__calc__get-sum'];
const result = (name, args) => name.split('__')[2] + ' of ' + JSON.stringify(args);
const prompt = 'please add 1 and 2';

async function chat(stream) {
  const tools = names.map((name) => ({ type: 'function', function: { name, parameters: schema } }));
  const messages = [{ role: 'user', content: prompt }];
  return loop(async () => {
    const params = { model: 'm', messages, tools };
    const reply = stream
      ? await openai.chat.completions.stream({ ...params, stream_options: { include_usage: true } }).finalChatCompletion()
      : await openai.chat.completions.create(params);
    const { message, finish_reason } = reply.choices[0];
    messages.push(message);
    const calls = (message.tool_calls ?? []).map((call) => [call.function.name, JSON.parse(call.function.arguments), call.id]);
    for (const [name, args, id] of calls) messages.push({ role: 'tool', tool_call_id: id, content: result(name, args) });
    const used = reply.usage;
    return {
      thinking: message.reasoning_content ?? '', text: message.content, calls,
      stop: { stop: 'done', tool_calls: 'calls' }[finish_reason],
      usage: [used.prompt_tokens, used.completion_tokens, used.prompt_tokens_details.cached_tokens, used.completion_tokens_details.reasoning_tokens],
    };
  });
}

async function responses(stream) {
  const tools = names.map((name) => ({ type: 'function', name, parameters: schema, strict: false }));
  const input = [{ role: 'user', content: prompt }];
  return loop(async () => {
    const params = { model: 'm', input, tools, store: false };
    const reply = stream
      ? await openai.responses.stream(params).finalResponse()
      : await openai.responses.create(params);
    input.push(...reply.output);
    const of = (type) => reply.output.filter((item) => item.type === type);
    const calls = of('function_call').map((call) => [call.name, JSON.parse(call.arguments), call.call_id]);
    for (const [name, args, call_id] of calls) input.push({ type: 'function_call_output', call_id, output: result(name, args) });
    const used = reply.usage;
    return {
      thinking: of('reasoning').map((item) => item.summary[0].text).join(''), text: reply.output_text, calls,
      stop: reply.status !== 'completed' ? reply.status : calls.length ? 'calls' : 'done',
      usage: [used.input_tokens, used.output_tokens, used.input_tokens_details.cached_tokens, used.output_tokens_details.reasoning_tokens],
    };
  });
}

async function messages(stream) {
  const tools = names.map((name) => ({ name, input_schema: schema }));
  const messages = [{ role: 'user', content: prompt }];
  return loop(async () => {
    const params = { model: 'm', max_tokens: 999, messages, tools };
    const reply = stream ? await anthropic.messages.stream(params).finalMessage() : await anthropic.messages.create(params);
    messages.push({ role: 'assistant', content: reply.content });
    const of = (type) => reply.content.filter((block) => block.type === type);
    const calls = of('tool_use').map((call) => [call.name, call.input, call.id]);
    const content = calls.map(([name, args, id]) => ({ type: 'tool_result', tool_use_id: id, content: result(name, args) }));
    if (content.length) messages.push({ role: 'user', content });
    const used = reply.usage;
    return {
      thinking: of('thinking').map((block) => block.thinking).join(''), text: of('text').map((block) => block.text).join(''), calls,
      stop: { end_turn: 'done', tool_use: 'calls' }[reply.stop_reason],
      usage: [used.input_tokens + used.cache_read_input_tokens, used.output_tokens, used.cache_read_input_tokens, used.output_tokens_details?.thinking_tokens ?? 0],
    };
  });
}

async function gemini(stream) {
  const tools = [{ functionDeclarations: names.map((name) => ({ name, parametersJsonSchema: schema })) }];
  const contents = [{ role: 'user', parts: [{ text: prompt }] }];
  return loop(async () => {
    const params = { model: 'gemini-x', contents, config: { tools } };
    const parts = [];
    let last;
    if (stream) {
      for await (const chunk of await google.models.generateContentStream(params)) {
        parts.push(...(chunk.candidates[0].content.parts ?? []));
        last = chunk;
      }
    } else {
      last = await google.models.generateContent(params);
      parts.push(...last.candidates[0].content.parts);
    }
    contents.push({ role: 'model', parts });
    const calls = parts.filter((part) => part.functionCall).map(({ functionCall: call }) => [call.name, call.args, call.id]);
    const given = calls.map(([name, args, id]) => ({ functionResponse: { id, name, response: { output: result(name, args) } } }));
    if (given.length) contents.push({ role: 'user', parts: given });
    const texts = (thought) => parts.filter((part) => part.text && !!part.thought === thought).map((part) => part.text).join('');
    const used = last.usageMetadata;
    const thoughts = used.thoughtsTokenCount ?? 0;
    return {
      thinking: texts(true), text: texts(false), calls,
      stop: last.candidates[0].finishReason !== 'STOP' ? last.candidates[0].finishReason : calls.length ? 'calls' : 'done',
      usage: [used.promptTokenCount, used.candidatesTokenCount + thoughts, used.cachedContentTokenCount ?? 0, thoughts],
    };
  });
}

async function loop(ask) {
  const turns = [];
  do turns.push(await ask()); while (turns.at(-1).calls.length && turns.length < 5);
  return turns;
}

for (const converse of [chat, responses, messages, gemini]) {
  for (const stream of [false, true]) {
    console.log(converse.name + ' ' + stream + '\t' + JSON.stringify(await converse(stream)));
  }
}
";

#[test]
fn one_script_is_the_same_transcript_in_every_vendors_package() {
    let serving = RunningModelServer::start(SCRIPT);
    let folder = folder(&[("clients.mjs", CLIENTS.to_owned())]);
    let env = [("MODEL", serving.address.as_str())];
    let (passed, said) = run(folder.path(), Path::new("node"), &["clients.mjs"], &env);
    let told = serving.end();
    assert!(passed, "{said}\n{told}");
    let lines: Vec<(&str, &str)> = said.lines().filter_map(|l| l.split_once('\t')).collect();
    assert_eq!(lines.len(), 8, "{said}");
    let first: Value = serde_json::from_str(lines[0].1).unwrap();
    for (name, transcript) in &lines {
        assert_eq!(*transcript, lines[0].1, "{name}");
    }
    assert_eq!(first[0]["text"], "I call two tools. é😀");
    assert_eq!(first[0]["thinking"], "Both at once.");
    assert_eq!(first[0]["usage"], json!([1234, 56, 34, 6]));
    let add = json!(["mcp__calc__add", {"a": "1", "list": [1, {"deep": true}]}, "call_1_1"]);
    assert_eq!(first[0]["calls"][0].to_string(), add.to_string());
    let last = r#"They gave add of {"a":"1","list":[1,{"deep":true}]} and get-sum of {}, on line one
and two."#;
    assert_eq!(first[1]["text"], last);
    assert_eq!(first[1]["stop"], "done");
    let totals = "16 requests, 0 of them side requests, 0 unanswered; 25872 tokens in, 608 out\n";
    assert!(told.ends_with(totals), "{told}");
    assert!(
        told.contains("messages /v1/messages: 2 results: replies They gave add of"),
        "{told}"
    );
}

#[test]
fn a_script_that_is_wrong_is_not_served() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(
        folder.path().join("model.yaml"),
        "kind: Script\nrules: []\n",
    )
    .unwrap();
    let output = Command::new(proctor_e2e::proctor())
        .args(["model", "serve", "model.yaml"])
        .current_dir(folder.path())
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(2));
    assert!(output.stdout.is_empty());
    assert!(String::from_utf8_lossy(&output.stderr).contains("model.yaml:2"));
}

#[test]
fn a_port_that_is_taken_is_said() {
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = taken.local_addr().unwrap().port().to_string();
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("model.yaml"), SCRIPT).unwrap();
    let output = Command::new(proctor_e2e::proctor())
        .args(["model", "serve", "model.yaml", "--port", &port])
        .current_dir(folder.path())
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(2));
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    let expected = format!("error: can't listen on port {port}: ");
    assert!(
        said.starts_with(&expected) && said.lines().count() == 1,
        "{said}"
    );
}

/// What was told of questions.
type LoggedQuestions = Arc<Mutex<Vec<ServedRequest>>>;

async fn serve(text: &str) -> (ModelServer, LoggedQuestions) {
    let told = LoggedQuestions::default();
    let watched = told.clone();
    let watch = move |served: &ServedRequest| watched.lock().unwrap().push(served.clone());
    let server = ModelServer::watched(script(text), 0, watch).await.unwrap();
    (server, told)
}

fn model(provider: Provider, server: &ModelServer, quick: bool) -> Model {
    let url = format!("http://{}/v1", server.address());
    let env = std::collections::BTreeMap::new();
    let settings = Settings {
        base_url: Some(&url),
        timeouts: if quick { QUICK } else { SLOW },
        ..Settings::of(&env)
    };
    let reference = proctor_core::suite::agent::ModelRef {
        provider: proctor_core::provider::Provider::parse(provider.word()),
        id: "m".to_owned(),
        script: None,
    };
    Model::open(&reference, &settings).unwrap()
}

fn with_tools(prompt: &str, names: &[&str]) -> ModelRequest {
    let tool = |name: &&str| Tool {
        name: (*name).to_owned(),
        description: None,
        schema: json!({"type": "object"}),
    };
    ModelRequest {
        messages: vec![ModelMessage::User(prompt.to_owned())],
        tools: names.iter().map(tool).collect(),
        ..ModelRequest::default()
    }
}

/// A whole conversation; every call gives its own name.
async fn converse(model: &Model, mut request: ModelRequest) -> Vec<Reply> {
    let mut replies = Vec::new();
    while replies.len() < 5 {
        let mut reply = model.ask(&request).await.unwrap();
        reply.raw = None;
        request
            .messages
            .push(ModelMessage::Assistant(reply.turn.clone()));
        for thought in &mut reply.turn.thinking {
            thought.raw = None;
        }
        reply
            .turn
            .thinking
            .retain(|thought| !thought.text.is_empty());
        let results: Vec<_> = reply.turn.calls.iter().map(given).collect();
        let is_last = results.is_empty();
        request.messages.push(ModelMessage::Results(results));
        replies.push(reply);
        if is_last {
            break;
        }
    }
    replies
}

fn given(call: &proctor_core::model::ToolCall) -> ToolResult {
    ToolResult {
        id: call.id.clone(),
        name: call.name.clone(),
        text: call.name.clone(),
        is_error: false,
        media: Vec::new(),
    }
}

#[tokio::test]
async fn our_own_adapters_get_what_the_script_says() {
    let (server, _) = serve(SCRIPT).await;
    let request = with_tools("add 1 and 2", &["calc__add", "calc__get-sum"]);
    let scripted = Model::Scripted(proctor_models::ScriptedModel::new(
        "m",
        Arc::new(script(SCRIPT)),
    ));
    let mut expected = converse(&scripted, request.clone()).await;
    for reply in &mut expected {
        // What is not known here is said to be none there.
        reply.usage.cached.get_or_insert(0);
        reply.usage.reasoning.get_or_insert(0);
    }
    assert_eq!(expected.len(), 2);
    for provider in ALL {
        let mut replies = converse(&model(provider, &server, false), request.clone()).await;
        for reply in &mut replies {
            reply.usage.cache_written = None;
            reply.usage.cached.get_or_insert(0);
            reply.usage.reasoning.get_or_insert(0);
        }
        assert_eq!(replies, expected, "{provider:?}");
    }
}

#[tokio::test]
async fn sessions_at_once_do_not_disturb_each_other() {
    let (server, _) = serve(SCRIPT).await;
    let mut running = tokio::task::JoinSet::new();
    for number in 0..24 {
        let model = model(ALL[number % 4], &server, false);
        running.spawn(async move {
            let request = with_tools(&format!("add {number} and 2"), &["add", "get_sum"]);
            let replies = converse(&model, request).await;
            let first = serde_json::to_value(&replies[0].turn.calls[0].arguments).unwrap();
            (number, first["object"]["a"].clone(), replies.len())
        });
    }
    while let Some(done) = running.join_next().await {
        let (number, argument, turns) = done.unwrap();
        assert_eq!((argument, turns), (json!(number.to_string()), 2));
    }
}

#[tokio::test]
async fn every_fault_is_what_it_stands_for_in_every_format() {
    for (fault, expected) in [
        (
            "{kind: rateLimit, detail: slow, retryAfter: 2s}",
            "RateLimited { retry_after: Some(2s), detail: \"slow\" }",
        ),
        (
            "{kind: unavailable, detail: gone}",
            "Unavailable { retry_after: None, detail: \"gone\" }",
        ),
        ("{kind: key, detail: bad}", "Key { detail: \"bad\" }"),
        (
            "{kind: rejected, detail: odd}",
            "Rejected { detail: \"odd\" }",
        ),
        ("{kind: context, detail: long}", "ContextOverflow"),
        ("{kind: malformed, detail: x}", "Malformed"),
        ("{kind: timeout}", "TimedOut"),
    ] {
        let (server, told) = serve(&format!(
            "kind: Script\nrules:\n- reply: {{error: {fault}}}\n"
        ))
        .await;
        for provider in ALL {
            let model = model(provider, &server, fault.contains("timeout"));
            let error = model.ask(&with_tools("hi", &["x"])).await.unwrap_err();
            let shown = format!("{error:?}");
            assert!(shown.starts_with(expected), "{provider:?} {fault}: {shown}");
        }
        let told = told.lock().unwrap();
        assert!(
            told.iter()
                .all(|one| matches!(one.said, ServedReply::Fault(_))),
            "{told:?}"
        );
        assert_eq!(told.len(), ALL.len(), "{fault}");
    }
}

#[tokio::test]
async fn a_refusal_and_a_cut_reply_are_what_they_are() {
    let rules = "kind: Script\nrules:\n- when: {prompt: bad}\n  reply: {refuse: I can't.}\n- reply: {text: The answer is, stop: length}\n";
    let (server, _) = serve(rules).await;
    for provider in ALL {
        let model = model(provider, &server, false);
        let refused = model.ask(&with_tools("bad", &["x"])).await.unwrap();
        assert_eq!(
            (refused.stop, &*refused.turn.text),
            (StopReason::Refusal, "I can't."),
            "{provider:?}"
        );
        let cut = model.ask(&with_tools("go", &["x"])).await.unwrap();
        assert_eq!(
            (cut.stop, &*cut.turn.text),
            (StopReason::Length, "The answer is"),
            "{provider:?}"
        );
    }
}

#[tokio::test]
async fn what_the_script_does_not_know_is_a_clear_error() {
    let (server, told) =
        serve("kind: Script\nrules:\n- when: {prompt: weather}\n  reply: {text: sunny}\n").await;
    for provider in ALL {
        let model = model(provider, &server, false);
        let error = model
            .ask(&with_tools("hi", &["ev__echo"]))
            .await
            .unwrap_err();
        assert!(matches!(error, ModelError::Rejected { .. }), "{error:?}");
        let error = error.to_string();
        let expected = "no rule fits: turn 1, 0 tool results so far, tools on offer: `ev__echo`";
        assert!(
            error.contains("the script has no answer") && error.ends_with(expected),
            "{error}"
        );
    }
    assert!(
        told.lock()
            .unwrap()
            .iter()
            .all(|one| matches!(one.said, ServedReply::Nothing(_)))
    );
}

#[tokio::test]
async fn a_tool_that_may_be_several_is_a_clear_error() {
    let (server, _) = serve("kind: Script\nrules:\n- reply: {calls: [{tool: read}]}\n").await;
    let model = model(Provider::Anthropic, &server, false);
    let offered = with_tools("hi", &["mcp__a__read", "mcp__b__read"]);
    let error = model.ask(&offered).await.unwrap_err().to_string();
    let expected = "the rule at line 3 calls `read`, which may be any of `mcp__a__read`, `mcp__b__read`; write the server's name before it, as in `server__read`";
    assert!(error.ends_with(expected), "{error}");
}

#[tokio::test]
async fn side_calls_get_a_harmless_answer_and_leave_the_rest_alone() {
    let rules = "kind: Script\nrules:\n- when: {turn: 1}\n  reply: {calls: [{tool: echo}]}\n- when: {turn: 2}\n  reply: {text: done}\n";
    let (server, told) = serve(rules).await;
    for provider in ALL {
        let model = model(provider, &server, false);
        // A title: no tools, and the prompt in it.
        let title = model
            .ask(&with_tools("title for: echo hi", &[]))
            .await
            .unwrap();
        assert_eq!((&*title.turn.text, title.turn.calls.len()), ("scripted", 0));
        let mut request = with_tools("echo hi", &["ev_echo"]);
        let replies = converse(&model, request.clone()).await;
        assert_eq!(replies.len(), 2);
        assert_eq!(replies[0].turn.calls[0].name, "ev_echo");
        // A guess of what is asked next, after the answer.
        request
            .messages
            .push(ModelMessage::Assistant(replies[0].turn.clone()));
        request.messages.push(ModelMessage::Results(vec![given(
            &replies[0].turn.calls[0],
        )]));
        request
            .messages
            .push(ModelMessage::Assistant(replies[1].turn.clone()));
        request.messages.push(ModelMessage::User(
            "[SUGGESTION MODE: what next?]".to_owned(),
        ));
        let guess = model.ask(&request).await.unwrap();
        assert_eq!((&*guess.turn.text, guess.turn.calls.len()), ("scripted", 0));
    }
    let told = told.lock().unwrap();
    let sides: Vec<bool> = told.iter().take(4).map(|one| one.is_side_call).collect();
    assert_eq!(sides, [true, false, false, true]);
}

/// One exchange over HTTP; gives all that came back.
fn exchange(address: &str, head: &str, body: &str) -> String {
    let mut stream = std::net::TcpStream::connect(address).unwrap();
    let length = body.len();
    let head = format!(
        "{head} HTTP/1.1\r\nHost: localhost\r\nconnection: close\r\ncontent-length: {length}"
    );
    stream
        .write_all(format!("{head}\r\n\r\n{body}").as_bytes())
        .unwrap();
    let mut said = String::new();
    stream.read_to_string(&mut said).unwrap();
    said
}

#[tokio::test]
async fn what_agents_ask_besides_is_answered() {
    let (server, told) = serve(SCRIPT).await;
    let address = server.address().to_string();
    let asked = tokio::task::spawn_blocking(move || {
        let count = r#"{"messages": [{"role": "user", "content": "four letters here"}]}"#;
        let gemini = r#"{"generateContentRequest": {"contents": [{"parts": [{"text": "hi"}]}]}}"#;
        [
            ("GET /v1/models", "", "\"scripted-1\""),
            ("GET /v1beta/models", "", "\"models/scripted-1\""),
            ("GET /v1/models/claude-x", "", "\"claude-x\""),
            (
                "POST /v1/messages/count_tokens",
                count,
                "{\"input_tokens\":5}",
            ),
            (
                "POST /v1beta/models/m:countTokens",
                gemini,
                "{\"totalTokens\":1}",
            ),
            ("HEAD /", "", "200 OK"),
            (
                "POST /v1/embeddings",
                "{}",
                "`POST /v1/embeddings` is not served",
            ),
            (
                "POST /v1/messages",
                "{",
                "\"type\":\"invalid_request_error\"",
            ),
            (
                "POST /v1beta/models/m:generateContent",
                "{}",
                "\"status\":\"INVALID_ARGUMENT\"",
            ),
            (
                "POST /v1/responses",
                r#"{"input": "x", "previous_response_id": "r"}"#,
                "send all of it",
            ),
        ]
        .map(|(head, body, expected)| (head, exchange(&address, head, body), expected))
    });
    for (head, said, expected) in asked.await.unwrap() {
        assert!(said.contains(expected), "{head}: {said}");
    }
    let refused = told.lock().unwrap();
    let refused = refused
        .iter()
        .filter(|one| matches!(one.said, ServedReply::Nothing(_)));
    assert_eq!(refused.count(), 4);
}

#[tokio::test]
async fn a_stream_of_gemini_can_be_one_list() {
    let (server, _) = serve("kind: Script\nrules:\n- reply: {text: hello there}\n").await;
    let address = server.address().to_string();
    let body = json!({"contents": [{"parts": [{"text": "hi"}]}]}).to_string();
    let asked = tokio::task::spawn_blocking(move || {
        exchange(
            &address,
            "POST /v1beta/models/m:streamGenerateContent",
            &body,
        )
    });
    let said = asked.await.unwrap();
    let (_, list) = said.split_once("\r\n\r\n").unwrap();
    let list: Vec<Value> = serde_json::from_str(list).unwrap();
    let text: String = list
        .iter()
        .filter_map(|one| one.pointer("/candidates/0/content/parts/0/text")?.as_str())
        .collect();
    assert_eq!(text, "hello there");
}

#[tokio::test]
async fn a_plain_question_is_answered_without_tools() {
    let (server, _) = serve("kind: Script\nrules:\n- reply: {text: 'you said {user}'}\n").await;
    for provider in ALL {
        let reply = model(provider, &server, false).ask(&hello()).await.unwrap();
        assert_eq!(reply.turn.text, "you said hello", "{provider:?}");
    }
}
