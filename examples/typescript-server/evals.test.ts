// Runs the evals of the server that need no model: `npm test`.

import { describeServerEvals } from '@mcp-proctor/evals/vitest';

describeServerEvals('notes', {
  command: ['node_modules/.bin/tsx', 'server.ts'],
  ids: ['word-count-counts'],
  yes: true,
});
