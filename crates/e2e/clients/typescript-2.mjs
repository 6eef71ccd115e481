// The TypeScript SDK 2.x, unchanged. It asks for the stateless era first if it is told `"mode": "auto"`.
import { Client, SSEClientTransport, StreamableHTTPClientTransport, specTypeSchemas } from "@modelcontextprotocol/client";
import { StdioClientTransport } from "@modelcontextprotocol/client/stdio";

import { answer, run } from "./session.mjs";

function transport({ command, url, headers, sse }) {
  if (command) return new StdioClientTransport({ command: command[0], args: command.slice(1), env: process.env });
  const Http = sse ? SSEClientTransport : StreamableHTTPClientTransport;
  return new Http(new URL(url), { requestInit: { headers } });
}

await run(async (task) => {
  const client = new Client(
    { name: "typescript-2", version: "1" },
    {
      capabilities: { sampling: {}, elicitation: {} },
      versionNegotiation: { mode: task.mode ?? "legacy" },
    },
  );
  for (const method of ["sampling/createMessage", "elicitation/create"]) {
    client.setRequestHandler(method, ({ params }) => answer(method, params));
  }
  const way = transport(task);
  await client.connect(way);
  return {
    server: () => ({
      version: client.getNegotiatedProtocolVersion(),
      info: client.getServerVersion(),
      capabilities: client.getServerCapabilities(),
      instructions: client.getInstructions(),
    }),
    request: (method, params) => client.request({ method, params }, specTypeSchemas.Result),
    call: (name, args, options) => client.callTool({ name, arguments: args }, options),
    close: async () => {
      await way.terminateSession?.();
      await client.close();
    },
  };
});
