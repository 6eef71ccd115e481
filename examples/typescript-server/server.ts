// An MCP server that ships evals with the package `@mcp-proctor/evals`.
//
// Run: npm install && npx tsx server.ts [--http PORT]

import { createServer } from 'node:http';
import { addEvals, Evals } from '@mcp-proctor/evals';
import { McpServer } from '@modelcontextprotocol/sdk/server/mcp.js';
import { StdioServerTransport } from '@modelcontextprotocol/sdk/server/stdio.js';
import { StreamableHTTPServerTransport } from '@modelcontextprotocol/sdk/server/streamableHttp.js';
import { z } from 'zod';

const evals = new Evals(new URL('evals.json', import.meta.url));
const notes: string[] = [];
const text = (text: string) => ({ content: [{ type: 'text' as const, text }] });

function notesServer() {
  const server = new McpServer({ name: 'notes', version: '1.0.0' });
  addEvals(server, evals);

  server.registerTool(
    'word_count',
    {
      description: 'Counts the words of a text.',
      inputSchema: { text: z.string().describe('Any text.') },
      annotations: { readOnlyHint: true },
    },
    args => text(String(args.text.split(/\s+/).filter(Boolean).length)),
  );
  server.registerTool(
    'add_note',
    {
      description: 'Keeps a note until the server ends.',
      inputSchema: { text: z.string().describe('The note.') },
      annotations: { destructiveHint: false },
    },
    args => text(`note ${notes.push(args.text)} is kept`),
  );
  server.registerTool(
    'find_notes',
    {
      description: 'Finds the notes that contain a text.',
      inputSchema: { query: z.string().describe('What a note must contain.') },
      annotations: { readOnlyHint: true },
    },
    ({ query }) => {
      const found = notes.filter(note => note.toLowerCase().includes(query.toLowerCase()));
      return text(found.join('\n') || 'no note was found');
    },
  );
  return server;
}

if (process.argv[2] === '--http') {
  // Without sessions every request has a server of its own; the notes and the evals are shared.
  createServer(async (request, response) => {
    const transport = new StreamableHTTPServerTransport({ sessionIdGenerator: undefined, enableJsonResponse: true });
    await notesServer().connect(transport);
    await transport.handleRequest(request, response);
  }).listen(Number(process.argv[3]), '127.0.0.1');
} else {
  await notesServer().connect(new StdioServerTransport());
}
