// The answer to `evals/list`: pages, cursors, and the level filter. Knows nothing of an SDK.

import { fileURLToPath } from 'node:url';
import { loadEvals } from './load.js';
import { describeFinding, InvalidEvals, LEVELS, type Eval, type EvalSource, type Finding } from './types.js';
import { validate } from './validate.js';

const DEFAULT_PAGE_SIZE = 100;

/** The params of `evals/list` are invalid. SDKs send `code` to the client. */
export class InvalidParams extends Error {
  override name = 'InvalidParams';
  readonly code = -32602;
}

/** One page of the list. */
export interface Page {
  evals: Eval[];
  nextCursor?: string;
}

/**
 * The validated evals of a server. A cursor names the last eval that was sent, by its index and its id, so that a
 * client in the middle of a list misses little when evals change.
 */
export class EvalSuite {
  readonly evals: readonly Eval[];
  readonly warnings: readonly Finding[];
  readonly pageSize: number;

  constructor(source: EvalSource, options: { pageSize?: number } = {}) {
    this.pageSize = options.pageSize ?? DEFAULT_PAGE_SIZE;
    if (!Number.isInteger(this.pageSize) || this.pageSize < 1)
      throw new TypeError('`pageSize` must be a whole number of at least 1');
    const items = Array.isArray(source) ? (source as unknown[]) : loadEvals(source as string | URL);
    const place = Array.isArray(source) ? '' : `\`${typeof source === 'string' ? source : fileURLToPath(source as URL)}\`: `;
    if (items.length === 0) throw new InvalidEvals(`${place}the list of evals is empty`);
    const findings = validate(items);
    const errors = findings.filter(({ severity }) => severity === 'error');
    if (errors.length > 0) {
      const lines = errors.map(finding => `  ${describeFinding(finding)}`).join('\n');
      throw new InvalidEvals(`${place}invalid evals:\n${lines}`, findings);
    }
    this.evals = items as Eval[];
    this.warnings = findings;
  }

  /** The page that the params of a request ask for. */
  answer(params: unknown = {}): Page {
    if (typeof params !== 'object' || params === null) throw new InvalidParams('`params` must be an object');
    const { cursor, level } = params as { cursor?: unknown; level?: unknown };
    if (level !== undefined && !(LEVELS as readonly unknown[]).includes(level))
      throw new InvalidParams('`level` must be `invocation`, `execution` or `scenario`');
    const start = cursor === undefined ? 0 : this.#start(cursor);
    const wanted = [...this.evals.entries()].filter(
      ([index, item]) => index >= start && (level === undefined || item.input.type === level),
    );
    const page = wanted.slice(0, this.pageSize);
    const evals = page.map(([, item]) => item);
    const last = page.at(-1);
    if (last === undefined || wanted.length === page.length) return { evals };
    return { evals, nextCursor: `${last[0].toString(16)}-${mark(last[1].id)}` };
  }

  #start(cursor: unknown): number {
    if (cursor === '') return 0;
    const parts = typeof cursor === 'string' ? /^([0-9a-f]{1,13})-([0-9a-f]{16})$/.exec(cursor) : null;
    if (parts === null) throw new InvalidParams(`unknown cursor ${JSON.stringify(cursor)}`);
    const place = Number.parseInt(parts[1]!, 16);
    const isIt = (item: Eval | undefined) => item !== undefined && mark(item.id) === parts[2];
    if (isIt(this.evals[place])) return place + 1;
    const moved = this.evals.findIndex(isIt);
    return moved >= 0 ? moved + 1 : Math.min(place, this.evals.length);
  }
}

/** A short form of an id of any length: its 64-bit FNV-1a hash. */
function mark(id: string): string {
  let value = 0xcbf29ce484222325n;
  for (const byte of new TextEncoder().encode(id))
    value = ((value ^ BigInt(byte)) * 0x100000001b3n) & 0xffffffffffffffffn;
  return value.toString(16).padStart(16, '0');
}
