// Functions that make evals from plain values.

import type { Eval } from './types.js';

type Message = { role: 'user' | 'assistant'; content: unknown };
type Messages = string | readonly Message[];
type Labels = { name?: string; description?: string };

/** A content block with text. */
export function text(value: string) {
  return { type: 'text' as const, text: value };
}

/**
 * An eval that calls a tool. It compares the content of the result with `content` (a string means one text block), or
 * has a model judge the result by `rubric`.
 */
export function execution(
  id: string,
  tool: string,
  args: Record<string, unknown>,
  expected: Labels & { content?: string | readonly unknown[]; rubric?: string },
): Eval {
  const { content } = expected;
  const exact = content === undefined ? {} : { content: typeof content === 'string' ? [text(content)] : content };
  return make(id, expected, { type: 'execution', toolName: tool, arguments: args }, exact);
}

/** An eval of the calls that a model makes for a prompt. It calls no tool. */
export function invocation(
  id: string,
  messages: Messages,
  expected: Labels & { tool?: string; arguments?: Record<string, unknown>; rubric?: string },
): Eval {
  const exact = {
    ...(expected.tool !== undefined && { toolName: expected.tool }),
    ...(expected.arguments !== undefined && { arguments: expected.arguments }),
  };
  return make(id, expected, { type: 'invocation', messages: messagesOf(messages) }, exact);
}

/** An eval in which a model works with the server's tools, and a judge reads the transcript. */
export function scenario(
  id: string,
  messages: Messages,
  expected: Labels & { rubric: string; maxTurns?: number },
): Eval {
  const turns = expected.maxTurns === undefined ? {} : { maxTurns: expected.maxTurns };
  return make(id, expected, { type: 'scenario', messages: messagesOf(messages), ...turns }, {});
}

function messagesOf(messages: Messages): readonly Message[] {
  return typeof messages === 'string' ? [{ role: 'user', content: text(messages) }] : messages;
}

function make(
  id: string,
  given: Labels & { rubric?: string },
  input: Eval['input'],
  exact: Record<string, unknown>,
): Eval {
  if (given.rubric !== undefined && Object.keys(exact).length > 0)
    throw new TypeError(`eval \`${id}\` has a rubric and an exact expectation; use one of them`);
  const expected: Eval['expected'] =
    given.rubric === undefined ? { type: 'exact-match', ...exact } : { type: 'llm-as-judge', rubric: given.rubric };
  const description = given.description === undefined ? {} : { description: given.description };
  return { id, name: given.name ?? id, ...description, gradingType: expected.type, input, expected };
}
