//! The vendors' own packages, as `scripts/install-servers` installs them: their published types accept
//! what is sent, and their clients accept what the fixture says.

use std::path::{Path, PathBuf};
use std::process::Command;

use proctor_e2e::model::FixtureModel;
use proctor_e2e::model::says::{anthropic_blocks, anthropic_error, openai_calls, openai_error};
use proctor_record::model::ModelRequest;
use serde_json::{Value, json};

use super::requests::{eventful, sent, tool_lists};
use super::{Provider, hello};

/// Where the packages are, found as `scripts/install-servers` finds its cache.
pub fn packages() -> PathBuf {
    let variable = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty());
    let cache = variable("PROCTOR_TEST_CACHE").map_or_else(
        || {
            let home = || Path::new(&variable("HOME").unwrap()).join(".cache");
            variable("XDG_CACHE_HOME")
                .map_or_else(home, PathBuf::from)
                .join("proctor-tests")
        },
        PathBuf::from,
    );
    let packages = cache.join("sdk");
    assert!(
        packages.join("node_modules/@google/genai").is_dir(),
        "`{}` is missing; run `scripts/install-servers`",
        packages.display()
    );
    packages
}

/// A folder from which the packages can be imported.
pub fn folder(files: &[(&str, String)]) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let modules = packages().join("node_modules");
    std::os::unix::fs::symlink(modules, folder.path().join("node_modules")).unwrap();
    for (name, text) in files {
        std::fs::write(folder.path().join(name), text).unwrap();
    }
    folder
}

pub fn run(folder: &Path, program: &Path, args: &[&str], env: &[(&str, &str)]) -> (bool, String) {
    let mut command = Command::new(program);
    let command = command
        .args(args)
        .envs(env.iter().copied())
        .current_dir(folder);
    let output = command.output().unwrap();
    let said = [output.stdout, output.stderr].concat();
    (
        output.status.success(),
        String::from_utf8_lossy(&said).into_owned(),
    )
}

fn type_check(module: &str) -> (bool, String) {
    let folder = folder(&[("bodies.mts", module.to_owned())]);
    let compiler = packages().join("node_modules/.bin/tsc");
    let args = [
        "--noEmit",
        "--strict",
        "--skipLibCheck",
        "--module",
        "nodenext",
        "--moduleResolution",
        "nodenext",
        "--target",
        "es2022",
        "--types",
        "",
        "bodies.mts",
    ];
    run(folder.path(), &compiler, &args, &[])
}

const IMPORTS: &str = "import type { ChatCompletionCreateParamsNonStreaming } from 'openai/resources/chat/completions';
import type { ResponseCreateParamsNonStreaming } from 'openai/resources/responses/responses';
import type { MessageCreateParamsNonStreaming } from '@anthropic-ai/sdk/resources/messages';
import type { Content, FunctionCallingConfig, FunctionDeclaration } from '@google/genai';
// The package has no type for what goes over the wire, but for all of its parts.
type GenerateContentRequest = {
  contents: Content[]; systemInstruction?: Content;
  tools?: { functionDeclarations: FunctionDeclaration[] }[];
  toolConfig?: { functionCallingConfig: Omit<FunctionCallingConfig, 'mode'> & { mode: 'ANY' | 'AUTO' } };
  generationConfig?: { maxOutputTokens?: number; temperature?: number };
};
";

/// A line that compiles only if the body is of the provider's type.
fn typed(provider: Provider, number: usize, body: &Value) -> String {
    let kind = match provider {
        Provider::OpenAi => "ChatCompletionCreateParamsNonStreaming",
        Provider::Responses => "ResponseCreateParamsNonStreaming",
        Provider::Anthropic => "MessageCreateParamsNonStreaming",
        Provider::Gemini => "GenerateContentRequest",
    };
    format!("export const x{number}: {kind} = {body};\n")
}

#[tokio::test]
async fn the_vendors_types_accept_what_is_sent() {
    let mut requests = vec![hello(), eventful(), super::shown::request()];
    requests.extend(tool_lists().into_iter().map(|(_, tools)| ModelRequest {
        tools: tools.into(),
        ..hello()
    }));
    let mut module = IMPORTS.to_owned();
    for (which, provider) in super::ALL.into_iter().enumerate() {
        for (at, request) in requests.iter().enumerate() {
            let number = at * super::ALL.len() + which;
            module.push_str(&typed(provider, number, &sent(provider, request).await));
        }
    }
    let (passed, said) = type_check(&module);
    assert!(passed, "{said}");
}

#[test]
fn the_vendors_types_refuse_what_is_wrong() {
    let message = json!([{"role": "user", "content": "hi"}]);
    for (provider, body) in [
        (
            Provider::OpenAi,
            json!({"model": "m", "messages": message, "tool_choice": {"type": "tool", "name": "x"}}),
        ),
        (
            Provider::OpenAi,
            json!({"model": "m", "messages": message, "bogus": 1}),
        ),
        (
            Provider::Anthropic,
            json!({"model": "m", "messages": message}),
        ),
        (
            Provider::Responses,
            json!({"model": "m", "input": [{"type": "function_call_output", "call_id": "c"}]}),
        ),
        (
            Provider::Gemini,
            json!({"contents": [{"role": "user", "parts": [{"functionResponse": {"title": "x"}}]}]}),
        ),
        (
            Provider::Anthropic,
            json!({"model": "m", "messages": message, "max_tokens": 1, "tools": [{"name": "x", "input_schema": {}}]}),
        ),
    ] {
        let (passed, said) = type_check(&format!("{IMPORTS}{}", typed(provider, 1, &body)));
        assert!(!passed && said.contains("error TS"), "{body}: {said}");
    }
}

const CLIENTS: &str = "
import OpenAI from 'openai';
import Anthropic from '@anthropic-ai/sdk';
const url = process.env.FIXTURE;
const openai = new OpenAI({ apiKey: 'k', baseURL: url + '/v1', maxRetries: 0 });
const anthropic = new Anthropic({ apiKey: 'k', baseURL: url, maxRetries: 0 });
const messages = [{ role: 'user', content: 'hi' }];
const chat = () => openai.chat.completions.create({ model: 'm', messages });
const message = () => anthropic.messages.create({ model: 'm', max_tokens: 9, messages });
const name = (error) => `${error.constructor.name} ${error.status}`;
const said = [];
const completion = await chat();
said.push(completion.choices[0].message.content, completion.usage.total_tokens);
const calls = (await chat()).choices[0].message.tool_calls;
said.push(calls.map((call) => call.function.name + call.function.arguments));
const reply = await message();
said.push(reply.content[0].text, reply.usage.output_tokens);
const blocks = (await message()).content;
said.push(blocks.map((block) => block.type));
said.push(await chat().catch(name), await message().catch(name));
console.log(JSON.stringify(said));
";

#[test]
fn the_vendors_clients_accept_what_the_fixture_says() {
    let blocks = json!([
        {"type": "thinking", "thinking": "hm", "signature": "c2ln"},
        {"type": "tool_use", "id": "t", "name": "add", "input": {}},
    ]);
    let fixture = FixtureModel::start([
        Provider::OpenAi.says("hi"),
        openai_calls(&[("a", "add", "{}"), ("b", "sub", "{}")]),
        Provider::Anthropic.says("hi"),
        anthropic_blocks(&blocks, "tool_use"),
        openai_error(429, "rate_limit_exceeded", "slow down"),
        anthropic_error(529, "overloaded_error", "Overloaded"),
    ]);
    let folder = folder(&[("clients.mjs", CLIENTS.to_owned())]);
    let env = [("FIXTURE", fixture.url())];
    let (passed, said) = run(folder.path(), Path::new("node"), &["clients.mjs"], &env);
    assert!(passed, "{said}");
    let last = said.lines().last().unwrap();
    assert_eq!(
        last,
        r#"["hi",15,["add{}","sub{}"],"hi",5,["thinking","tool_use"],"RateLimitError 429","OverloadedError 529"]"#
    );
}
