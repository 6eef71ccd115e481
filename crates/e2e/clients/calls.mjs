// A session of the TypeScript SDK 1.x: connects, lists the tools, and makes the calls that it is told.
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StdioClientTransport } from "@modelcontextprotocol/sdk/client/stdio.js";

const { command, calls } = JSON.parse(process.argv[2]);
const client = new Client({ name: "typescript-1", version: "1" });
await client.connect(new StdioClientTransport({ command: command[0], args: command.slice(1), env: process.env }));
await client.listTools();
for (const { tool, resource, prompt, arguments: args } of calls) {
  if (resource) await client.readResource({ uri: resource });
  else if (prompt) await client.getPrompt({ name: prompt, arguments: args });
  else await client.callTool({ name: tool, arguments: args });
}
await client.close();
