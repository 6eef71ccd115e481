// A server on @modelcontextprotocol/server 2.x: `v2.mjs [--changing]`.
import { McpServer } from '@modelcontextprotocol/server';
import { serveStdio } from '@modelcontextprotocol/server/stdio';
import { z } from 'zod';
import { addEvals, Evals } from '../../dist/index.js';
import { CHANGED, FIRST } from './evals.mjs';

const evals = new Evals(FIRST, { pageSize: 1, listChanged: process.argv.includes('--changing') });
const text = text => ({ content: [{ type: 'text', text }] });

serveStdio(() => {
  const server = new McpServer({ name: 'small', version: '1.0.0' });
  addEvals(server, evals);
  server.registerTool('echo', { inputSchema: z.object({ text: z.string() }) }, async args => text(args.text));
  server.registerTool('change', {}, async () => {
    await evals.replace(CHANGED);
    return text('changed');
  });
  return server;
});
