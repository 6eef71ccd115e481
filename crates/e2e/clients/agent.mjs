// An agent as people write one on the TypeScript SDK 1.x; it does what `agent.py` does.
import { readFileSync, statSync } from "node:fs";
import { createInterface } from "node:readline";

import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StreamableHTTPClientTransport } from "@modelcontextprotocol/sdk/client/streamableHttp.js";

function greeting() {
  if (!process.env.AGENT_GREETING) throw new Error("AGENT_GREETING is not set");
  return process.env.AGENT_GREETING;
}

async function echo(url, text) {
  const client = new Client({ name: "agent.mjs", version: "1" });
  await client.connect(new StreamableHTTPClientTransport(new URL(url)));
  const result = await client.callTool({ name: "echo", arguments: { text } });
  await client.close();
  return result.content[0].text;
}

async function work(prompt, urls, allowed = async () => true) {
  const [word, server] = prompt.split(" ");
  if (word !== "use" && word !== "greet") return "no server was needed";
  const text = word === "greet" ? greeting() : "hello";
  if (!(await allowed())) return "it was not allowed";
  return `echo said ${await echo(urls[server], text)}, token ${process.env.AGENT_TOKEN}`;
}

async function command(files, prompt) {
  const urls = {};
  for (const file of files) {
    if ((statSync(file).mode & 0o777) !== 0o600) throw new Error("others can read the file");
    const { mcpServers } = JSON.parse(readFileSync(file, "utf8"));
    for (const [name, { url }] of Object.entries(mcpServers)) urls[name] = url;
  }
  console.log(await work(prompt, urls));
}

const send = (message) => console.log(JSON.stringify({ jsonrpc: "2.0", ...message }));

async function acp() {
  const lines = createInterface({ input: process.stdin })[Symbol.asyncIterator]();
  const next = async () => JSON.parse((await lines.next()).value ?? "null");
  const allowed = async () => {
    const toolCall = { toolCallId: "1", title: "echo", kind: "other" };
    const options = [{ optionId: "y", name: "Yes", kind: "allow_once" }, { optionId: "n", name: "No", kind: "reject_once" }];
    send({ id: "ask", method: "session/request_permission", params: { sessionId: "s", toolCall, options } });
    return (await next()).result.outcome.optionId === "y";
  };
  let urls = {};
  for (let message = await next(); message; message = await next()) {
    const { id, method, params } = message;
    if (method === "initialize") {
      send({ id, result: { protocolVersion: 1, agentCapabilities: { mcpCapabilities: { http: true } }, agentInfo: { name: "agent.mjs", version: "1.2.3" } } });
    } else if (method === "session/new") {
      urls = Object.fromEntries(params.mcpServers.map(({ name, url }) => [name, url]));
      send({ id, result: { sessionId: "s" } });
    } else {
      const text = await work(params.prompt[0].text, urls, allowed);
      const update = { sessionUpdate: "agent_message_chunk", content: { type: "text", text } };
      send({ method: "session/update", params: { sessionId: "s", update } });
      send({ id, result: { stopReason: "end_turn" } });
    }
  }
}

if (process.argv[2] === "acp") await acp();
else await command(process.argv.slice(2, -1), process.argv.at(-1));
