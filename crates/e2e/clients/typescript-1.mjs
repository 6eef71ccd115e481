// The TypeScript SDK 1.x, unchanged.
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { SSEClientTransport } from "@modelcontextprotocol/sdk/client/sse.js";
import { StdioClientTransport } from "@modelcontextprotocol/sdk/client/stdio.js";
import { StreamableHTTPClientTransport } from "@modelcontextprotocol/sdk/client/streamableHttp.js";
import * as types from "@modelcontextprotocol/sdk/types.js";

import { answer, run } from "./session.mjs";

function transport({ command, url, headers, sse }) {
  if (command) return new StdioClientTransport({ command: command[0], args: command.slice(1), env: process.env });
  const Http = sse ? SSEClientTransport : StreamableHTTPClientTransport;
  return new Http(new URL(url), { requestInit: { headers } });
}

await run(async (task) => {
  const client = new Client({ name: "typescript-1", version: "1" }, { capabilities: { sampling: {}, elicitation: {} } });
  client.setRequestHandler(types.CreateMessageRequestSchema, ({ method, params }) => answer(method, params));
  client.setRequestHandler(types.ElicitRequestSchema, ({ method, params }) => answer(method, params));
  const way = transport(task);
  await client.connect(way);
  return {
    server: () => ({
      info: client.getServerVersion(),
      capabilities: client.getServerCapabilities(),
      instructions: client.getInstructions(),
    }),
    request: (method, params) => client.request({ method, params }, types.ResultSchema),
    call: (name, args, options) => client.callTool({ name, arguments: args }, undefined, options),
    close: async () => {
      await way.terminateSession?.();
      await client.close();
    },
  };
});
