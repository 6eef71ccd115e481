// A small MCP server that ships evals, on the official TypeScript SDK (@modelcontextprotocol/sdk 1.32).
//
// Run: npm install && npx tsx server.ts [--http PORT]
//
// The SDK sends capabilities as they are given, though its types know only some of them, and serves
// methods that are not in the protocol by a handler with a schema of its own.

import { readFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { McpServer } from '@modelcontextprotocol/sdk/server/mcp.js';
import { StdioServerTransport } from '@modelcontextprotocol/sdk/server/stdio.js';
import { StreamableHTTPServerTransport } from '@modelcontextprotocol/sdk/server/streamableHttp.js';
import { ErrorCode, McpError } from '@modelcontextprotocol/sdk/types.js';
import { z } from 'zod';

const PAGE_SIZE = 2;
const file = new URL('../evals.json', import.meta.url);
const { evals } = JSON.parse(readFileSync(file, 'utf8')) as { evals: { input: { type: string } }[] };

const ListEvals = z.object({
  method: z.literal('evals/list'),
  params: z.object({ cursor: z.unknown(), level: z.unknown() }).partial().optional(),
});

function listEvals({ params = {} }: z.infer<typeof ListEvals>) {
  const { cursor, level } = params;
  // Cursors are opaque to clients; here one is the number of evals already sent.
  if (cursor !== undefined && !(typeof cursor === 'string' && /^\d{0,9}$/.test(cursor)))
    throw new McpError(ErrorCode.InvalidParams, `unknown cursor ${JSON.stringify(cursor)}`);
  if (level !== undefined && !['invocation', 'execution', 'scenario'].includes(level as string))
    throw new McpError(ErrorCode.InvalidParams, `unknown level ${JSON.stringify(level)}`);
  const start = Number(cursor ?? 0);
  const wanted = evals.filter(({ input }) => level === undefined || input.type === level);
  const page = { evals: wanted.slice(start, start + PAGE_SIZE) };
  return start + PAGE_SIZE < wanted.length ? { ...page, nextCursor: String(start + PAGE_SIZE) } : page;
}

const notes: string[] = [];
const text = (text: string) => ({ content: [{ type: 'text' as const, text }] });

function notesServer() {
  const capabilities = { evals: {}, experimental: { evals: {} }, extensions: { 'dev.mcp-proctor/evals': {} } };
  const server = new McpServer({ name: 'notes', version: '1.0.0' }, { capabilities });
  server.server.setRequestHandler(ListEvals, listEvals);

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
  // Without sessions every request has a server of its own; the notes are shared.
  createServer(async (request, response) => {
    const transport = new StreamableHTTPServerTransport({ sessionIdGenerator: undefined, enableJsonResponse: true });
    await notesServer().connect(transport);
    await transport.handleRequest(request, response);
  }).listen(Number(process.argv[3]), '127.0.0.1');
} else {
  await notesServer().connect(new StdioServerTransport());
}
