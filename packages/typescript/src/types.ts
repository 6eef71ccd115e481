// The types of the wire format, and its names.

export const CAPABILITY = 'evals';
export const EXTENSION = 'dev.mcp-proctor/evals';
export const METHOD = 'evals/list';
export const LIST_CHANGED = 'notifications/evals/list_changed';

export const LEVELS = ['invocation', 'execution', 'scenario'] as const;
export type Level = (typeof LEVELS)[number];

/** One eval as it goes over the wire. */
export interface Eval {
  id: string;
  name: string;
  description?: string;
  gradingType: 'exact-match' | 'llm-as-judge';
  input: { type: Level; [key: string]: unknown };
  expected: { type: 'exact-match' | 'llm-as-judge'; [key: string]: unknown };
  [key: string]: unknown;
}

/** A JSON or YAML file, or a list of evals. */
export type EvalSource = string | URL | readonly Eval[];

/** A problem of one eval. `path` is a JSON pointer into the eval. */
export interface Finding {
  index: number;
  id: string | undefined;
  path: string;
  severity: 'error' | 'warning';
  text: string;
}

/** The finding as one line of text. */
export function describeFinding({ index, id, path, text }: Finding): string {
  const name = id === undefined ? `eval number ${index + 1}` : `eval \`${id}\``;
  return `${name}${path ? `, \`${path}\`` : ''}: ${text}`;
}

/** Evals that a server must not ship. The message lists all problems. */
export class InvalidEvals extends Error {
  override name = 'InvalidEvals';
  constructor(
    message: string,
    readonly findings: readonly Finding[] = [],
  ) {
    super(message);
  }
}
