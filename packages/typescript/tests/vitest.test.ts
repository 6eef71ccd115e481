// The vitest helper with the real binary. A green result must mean that every eval passed.

import { spawnSync } from 'node:child_process';
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { findProctor, Run, ServerEvals, type Case } from '../src/testing.js';

const ROOT = fileURLToPath(new URL('..', import.meta.url));
const SERVER = join(ROOT, 'tests/servers/v1.mjs');
const COMMAND = JSON.stringify([process.execPath, SERVER]);
const PROCTOR = findProctor();

describe('a run of vitest', { timeout: 300_000 }, () => {
  let folder: string;
  // In this package, so that vitest and the package are found.
  beforeEach(() => void (folder = mkdtempSync(join(ROOT, 'tmp-'))));
  afterEach(() => rmSync(folder, { recursive: true }));

  const write = (name: string, text: string) => writeFileSync(join(folder, name), text);

  function run(statement: string, ...args: string[]) {
    write(
      'it.test.ts',
      `import { describeServerEvals, describeSuite } from '../dist/vitest.js';
const cwd = ${JSON.stringify(folder)};
${statement};`,
    );
    write('vitest.config.mjs', "export default { test: { include: ['*.test.ts'] } };");
    const vitest = join(ROOT, 'node_modules/vitest/vitest.mjs');
    const report = join(folder, 'vitest.json');
    const flags = ['run', '--root', folder, '--config', 'vitest.config.mjs', '--reporter', 'json', '--outputFile', report];
    const done = spawnSync(process.execPath, [vitest, ...flags, ...args], {
      cwd: folder,
      encoding: 'utf8',
      env: { ...process.env, PROCTOR },
    });
    const document = JSON.parse(readFileSync(report, 'utf8'));
    const tests = document.testResults.flatMap((file: any) => file.assertionResults);
    const outcomes = Object.fromEntries(tests.map(({ title, status }: any) => [title, status]));
    return { exit: done.status, outcomes, text: JSON.stringify(document) };
  }

  function suite({ lend = 'echo done | grep -q done', find = 'echo done | grep -q done', more = '' } = {}) {
    const task = (name: string, script: string) => `kind: Task
apiVersion: mcpchecker/v1alpha2
metadata: {name: ${name}}
spec:
  prompt: {inline: Do it}
  verify: [{script: {inline: '${script}'}}]
`;
    write('lend.yaml', task('lend', lend));
    write('find.yaml', task('find', find));
    write('mcp.yaml', JSON.stringify({ mcpServers: { library: { command: PROCTOR, args: ['__demo'] } } }));
    write('model.yaml', 'kind: Script\nrules: [{reply: {text: Done.}}]\n');
    write(
      'eval.yaml',
      `kind: Eval
metadata: {name: library}
config:
  agent: {type: builtin.llm-agent, model: scripted:model.yaml}
  mcpConfigFile: mcp.yaml
  taskSets: [{path: lend.yaml}, {path: find.yaml}]
${more}`,
    );
  }

  const evals = (options: string) => `describeServerEvals('it', { cwd, ${options} })`;

  test('each eval is a test', () => {
    const { exit, outcomes } = run(evals(`command: ${COMMAND}, level: 'execution', yes: true`));
    expect(outcomes).toEqual({ echoes: 'passed', gate: 'passed' });
    expect(exit).toBe(0);
    expect(readdirSync(join(folder, '.proctor/reports'))).toHaveLength(1);
  });

  test('each case of a suite is a test', () => {
    suite({ find: 'echo no such book >&2; exit 1' });
    const { exit, outcomes, text } = run("describeSuite('eval.yaml', { cwd })");
    expect(outcomes).toEqual({ lend: 'passed', find: 'failed', gate: 'failed' });
    expect(exit).toBe(1);
    expect(text).toContain('no such book');
    expect(text).toContain('.proctor/reports/');
  });

  test('only selected cases run', () => {
    suite({ find: 'exit 1' });
    const { exit, outcomes } = run("describeSuite('eval.yaml', { cwd })", '-t', 'lend|gate');
    expect(outcomes).toMatchObject({ lend: 'passed', gate: 'passed' });
    expect(exit).toBe(0);
  });

  test('a known failure is skipped', () => {
    suite({ find: 'exit 1', more: '  knownFailures: [{case: find, reason: issue 7}]\n' });
    const { exit, outcomes } = run("describeSuite('eval.yaml', { cwd })");
    expect(outcomes).toMatchObject({ lend: 'passed', gate: 'passed' });
    expect(outcomes['find']).not.toBe('passed');
    expect(exit).toBe(0);
  });

  test('an errored trial is not a pass', () => {
    suite();
    write('model.yaml', 'kind: Script\nrules: [{when: {prompt: never}, reply: {text: x}}]\n');
    const { exit, outcomes } = run("describeSuite('eval.yaml', { cwd })");
    expect(outcomes).toEqual({ lend: 'failed', find: 'failed', gate: 'failed' });
    expect(exit).toBe(1);
  });

  test('evals that need a model fail without one', () => {
    const { exit, outcomes } = run(evals(`command: ${COMMAND}, level: 'invocation', yes: true`));
    expect(outcomes).toEqual({ 'is-chosen': 'failed', gate: 'failed' });
    expect(exit).toBe(1);
  });

  test.each([
    ["'HELLO'", 'a wrong result'],
    ['process.exit(1)', 'a server that dies in the call'],
  ])('%s: fails', result => {
    const source = readFileSync(SERVER, 'utf8')
      .replaceAll('../../dist/', '../dist/')
      .replace('./evals.mjs', '../tests/servers/evals.mjs')
      .replace('text(args.text)', `text(${result})`);
    write('wrong.mjs', source);
    const command = JSON.stringify([process.execPath, 'wrong.mjs']);
    const { exit, outcomes } = run(evals(`command: ${command}, level: 'execution', yes: true`));
    expect(outcomes).toEqual({ echoes: 'failed', gate: 'failed' });
    expect(exit).toBe(1);
  });

  test.each([
    ['a missing binary', evals(`proctor: '/no/such/proctor', command: ['x'], yes: true`), 'was not found'],
    ['a server that dies', evals(`command: [process.execPath, '-e', 'process.exit(1)'], yes: true`), 'exited with'],
    ['an id that is not there', evals(`command: ${COMMAND}, ids: ['none'], yes: true`), 'ships no eval none'],
    ['no consent', evals(`command: ${COMMAND}`), 'evals call real tools'],
    ['an empty suite', "describeSuite('eval.yaml', { cwd, run: '^none$' })", 'exited with 4'],
  ])('%s fails the file', (_, statement, problem) => {
    suite();
    const { exit, outcomes, text } = run(statement);
    expect(outcomes).toEqual({});
    expect(text).toContain(problem);
    expect(exit).toBe(1);
  });
});

const CASE: Case = { id: 'evals/server#a', name: 'a' };
const MET = { case: CASE.id, verdict: 'met' };

test.each([
  [[], 'failed'],
  [[{ ...MET, case: 'evals/server#b' }], 'failed'],
  [[{ ...MET, verdict: 'inconclusive' }], 'failed'],
  [[{ case: CASE.id }], 'failed'],
  [[MET, { ...MET, verdict: 'missed' }], 'failed'],
  [[MET, { ...MET, verdict: 'known-failure' }], 'known-failure'],
  [[MET], 'passed'],
])('only a pass rule that was met passes: %j', (cases, outcome) => {
  expect(new Run(0, '', '', cases).verdict(CASE).outcome).toBe(outcome);
});

test.each([1, 2, 3, 4, 130, null])('the gate needs exit code 0, not %s', exit => {
  expect(new Run(exit, '', '').gate().outcome).toBe('failed');
  expect(new Run(0, '', '').gate().outcome).toBe('passed');
});

test('consent is explicit', () => {
  expect(() => new ServerEvals({ command: ['x'] })).toThrow('evals call real tools');
});
