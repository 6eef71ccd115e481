// Adds evals to a server of the official SDKs: `@modelcontextprotocol/sdk` 1.x and `@modelcontextprotocol/server` 2.x.
//
// The package needs no SDK to be installed: it uses only members that both have.

import { EvalSuite } from './suite.js';
import { CAPABILITY, EXTENSION, LIST_CHANGED, METHOD, type EvalSource } from './types.js';

type Handler = (request: { method: string; params?: unknown }, ...rest: never[]) => Promise<unknown>;

/** What is used of a low-level server. */
export interface SdkServer {
  registerCapabilities(capabilities: object): void;
  notification(notification: { method: string }): Promise<void>;
  getClientVersion(): unknown;
  /** Only 2.x has it; 1.x speaks the handshake era only. */
  getNegotiatedProtocolVersion?(): string | undefined;
  fallbackRequestHandler?: unknown;
}

export interface EvalsOptions {
  /** The number of evals per page; 100 by default. */
  pageSize?: number;
  /** Whether the evals may be replaced while the server runs. */
  listChanged?: boolean;
}

/** The evals of a server. Servers that are made per session or request share one. */
export class Evals {
  readonly listChanged: boolean;
  #suite: EvalSuite;
  readonly #servers = new Set<WeakRef<SdkServer>>();
  readonly #gone = new FinalizationRegistry<WeakRef<SdkServer>>(server => this.#servers.delete(server));

  constructor(source: EvalSource, options: EvalsOptions = {}) {
    this.#suite = new EvalSuite(source, options);
    this.listChanged = options.listChanged ?? false;
  }

  get suite(): EvalSuite {
    return this.#suite;
  }

  /** Ships other evals, and notifies clients. Invalid evals throw, and the old list stays. */
  async replace(source: EvalSource): Promise<void> {
    if (!this.listChanged) throw new Error('evals can be replaced only with the option `listChanged: true`');
    this.#suite = new EvalSuite(source, { pageSize: this.#suite.pageSize });
    for (const reference of this.#servers) {
      const server = reference.deref();
      // Without a client's name, the handshake is not done.
      if (server === undefined || server.getClientVersion() === undefined) continue;
      // A client that has gone needs no news.
      await server.notification({ method: LIST_CHANGED }).catch(() => {});
    }
  }

  /** Adds the capability and `evals/list` to a low-level server. */
  attach(server: SdkServer): void {
    const capability = this.listChanged ? { listChanged: true } : {};
    server.registerCapabilities({
      [CAPABILITY]: capability,
      experimental: { [CAPABILITY]: capability },
      extensions: { [EXTENSION]: capability },
    });
    this.#answer(server);
    if (this.listChanged) {
      const reference = new WeakRef(server);
      this.#servers.add(reference);
      this.#gone.register(server, reference);
    }
  }

  #answer(server: SdkServer): void {
    let other = server.fallbackRequestHandler as Handler | undefined;
    const handler: Handler = async (request, ...rest) => {
      if (request.method === METHOD) {
        return this.#page(request.params, server.getNegotiatedProtocolVersion?.());
      }
      if (other) return other.call(server, request, ...rest);
      throw Object.assign(new Error('Method not found'), { code: -32601 });
    };
    // A handler that the server's author sets later is asked for other methods, and replaces nothing.
    Object.defineProperty(server, 'fallbackRequestHandler', {
      configurable: true,
      enumerable: true,
      get: () => handler,
      set: (later: Handler | undefined) => void (other = later),
    });
  }

  #page(params: unknown, version: string | undefined): object {
    const page = this.#suite.answer(params);
    if (version === undefined || version < '2026-07-28') return page;
    return { ...page, resultType: 'complete', ttlMs: 0, cacheScope: 'private' };
  }
}

/**
 * Ships evals with a server: an `McpServer` or a low-level `Server`. Call it before the server connects. Invalid evals
 * throw `InvalidEvals`, with all problems at once.
 */
export function addEvals(
  server: SdkServer | { readonly server: SdkServer },
  evals: EvalSource | Evals,
  options: EvalsOptions = {},
): Evals {
  const lowLevel = 'server' in server ? server.server : server;
  if (typeof lowLevel?.registerCapabilities !== 'function')
    throw new TypeError('not a server of the MCP SDK: it has no `registerCapabilities`');
  const added = evals instanceof Evals ? evals : new Evals(evals, options);
  added.attach(lowLevel);
  return added;
}
