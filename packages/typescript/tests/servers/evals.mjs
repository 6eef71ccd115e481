import { execution, invocation, scenario } from '../../dist/index.js';

export const FIRST = [
  execution('echoes', 'echo', { text: 'hello' }, { content: 'hello' }),
  invocation('is-chosen', 'Repeat: hello', { tool: 'echo' }),
  scenario('talks', 'Say hello', { rubric: 'It says hello.' }),
];
export const CHANGED = [execution('changed', 'echo', { text: 'x' }, { content: 'x' })];
