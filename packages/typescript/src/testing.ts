// Runs suites and shipped evals with the `proctor` binary. `./vitest` makes tests of them.
//
// A case counts as passed only if Proctor's summary says that it met its pass rule.

import { spawn, spawnSync } from 'node:child_process';
import { accessSync, constants, existsSync, mkdirSync, statSync } from 'node:fs';
import { delimiter, dirname, join, resolve } from 'node:path';

/** Proctor could not be run, or its output is not what this package expects. */
export class ProctorError extends Error {
  override name = 'ProctorError';
}

/** A case of a suite, or an eval of a server. */
export interface Case {
  id: string;
  name: string;
  /** Why the eval can't run, if Proctor found so when it listed it. */
  problem?: string;
}

export interface Verdict {
  outcome: 'passed' | 'failed' | 'known-failure';
  reason: string;
}

export interface TargetOptions {
  /** The binary; by default the variable `PROCTOR`, or `proctor` on the PATH. */
  proctor?: string;
  /** The working directory of Proctor; by default that of this process. */
  cwd?: string;
  /** Consents to the calls of shipped evals. */
  yes?: boolean;
  /** A consent file. */
  consent?: string;
  model?: string;
  judge?: string;
  /** Other flags of Proctor. */
  args?: readonly string[];
  /** The folder for HTML reports; by default `.proctor/reports`. */
  reports?: string;
}

export interface SuiteOptions extends TargetOptions {
  labels?: string;
  /** Only cases whose name matches this regular expression. */
  run?: string;
}

export interface ServerOptions extends TargetOptions {
  command?: readonly string[];
  url?: string;
  level?: 'invocation' | 'execution' | 'scenario';
  ids?: readonly string[];
  protocol?: string;
}

interface CaseEntry {
  case?: string;
  agent?: string;
  verdict?: string;
  reason?: string;
}

interface OtherEntry {
  evalId?: string;
  outcome?: string;
  reason?: string;
}

/** The result of one run of Proctor. */
export class Run {
  constructor(
    readonly exit: number | null,
    readonly record: string,
    readonly report: string,
    readonly cases: readonly CaseEntry[] = [],
    readonly others: readonly OtherEntry[] = [],
    readonly notes: readonly string[] = [],
  ) {}

  /** The verdict on one case. Anything but a pass rule that was met is not a pass. */
  verdict(wanted: Case): Verdict {
    const entries = this.cases.filter(entry => entry.case === wanted.id);
    const open = entries.filter(entry => entry.verdict !== 'met');
    if (entries.length > 0 && open.length === 0) return { outcome: 'passed', reason: '' };
    const reasons = open.map(
      ({ verdict, agent, reason }) =>
        `${verdict}${agent ? ` (${agent})` : ''}: ${reason ?? 'no reason was recorded'}`,
    );
    if (entries.length > 0 && open.every(entry => entry.verdict === 'known-failure'))
      return { outcome: 'known-failure', reason: reasons.join('; ') };
    for (const other of this.others)
      if (wanted.id.endsWith(`#${other.evalId}`)) reasons.push(`${other.outcome}: ${other.reason}`);
    if (wanted.problem) reasons.push(wanted.problem);
    if (entries.length === 0)
      reasons.push(
        `the result of Proctor (exit code ${this.exit}) does not contain this case`,
        ...this.notes,
      );
    return { outcome: 'failed', reason: reasons.join('\n') };
  }

  /** The verdict on the whole run: Proctor's exit code. */
  gate(): Verdict {
    if (this.exit === 0) return { outcome: 'passed', reason: '' };
    return { outcome: 'failed', reason: [`Proctor exited with ${this.exit}`, ...this.notes].join('\n') };
  }

  /** Where the evidence is, for people. */
  description(): string {
    const lines = [
      ...(existsSync(this.record) ? [`record  ${this.record}`] : []),
      ...(existsSync(this.report) ? [`report  ${this.report}`] : []),
    ];
    return lines.join('\n') || 'Proctor recorded nothing';
  }
}

/** The path of the binary. */
export function findProctor(given?: string): string {
  const wanted = given ?? (process.env['PROCTOR'] || 'proctor');
  const folders = wanted.includes('/') ? [''] : (process.env['PATH'] ?? '').split(delimiter);
  const found = folders.map(folder => (folder ? join(folder, wanted) : wanted)).find(isProgram);
  if (found === undefined)
    throw new ProctorError(
      `\`${wanted}\` was not found; install it, or set its path with \`proctor\` or the variable \`PROCTOR\``,
    );
  return resolve(found);
}

function isProgram(path: string): boolean {
  try {
    accessSync(path, constants.X_OK);
    return statSync(path).isFile();
  } catch {
    return false;
  }
}

let runs = 0;

/** What Proctor runs: a suite, or the evals of a server. */
export abstract class Target {
  readonly cwd: string;
  readonly #options: TargetOptions;

  constructor(
    readonly label: string,
    options: TargetOptions,
  ) {
    this.#options = options;
    this.cwd = resolve(options.cwd ?? '.');
  }

  /** The cases, in order. An empty list is an error. */
  cases(): Case[] {
    const command = this.listCommand();
    const done = spawnSync(findProctor(this.#options.proctor), command, {
      cwd: this.cwd,
      stdio: ['ignore', 'pipe', 'pipe'],
      encoding: 'utf8',
      maxBuffer: 1 << 30,
    });
    if (done.error) throw new ProctorError(`${shown(command)} can't be started: ${done.error.message}`);
    if (done.status !== 0)
      throw new ProctorError(`${shown(command)} exited with ${done.status}\n${done.stderr.trim()}`);
    const cases = this.readList(documentOf(done.stdout, done.stderr, command));
    if (cases.length === 0) throw new ProctorError(`${shown(command)} lists no case\n${done.stderr.trim()}`);
    return cases;
  }

  /** Runs the given cases, or all. */
  async run(cases?: readonly Case[]): Promise<Run> {
    const stamp = new Date().toISOString().replace(/[-:]/g, '').replace('T', '-').slice(0, 15);
    const name = `${stamp}-${this.label}-${process.pid}-${++runs}`;
    const record = join(this.cwd, '.proctor', 'runs', name);
    const report = join(resolve(this.cwd, this.#options.reports ?? '.proctor/reports'), `${name}.html`);
    mkdirSync(dirname(report), { recursive: true });
    const output = ['-q', '-o', 'json', '--record', record, '--report', report];
    const command = this.runCommand(cases, [...output, ...this.#flags()]);
    const done = await this.#call(command);
    const document = done.stdout.trim() ? documentOf(done.stdout, done.stderr, command) : {};
    const note = (document as { proctor?: { exit?: { note?: string } } }).proctor?.exit?.note;
    const others = (document as { others?: OtherEntry[] }).others ?? [];
    const notes = [note, done.stderr.trim()].filter((text): text is string => Boolean(text));
    const entries = existsSync(join(record, 'run.jsonl')) ? await this.#summary(record) : [];
    return new Run(done.exit, record, report, entries, others, notes);
  }

  async #summary(record: string): Promise<CaseEntry[]> {
    const command = ['result', 'summary', record, '-o', 'json'];
    const done = await this.#call(command);
    return (documentOf(done.stdout, done.stderr, command) as { cases?: CaseEntry[] }).cases ?? [];
  }

  #flags(): string[] {
    const { yes, consent, model, judge, args } = this.#options;
    const pairs = Object.entries({ '--consent': consent, '--model': model, '--judge': judge });
    const flags = pairs.flatMap(([flag, value]) => (value === undefined ? [] : [flag, value]));
    return [...(yes ? ['--yes'] : []), ...flags, ...(args ?? [])];
  }

  #call(command: string[]): Promise<{ exit: number | null; stdout: string; stderr: string }> {
    const { promise, resolve, reject } = withResolvers<{ exit: number | null; stdout: string; stderr: string }>();
    const child = spawn(findProctor(this.#options.proctor), command, {
      cwd: this.cwd,
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    const out: Buffer[] = [];
    const err: Buffer[] = [];
    child.stdout.on('data', (bytes: Buffer) => out.push(bytes));
    child.stderr.on('data', (bytes: Buffer) => err.push(bytes));
    child.on('error', error => reject(new ProctorError(`${shown(command)} can't be started: ${error.message}`)));
    child.on('close', exit => resolve({ exit, stdout: String(Buffer.concat(out)), stderr: String(Buffer.concat(err)) }));
    return promise;
  }

  protected abstract listCommand(): string[];
  protected abstract runCommand(cases: readonly Case[] | undefined, flags: string[]): string[];
  protected abstract readList(document: object): Case[];
}

/** The cases of an eval file, run by `proctor check`. */
export class Suite extends Target {
  constructor(
    readonly path: string,
    readonly options: SuiteOptions = {},
  ) {
    super('suite', options);
  }

  #labels(): string[] {
    return this.options.labels === undefined ? [] : ['--label-selector', this.options.labels];
  }

  protected override listCommand(): string[] {
    const { run } = this.options;
    return ['list', this.path, '-o', 'json', ...this.#labels(), ...(run === undefined ? [] : ['--run', run])];
  }

  protected override runCommand(cases: readonly Case[] | undefined, flags: string[]): string[] {
    const names = cases?.map(({ name }) => name.replace(/[\\^$.*+?()[\]{}|#&~-]/g, '\\$&')).join('|');
    const pattern = names === undefined ? this.options.run : `^(?:${names})$`;
    return ['check', this.path, ...this.#labels(), ...(pattern === undefined ? [] : ['--run', pattern]), ...flags];
  }

  protected override readList(document: object): Case[] {
    const { cases = [] } = document as { cases?: Case[] };
    return cases.map(({ id, name }) => ({ id, name }));
  }
}

interface ListedServer {
  server: string;
  evals?: { id?: unknown }[];
  findings?: { index?: number; severity?: string; text?: string }[];
}

/** The evals that a server ships, run by `proctor evals run`. Evals call real tools, so consent is required. */
export class ServerEvals extends Target {
  constructor(readonly options: ServerOptions) {
    super('evals', options);
    if (Boolean(options.command?.length) === (options.url !== undefined))
      throw new TypeError("pass the server's `command` or its `url`");
    if (!options.yes && options.consent === undefined)
      throw new TypeError('evals call real tools: pass `yes: true`, or a file as `consent`');
  }

  #given(): string[] {
    const { level, protocol } = this.options;
    return [
      ...(level === undefined ? [] : ['--level', level]),
      ...(protocol === undefined ? [] : ['--protocol', protocol]),
    ];
  }

  #server(): string[] {
    const { command = [], url } = this.options;
    return url === undefined ? ['--', ...command] : ['--url', url];
  }

  protected override listCommand(): string[] {
    return ['evals', 'list', '-o', 'json', ...this.#given(), ...this.#server()];
  }

  protected override runCommand(cases: readonly Case[] | undefined, flags: string[]): string[] {
    const ids = cases?.map(({ name }) => name) ?? this.options.ids ?? [];
    const chosen = ids.flatMap(id => ['--id', id]);
    return ['evals', 'run', ...this.#given(), ...chosen, ...flags, ...this.#server()];
  }

  protected override readList(document: object): Case[] {
    const { servers = [] } = document as { servers?: ListedServer[] };
    const cases = servers.flatMap(listed);
    const { ids } = this.options;
    if (ids === undefined) return cases;
    const missing = ids.filter(id => !cases.some(({ name }) => name === id));
    if (missing.length > 0) throw new ProctorError(`the server ships no eval ${missing.join(', ')}`);
    return cases.filter(({ name }) => ids.includes(name));
  }
}

function listed({ server, evals = [], findings = [] }: ListedServer): Case[] {
  // Of two evals with one id, both are invalid: one test says so.
  const found = new Map<string, Case>();
  evals.forEach(({ id }, index) => {
    const name = typeof id === 'string' ? id : `eval number ${index + 1}`;
    const problems = findings.filter(finding => finding.index === index && finding.severity !== 'warning');
    const problem = problems.map(({ text }) => text).join('\n');
    if (!found.has(name)) found.set(name, { id: `evals/${server}#${name}`, name, ...(problem && { problem }) });
  });
  return [...found.values()];
}

function documentOf(stdout: string, stderr: string, command: string[]): object {
  try {
    const document: unknown = JSON.parse(stdout);
    if (typeof document === 'object' && document !== null) return document;
  } catch {
    // Told below, with what Proctor says of it.
  }
  throw new ProctorError(`${shown(command)} printed no JSON document\n${stderr.trim()}`);
}

function shown(command: string[]): string {
  return `\`${['proctor', ...command].join(' ')}\``;
}

function withResolvers<T>() {
  let resolve!: (value: T) => void;
  let reject!: (reason: Error) => void;
  const promise = new Promise<T>((yes, no) => ((resolve = yes), (reject = no)));
  return { promise, resolve, reject };
}
