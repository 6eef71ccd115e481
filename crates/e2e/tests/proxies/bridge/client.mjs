// A client of the official SDK for TypeScript: everything that a server may ask of it, through one URL.
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StreamableHTTPClientTransport } from "@modelcontextprotocol/sdk/client/streamableHttp.js";
import {
  CreateMessageRequestSchema,
  ElicitRequestSchema,
  ListRootsRequestSchema,
} from "@modelcontextprotocol/sdk/types.js";

const [url, headers, what] = process.argv.slice(2);
const capabilities = { sampling: {}, elicitation: {}, roots: { listChanged: true } };
const client = new Client({ name: "official", version: "0" }, { capabilities });
client.setRequestHandler(CreateMessageRequestSchema, () => ({
  model: "m", role: "assistant", content: { type: "text", text: "sampled" },
}));
client.setRequestHandler(ElicitRequestSchema, () => ({ action: "accept", content: { name: "elicited" } }));
client.setRequestHandler(ListRootsRequestSchema, () => ({ roots: [{ uri: "file:///rooted" }] }));
const requestInit = { headers: JSON.parse(headers) };
const transport = new StreamableHTTPClientTransport(new URL(url), { requestInit });
await client.connect(transport);
const said = { tools: (await client.listTools()).tools.length };
const call = async (name, args = {}, options = {}) =>
  JSON.stringify((await client.callTool({ name, arguments: args }, undefined, options)).content);

if (what === "everything") {
  said.echo = await call("echo", { message: "größe" });
  said.sampling = await call("trigger-sampling-request", { prompt: "hi" });
  said.elicitation = await call("trigger-elicitation-request");
  said.roots = await call("get-roots-list");
  said.progress = [];
  const onprogress = ({ progress }) => said.progress.push(progress);
  await call("trigger-long-running-operation", { duration: 0.4, steps: 4 }, { onprogress });
  const abort = new AbortController();
  const long = call("trigger-long-running-operation", { duration: 60, steps: 2 }, { signal: abort.signal });
  setTimeout(() => abort.abort("enough"), 300);
  said.cancelled = await long.catch(String);
  // Nobody waits for the cancellation to leave: what comes after it does.
  said.after = await call("echo", { message: "still there" });
}
if (what === "dies") {
  said.died = await call("echo", { text: "x" }).catch(String);
  said.later = await call("echo", { text: "x" }).catch(String);
}
if (what !== "dies") await transport.terminateSession();
await client.close();
console.log(JSON.stringify(said));
