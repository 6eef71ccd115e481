// Servers of both SDKs, spoken to in raw JSON-RPC, in each era that they have.

import { afterEach, describe, expect, test } from 'vitest';
import { addEvals, execution } from '../src/index.js';
import { Client, type Era, type Message } from './client.js';

const ids = (answer: Message): string[] => answer.result.evals.map(({ id }: { id: string }) => id);
const SERVERS: [server: string, era: Era][] = [
  ['v1.mjs', 'handshake'],
  ['v2.mjs', 'handshake'],
  ['v2.mjs', 'stateless'],
];

// Only a hang takes this long.
describe.each(SERVERS)('%s, %s', { timeout: 300_000 }, (server, era) => {
  let client: Client;
  const connect = (...args: string[]) => (client = new Client(era, server, ...args));
  afterEach(() => client.close());

  test('the capability is declared in all places', async () => {
    const capabilities = await connect().open();
    expect(capabilities).toMatchObject({
      tools: {},
      evals: {},
      experimental: { evals: {} },
      extensions: { 'dev.mcp-proctor/evals': {} },
    });
    expect(capabilities.experimental.evals).toEqual({});
  });

  test('pages are followed to the end', async () => {
    await connect().open();
    const found: string[] = [];
    let params: object | undefined;
    for (;;) {
      const answer = await client.request('evals/list', params);
      found.push(...ids(answer));
      if (answer.result.nextCursor === undefined) break;
      params = { cursor: answer.result.nextCursor };
    }
    expect(found).toEqual(['echoes', 'is-chosen', 'talks']);
  });

  test('a level selects', async () => {
    await connect().open();
    const answer = await client.request('evals/list', { level: 'scenario' });
    expect(ids(answer)).toEqual(['talks']);
    expect(answer.result.nextCursor).toBeUndefined();
    if (era === 'stateless')
      expect(answer.result).toMatchObject({ resultType: 'complete', ttlMs: 0, cacheScope: 'private' });
  });

  test.each([{ cursor: 'nowhere' }, { cursor: 1 }, { cursor: null }, { level: 'all' }, { level: null }])(
    'wrong params are refused: %j',
    async params => {
      await connect().open();
      expect((await client.request('evals/list', params)).error?.code).toBe(-32602);
    },
  );

  test('tools and unknown methods are answered as before', async () => {
    await connect().open();
    await client.request('evals/list');
    const answer = await client.request('tools/call', { name: 'echo', arguments: { text: 'hello' } });
    expect(answer.result.content).toEqual([{ type: 'text', text: 'hello' }]);
    expect((await client.request('acme/other')).error?.code).toBe(-32601);
    if (server === 'v1.mjs') expect((await client.request('acme/ping')).result).toEqual({ pong: true });
  });

  test('clients are told of changed evals', async () => {
    const capabilities = await connect('--changing').open();
    expect(capabilities.experimental.evals).toEqual({ listChanged: true });
    await client.request('tools/call', { name: 'change', arguments: {} });
    // SDK 2.x serves `subscriptions/listen` itself, and its filter has no key for evals.
    if (era === 'handshake') await client.waitFor('notifications/evals/list_changed');
    expect(ids(await client.request('evals/list'))).toEqual(['changed']);
  });

  test('evals that were not declared as changing stay', async () => {
    await connect().open();
    const answer = await client.request('tools/call', { name: 'change', arguments: {} });
    expect(answer.result.isError).toBe(true);
    expect(ids(await client.request('evals/list'))).toEqual(['echoes']);
  });
});

test('something else is not a server', () => {
  expect(() => addEvals({} as never, [execution('a', 'b', {}, { content: 'c' })])).toThrow(/not a server/);
});
