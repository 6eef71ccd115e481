// The TypeScript SDK 1.x, unchanged: tells what it sees of a server, which is a URL or a command.
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StdioClientTransport } from "@modelcontextprotocol/sdk/client/stdio.js";
import { StreamableHTTPClientTransport } from "@modelcontextprotocol/sdk/client/streamableHttp.js";
import { ResultSchema } from "@modelcontextprotocol/sdk/types.js";

const [first, ...rest] = process.argv.slice(2);
const transport = first.startsWith("http")
  ? new StreamableHTTPClientTransport(new URL(first))
  : new StdioClientTransport({ command: first, args: rest, env: process.env, stderr: "ignore" });
const client = new Client({ name: "test", version: "1" });
await client.connect(transport);
const { evals } = await client.request({ method: "evals/list", params: {} }, ResultSchema);
const { tools } = await client.listTools();
console.log(
  JSON.stringify({
    capabilities: client.getServerCapabilities(),
    evals: evals.map(({ id }) => id),
    tools: tools.map(({ name }) => name),
  }),
);
await client.close();
