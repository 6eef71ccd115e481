// Validates a list of evals, and reports all problems at once.
//
// A server's author can mend everything, so that unknown types, and unknown keys where they change what is tested, are
// errors here; clients skip such evals with a notice.

import { LEVELS, type Finding, type Level } from './types.js';

type Members = Record<string, unknown>;
type Kind = 'string' | 'object' | 'list';

const EVAL_KEYS = ['id', 'name', 'description', 'gradingType', 'input', 'expected'];
const INPUT_KEYS: Record<Level, string[]> = {
  invocation: ['type', 'messages'],
  execution: ['type', 'toolName', 'arguments'],
  scenario: ['type', 'messages', 'maxTurns'],
};
const EXPECTED_KEYS = new Map([
  ['exact-match', ['type', 'toolName', 'arguments', 'content']],
  ['llm-as-judge', ['type', 'rubric']],
]);
// The fields of a content block, by its type.
const BLOCKS = new Map<unknown, Record<string, Kind>>([
  ['text', { text: 'string' }],
  ['image', { data: 'string', mimeType: 'string' }],
  ['audio', { data: 'string', mimeType: 'string' }],
  ['tool_use', { id: 'string', name: 'string', input: 'object' }],
  ['tool_result', { toolUseId: 'string', content: 'list' }],
]);

/** All problems of a list of evals. An eval with an error must not be shipped. */
export function validate(evals: readonly unknown[]): Finding[] {
  const times = new Map<unknown, number>();
  for (const item of evals) if (isObject(item)) times.set(item['id'], (times.get(item['id']) ?? 0) + 1);
  return evals.flatMap((item, index) => {
    const one = new OneEval(index, item);
    const count = times.get(one.id) ?? 0;
    if (one.id !== undefined && count > 1) one.error('/id', `${count} evals have this id`);
    one.check();
    return one.findings;
  });
}

function isObject(value: unknown): value is Members {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

class OneEval {
  readonly findings: Finding[] = [];
  readonly id: string | undefined;

  constructor(
    readonly index: number,
    readonly value: unknown,
  ) {
    const id = isObject(value) ? value['id'] : undefined;
    this.id = typeof id === 'string' ? id : undefined;
  }

  error(path: string, text: string): void {
    this.findings.push({ index: this.index, id: this.id, path, severity: 'error', text });
  }

  warn(path: string, text: string): void {
    this.findings.push({ index: this.index, id: this.id, path, severity: 'warning', text });
  }

  check(): void {
    const { value } = this;
    if (!isObject(value)) return this.error('', 'must be an object');
    const before = this.findings.length;
    this.#onlyJson(value, '');
    if (this.findings.length > before) return;
    this.#field(value, 'id', 'string');
    this.#field(value, 'name', 'string');
    this.#field(value, 'description', 'string', '', false);
    this.#unknown(value, EVAL_KEYS, '', (path, text) => this.warn(path, text));
    if (this.id !== undefined && this.id.trim() === '')
      this.error('/id', "is empty, so the eval can't be selected");
    if ('grading' in value) this.error('/grading', 'unknown key `grading`, which may change what is tested');
    const level = this.#input(this.#field(value, 'input', 'object') as Members | undefined);
    const grading = this.#field(value, 'gradingType', 'string') as string | undefined;
    if (grading !== undefined && !EXPECTED_KEYS.has(grading))
      this.error('/gradingType', `unknown grading type \`${grading}\``);
    this.#expected(this.#field(value, 'expected', 'object') as Members | undefined, grading, level);
  }

  /** JavaScript has values that can't go over the wire, or would go as something else. */
  #onlyJson(value: unknown, path: string): void {
    if (Array.isArray(value)) {
      value.forEach((member, index) => this.#onlyJson(member, `${path}/${index}`));
    } else if (isObject(value) && [Object.prototype, null].includes(Object.getPrototypeOf(value))) {
      for (const [key, member] of Object.entries(value))
        this.#onlyJson(member, `${path}/${key.replaceAll('~', '~0').replaceAll('/', '~1')}`);
    } else if (typeof value === 'number') {
      if (!Number.isFinite(value)) this.error(path, `is \`${value}\`, which JSON does not have`);
      else if (Number.isInteger(value) && !Number.isSafeInteger(value))
        this.error(path, 'is an integer beyond 2^53, which JavaScript does not keep exactly; use a string');
    } else if (value !== null && typeof value !== 'string' && typeof value !== 'boolean') {
      const name = isObject(value) ? (value.constructor?.name ?? 'object') : typeof value;
      this.error(path, `is of type \`${name}\`, which JSON does not have`);
    }
  }

  #field(where: Members, key: string, kind: Kind, path = '', required = true): unknown {
    const value = where[key];
    if (!(key in where)) {
      if (required) this.error(`${path}/${key}`, 'is missing');
      return undefined;
    }
    const fits = kind === 'string' ? typeof value === 'string' : kind === 'list' ? Array.isArray(value) : isObject(value);
    if (fits) return value;
    this.error(`${path}/${key}`, `must be ${kind === 'object' ? 'an' : 'a'} ${kind}`);
    return undefined;
  }

  #unknown(where: Members, known: string[], path: string, tell: (path: string, text: string) => void): void {
    for (const key of Object.keys(where)) {
      if (known.includes(key) || key === '_meta' || key === 'grading') continue;
      const near = known.find(name => distance(name, key) <= 2);
      tell(`${path}/${key}`, `unknown key \`${key}\`${near ? `; did you mean \`${near}\`?` : ''}`);
    }
  }

  #input(given: Members | undefined): Level | undefined {
    if (given === undefined) return undefined;
    const type = this.#field(given, 'type', 'string', '/input');
    if (type === undefined) return undefined;
    const level = LEVELS.find(name => name === type);
    if (level === undefined) {
      this.error('/input/type', `unknown input type \`${String(type)}\``);
      return undefined;
    }
    this.#unknown(given, INPUT_KEYS[level], '/input', (path, text) => this.warn(path, text));
    if (level === 'execution') {
      this.#field(given, 'toolName', 'string', '/input');
      this.#field(given, 'arguments', 'object', '/input');
    } else {
      this.#messages(this.#field(given, 'messages', 'list', '/input') as unknown[] | undefined);
    }
    const turns = given['maxTurns'];
    if (level === 'scenario' && 'maxTurns' in given && !(Number.isInteger(turns) && (turns as number) >= 1))
      this.error('/input/maxTurns', `must be a whole number of at least 1, but is \`${JSON.stringify(turns)}\``);
    return level;
  }

  #messages(messages: unknown[] | undefined): void {
    if (messages === undefined) return;
    if (messages.length === 0)
      this.error('/input/messages', 'is empty, so there is no conversation to start from');
    messages.forEach((message, index) => {
      const path = `/input/messages/${index}`;
      if (!isObject(message)) return this.error(path, 'must be an object');
      if (message['role'] !== 'user' && message['role'] !== 'assistant')
        this.error(`${path}/role`, 'must be `user` or `assistant`');
      const { content } = message;
      for (const block of Array.isArray(content) ? content : [content]) this.#block(block, `${path}/content`);
    });
  }

  #block(block: unknown, path: string): void {
    if (!isObject(block)) return this.error(path, 'must be a content block or a list of them');
    const fields = BLOCKS.get(block['type']);
    if (fields === undefined) return this.error(path, `unknown content type \`${String(block['type'])}\``);
    for (const [key, kind] of Object.entries(fields)) this.#field(block, key, kind, path);
    if (typeof block['text'] === 'string' && block['text'].trimStart().startsWith('TODO'))
      this.warn(path, 'still says TODO: write what a user would say');
  }

  #expected(expected: Members | undefined, grading: string | undefined, level: Level | undefined): void {
    if (expected === undefined) return;
    const type = this.#field(expected, 'type', 'string', '/expected') as string | undefined;
    if (type === undefined) return;
    if (grading !== undefined && type !== grading)
      this.error('/expected/type', `is \`${type}\`, but \`gradingType\` is \`${grading}\``);
    const known = EXPECTED_KEYS.get(type);
    if (known === undefined) return;
    this.#unknown(expected, known, '/expected', (path, text) => this.error(path, text));
    if (type === 'llm-as-judge') {
      this.#rubric(this.#field(expected, 'rubric', 'string', '/expected') as string | undefined);
      return;
    }
    this.#field(expected, 'toolName', 'string', '/expected', false);
    this.#field(expected, 'arguments', 'object', '/expected', false);
    this.#exact(expected, level);
  }

  #rubric(rubric: string | undefined): void {
    if (rubric === undefined) return;
    if (rubric.trim() === '') this.error('/expected/rubric', 'is empty, so the judge has no criterion');
    else if (rubric.trimStart().startsWith('TODO'))
      this.warn('/expected/rubric', 'still says TODO: write what the judge looks for');
  }

  #exact(expected: Members, level: Level | undefined): void {
    const useless = (keys: string[]) => {
      for (const key of keys)
        if (key in expected) this.warn(`/expected/${key}`, `has no effect in an ${level} eval`);
    };
    if (level === 'scenario') {
      this.error('/expected/type', "a scenario can't be graded by `exact-match`: every run is different");
    } else if (level === 'invocation') {
      if (!('toolName' in expected) && !('arguments' in expected))
        this.error(
          '/expected',
          'has neither `toolName` nor `arguments`, so any call would pass; to forbid calls, use `llm-as-judge`',
        );
      useless(['content']);
    } else if (level === 'execution') {
      if (!('content' in expected)) this.error('/expected', 'has no `content`, so any result would pass');
      useless(['toolName', 'arguments']);
    }
  }
}

/** The number of letters to change, add or remove (Levenshtein). */
function distance(a: string, b: string): number {
  let row = Array.from({ length: b.length + 1 }, (_, index) => index);
  for (let i = 1; i <= a.length; i++) {
    const next = [i];
    for (let j = 1; j <= b.length; j++)
      next[j] = Math.min(row[j]! + 1, next[j - 1]! + 1, row[j - 1]! + (a[i - 1] === b[j - 1] ? 0 : 1));
    row = next;
  }
  return row[b.length]!;
}
