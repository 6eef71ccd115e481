// Loading, validating and paging, without a server.

import { spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { EvalSuite, execution, InvalidEvals, InvalidParams, invocation, scenario, validate } from '../src/index.js';
import { findProctor } from '../src/testing.js';

const GOOD: any = execution('good', 'echo', { text: 'x' }, { content: 'x' });
const CALL: any = invocation('call', 'hello', { tool: 'echo' });
const TALK: any = scenario('talk', 'hello', { rubric: 'It greets.' });

/** A copy of an eval with one value replaced, or removed. */
function change(base: any, path: string, value?: unknown): any {
  const copy = structuredClone(base);
  const keys = path.split('/');
  const last = keys.pop()!;
  const where = keys.reduce((at, key) => at[key], copy);
  if (value === undefined) delete where[last];
  else where[last] = value;
  return copy;
}

const INVALID: [item: any, path: string, text: string][] = [
  [change(GOOD, 'name'), '/name', 'is missing'],
  [change(GOOD, 'name', 1), '/name', 'must be a string'],
  [change(GOOD, 'input'), '/input', 'is missing'],
  [change(GOOD, 'input/type', 'smoke'), '/input/type', 'unknown input type `smoke`'],
  [change(GOOD, 'gradingType', 'vibes'), '/gradingType', 'unknown grading type'],
  [change(GOOD, 'gradingType', 'llm-as-judge'), '/expected/type', 'but `gradingType` is'],
  [change(GOOD, 'input/arguments', []), '/input/arguments', 'must be an object'],
  [change(GOOD, 'expected/content'), '/expected', 'any result would pass'],
  [change(CALL, 'expected/toolName'), '/expected', 'any call would pass'],
  [change(CALL, 'input/messages', []), '/input/messages', 'is empty'],
  [change(CALL, 'input/messages', ['x']), '/input/messages/0', 'must be an object'],
  [change(CALL, 'input/messages/0/role', 'system'), '/input/messages/0/role', 'must be `user` or `assistant`'],
  [change(TALK, 'input/maxTurns', 0), '/input/maxTurns', 'at least 1'],
  [change(TALK, 'input/maxTurns', 1.5), '/input/maxTurns', 'whole number'],
  [change(TALK, 'expected/rubric', ' '), '/expected/rubric', 'is empty'],
  [
    { ...TALK, gradingType: 'exact-match', expected: { type: 'exact-match' } },
    '/expected/type',
    'every run is different',
  ],
  [change(GOOD, 'expected/contents', []), '/expected/contents', 'did you mean `content`?'],
  [change(GOOD, 'grading', { not: true }), '/grading', 'may change what is tested'],
];
const NOT_JSON: [value: unknown, text: string][] = [
  [new Date(0), 'is of type `Date`'],
  [Number.NaN, 'is `NaN`'],
  [1n, 'is of type `bigint`'],
  [2 ** 60, 'beyond 2^53'],
  [() => 1, 'is of type `function`'],
];

function problemOf(items: any): InvalidEvals {
  try {
    new EvalSuite(items);
  } catch (error) {
    expect(error).toBeInstanceOf(InvalidEvals);
    return error as InvalidEvals;
  }
  throw new Error('the evals were accepted');
}

test.each(INVALID)('an invalid eval is refused: %#', (item, path, text) => {
  const problem = problemOf([item]);
  const found = problem.findings.filter(finding => finding.severity === 'error' && finding.path === path);
  expect(found).toHaveLength(1);
  expect(found[0]!.text).toContain(text);
  expect(problem.message).toContain(text);
});

test.each(NOT_JSON)('a value that JSON does not have is refused: %#', (value, text) => {
  expect(problemOf([change(GOOD, 'input/arguments/text', value)]).message).toContain(text);
});

test('all problems are reported at once', () => {
  const { message } = problemOf([change(GOOD, 'name'), change(GOOD, 'expected/content'), { id: 1 }, 'text']);
  expect(message).toContain('eval `good`, `/id`: 2 evals have this id');
  expect(message).toContain('eval `good`, `/name`: is missing');
  expect(message).toContain('eval `good`, `/expected`: has no `content`, so any result would pass');
  expect(message).toContain('eval number 3, `/id`: must be a string');
  expect(message).toContain('eval number 4: must be an object');
});

test('an empty list is refused', () => {
  expect(problemOf([]).message).toBe('the list of evals is empty');
});

test('an eval has a rubric or an exact expectation', () => {
  expect(() => execution('both', 'echo', {}, { content: 'x', rubric: 'It echoes.' })).toThrow('use one of them');
});

describe('files', () => {
  let folder: string;
  beforeEach(() => void (folder = mkdtempSync(join(tmpdir(), 'evals-'))));
  afterEach(() => rmSync(folder, { recursive: true }));
  const file = (name: string, text: string) => {
    writeFileSync(join(folder, name), text);
    return join(folder, name);
  };

  test('Proctor calls the same evals invalid', { timeout: 300_000 }, () => {
    const items = INVALID.map(([item], index) => ({ ...item, id: `invalid-${index}` }));
    const all = [...items, { ...GOOD, id: 'valid-1' }, { ...CALL, id: 'valid-2' }, { ...TALK, id: 'valid-3' }];
    const ours = new Set(validate(all).filter(({ severity }) => severity === 'error').map(({ id }) => id));
    expect(ours).toEqual(new Set(items.map(({ id }) => id)));
    const path = file('evals.json', JSON.stringify(all));
    const done = spawnSync(findProctor(), ['evals', 'validate', path], { encoding: 'utf8' });
    const printed = done.stdout + done.stderr;
    const theirs = new Set(all.map(({ id }) => id).filter(id => printed.includes(`\`${id}\``)));
    expect(theirs).toEqual(ours);
    expect(done.status).toBe(2);
  });

  test('YAML means what it means to Proctor', () => {
    const suite = new EvalSuite(
      file(
        'evals.yaml',
        `evals:
  - id: yes
    name: 2026-11-16
    gradingType: exact-match
    input: {type: execution, toolName: echo, arguments: {text: no, number: 017, hex: 0x10, none: ~}}
    expected: {type: exact-match, content: [{type: text, text: on}]}
`,
      ),
    );
    expect(suite.evals[0]).toMatchObject({ id: 'yes', name: '2026-11-16' });
    expect(suite.evals[0]!.input['arguments']).toEqual({ text: 'no', number: 17, hex: 16, none: null });
  });

  test.each([
    ['a.json', '{', 'is not JSON'],
    ['a.json', '{"cases": []}', 'expected a list of evals'],
    ['a.json', '[]', 'the list of evals is empty'],
    ['a.yaml', 'evals: [', 'is not YAML'],
    ['a.yaml', 'evals: [{id: a, id: b}]', 'is not YAML'],
    ['a.yaml', 'evals: [{id: .nan}]', 'is `NaN`'],
  ])('a broken file is refused: %s %s', (name, text, problem) => {
    const { message } = problemOf(file(name, text));
    expect(message).toContain(problem);
    expect(message).toContain(name);
  });

  test('a missing file is named', () => {
    expect(problemOf(join(folder, 'none.json')).message).toMatch(/can't read .*none.json/);
  });
});

const many = (count: number) => Array.from({ length: count }, (_, i) => ({ ...(i % 2 ? GOOD : CALL), id: `e${i}` }));

describe.each([undefined, 'execution', 'invocation', 'scenario'])('level %s', level => {
  test.each([1, 2, 3, 7, 100])('pages of %i hold each eval once', pageSize => {
    const suite = new EvalSuite(many(7), { pageSize });
    const found: string[] = [];
    let cursor: string | undefined;
    do {
      const page = suite.answer({ ...(level && { level }), ...(cursor !== undefined && { cursor }) });
      expect(page.evals.length).toBeLessThanOrEqual(pageSize);
      found.push(...page.evals.map(({ id }) => id));
      cursor = page.nextCursor;
    } while (cursor !== undefined);
    expect(found).toEqual(
      suite.evals.filter(({ input }) => level === undefined || input.type === level).map(({ id }) => id),
    );
  });
});

test('a cursor finds its eval after a change', () => {
  const { nextCursor } = new EvalSuite(many(4), { pageSize: 2 }).answer();
  const moved = new EvalSuite([{ ...GOOD, id: 'new' }, ...many(4)]);
  expect(moved.answer({ cursor: nextCursor }).evals.map(({ id }) => id)).toEqual(['e2', 'e3']);
});

test('the empty cursor is the beginning', () => {
  expect(new EvalSuite([GOOD]).answer({ cursor: '' })).toEqual({ evals: [GOOD] });
});

test.each(['x', '-', '0', 'zz-0123456789abcdef', null, 3, ['a'], 'f'.repeat(99)])(
  'an unknown cursor is refused: %j',
  cursor => {
    expect(() => new EvalSuite([GOOD]).answer({ cursor })).toThrow(InvalidParams);
  },
);
