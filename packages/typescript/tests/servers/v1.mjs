// A server on @modelcontextprotocol/sdk 1.x: `v1.mjs [--changing]`.
import { McpServer } from '@modelcontextprotocol/sdk/server/mcp.js';
import { StdioServerTransport } from '@modelcontextprotocol/sdk/server/stdio.js';
import { z } from 'zod';
import { addEvals } from '../../dist/index.js';
import { CHANGED, FIRST } from './evals.mjs';

const server = new McpServer({ name: 'small', version: '1.0.0' });
const evals = addEvals(server, FIRST, { pageSize: 1, listChanged: process.argv.includes('--changing') });
const text = text => ({ content: [{ type: 'text', text }] });

server.registerTool('echo', { inputSchema: { text: z.string() } }, args => text(args.text));
server.registerTool('change', {}, async () => {
  await evals.replace(CHANGED);
  return text('changed');
});
// Set after the evals: both are answered.
server.server.fallbackRequestHandler = async request => {
  if (request.method === 'acme/ping') return { pong: true };
  throw Object.assign(new Error('Method not found'), { code: -32601 });
};
await server.connect(new StdioServerTransport());
