// Makes vitest tests of a suite, or of the evals that a server ships: one test per case, and one for the gate.

import { describe, test, type TestContext } from 'vitest';
import {
  ServerEvals,
  Suite,
  type Case,
  type Run,
  type ServerOptions,
  type SuiteOptions,
  type Target,
  type Verdict,
} from './testing.js';

/** One test per case of an eval file. */
export function describeSuite(path: string, options: SuiteOptions = {}): void {
  describeTarget(path, new Suite(path, options));
}

/** One test per eval that a server ships. */
export function describeServerEvals(name: string, options: ServerOptions): void {
  describeTarget(name, new ServerEvals(options));
}

function describeTarget(name: string, target: Target): void {
  // Lists now: an error, and an empty list, fail the file.
  const cases = target.cases();
  let shared: Promise<Run> | undefined;
  const check = async (context: TestContext, verdictOf: (run: Run) => Verdict) => {
    shared ??= target.run(selected(cases, context));
    const run = await shared;
    Object.assign(context.task.meta, { proctor: { record: run.record, report: run.report } });
    const verdict = verdictOf(run);
    if (verdict.outcome === 'known-failure') context.skip(verdict.reason);
    if (verdict.outcome !== 'passed') throw new Error(`${verdict.reason}\n${run.description()}`);
  };
  describe(name, () => {
    for (const one of cases) test(one.name, { timeout: 0 }, context => check(context, run => run.verdict(one)));
    test('gate', { timeout: 0 }, context => check(context, run => run.gate()));
  });
}

/** The cases whose tests run (`vitest -t`); all, if only the gate was selected. */
function selected(cases: readonly Case[], { task }: TestContext): readonly Case[] | undefined {
  const siblings = task.suite?.tasks ?? [];
  const names = new Set(siblings.filter(({ mode }) => mode === 'run' || mode === 'queued').map(({ name }) => name));
  const chosen = cases.filter(({ name }) => names.has(name));
  return chosen.length === 0 || chosen.length === cases.length ? undefined : chosen;
}
