// Speaks JSON-RPC with a server, line by line.

import { spawn, type ChildProcess } from 'node:child_process';
import { createInterface, type Interface } from 'node:readline';
import { fileURLToPath } from 'node:url';

export type Era = 'handshake' | 'stateless';
export type Message = { id?: number; method?: string; params?: any; result?: any; error?: { code: number } };

export class Client {
  readonly notifications: Message[] = [];
  readonly #child: ChildProcess;
  readonly #lines: AsyncIterator<string>;
  readonly #reader: Interface;
  #id = 0;

  constructor(
    readonly era: Era,
    server: string,
    ...args: string[]
  ) {
    const path = fileURLToPath(new URL(`servers/${server}`, import.meta.url));
    this.#child = spawn(process.execPath, [path, ...args], { stdio: ['pipe', 'pipe', 'inherit'] });
    this.#reader = createInterface({ input: this.#child.stdout! });
    this.#lines = this.#reader[Symbol.asyncIterator]();
  }

  close(): void {
    this.#reader.close();
    this.#child.kill();
  }

  send(method: string, params?: object, more: object = {}): void {
    const meta = {
      'io.modelcontextprotocol/protocolVersion': '2026-07-28',
      'io.modelcontextprotocol/clientCapabilities': {},
      'io.modelcontextprotocol/clientInfo': { name: 'tests', version: '1' },
    };
    const sent = this.era === 'stateless' ? { ...params, _meta: meta } : params;
    this.#child.stdin!.write(`${JSON.stringify({ jsonrpc: '2.0', method, params: sent, ...more })}\n`);
  }

  async receive(): Promise<Message> {
    const { value, done } = await this.#lines.next();
    if (done) throw new Error('the server closed its output');
    const message = JSON.parse(value) as Message;
    if (message.id === undefined) this.notifications.push(message);
    return message;
  }

  async request(method: string, params?: object): Promise<Message> {
    const id = ++this.#id;
    this.send(method, params, { id });
    for (;;) {
      const message = await this.receive();
      if (message.id === id) return message;
    }
  }

  async waitFor(method: string): Promise<Message> {
    for (;;) {
      const found = this.notifications.find(message => message.method === method);
      if (found) return found;
      await this.receive();
    }
  }

  /** The server's capabilities. */
  async open(): Promise<any> {
    if (this.era === 'stateless') return (await this.request('server/discover')).result.capabilities;
    const clientInfo = { name: 'tests', version: '1' };
    const params = { protocolVersion: '2025-11-25', capabilities: {}, clientInfo };
    const { result } = await this.request('initialize', params);
    this.send('notifications/initialized');
    return result.capabilities;
  }
}
