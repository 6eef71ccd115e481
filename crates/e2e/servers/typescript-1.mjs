// A small server over streamable HTTP, on the TypeScript SDK 1.x.
//
//     node typescript-1.mjs MODE PORT
//
// MODE is `stateful`, `stateless`, or `resumable`: stateful, with an event store, so that `wait` can close its stream
// before it answers.

import http from "node:http";

import { McpServer } from "@modelcontextprotocol/sdk/server/mcp.js";
import { StreamableHTTPServerTransport } from "@modelcontextprotocol/sdk/server/streamableHttp.js";
import { z } from "zod";

import { serve } from "./small.mjs";

const [mode, port] = process.argv.slice(2);

function server() {
  const server = new McpServer({ name: "small", version: "1" });
  const text = (text) => ({ content: [{ type: "text", text }] });
  server.registerTool("add", { inputSchema: { a: z.number(), b: z.number() } }, ({ a, b }) =>
    text(`${a} and ${b} is ${a + b}`),
  );
  server.registerTool("wait", {}, async (extra) => {
    extra.closeSSEStream?.();
    await new Promise((resolve) => setTimeout(resolve, 300));
    return text("worth the wait");
  });
  return server;
}

const handle = serve(mode, server, StreamableHTTPServerTransport);
http.createServer(handle).listen(Number(port), "127.0.0.1");
