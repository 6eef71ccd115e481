// The same as typescript-1.mjs, on the TypeScript SDK 2.x. `stateless` speaks both eras.

import http from "node:http";

import { NodeStreamableHTTPServerTransport, toNodeHandler } from "@modelcontextprotocol/node";
import { McpServer, createMcpHandler } from "@modelcontextprotocol/server";
import { z } from "zod";

import { serve } from "./small.mjs";

const [mode, port] = process.argv.slice(2);

function server() {
  const server = new McpServer({ name: "small", version: "1" });
  const text = (text) => ({ content: [{ type: "text", text }] });
  server.registerTool("add", { inputSchema: z.object({ a: z.number(), b: z.number() }) }, ({ a, b }) =>
    text(`${a} and ${b} is ${a + b}`),
  );
  server.registerTool("wait", {}, async (context) => {
    context.http?.closeSSE?.();
    await new Promise((resolve) => setTimeout(resolve, 300));
    return text("worth the wait");
  });
  return server;
}

const handle =
  mode === "stateless" ? toNodeHandler(createMcpHandler(server)) : serve(mode, server, NodeStreamableHTTPServerTransport);
http.createServer(handle).listen(Number(port), "127.0.0.1");
